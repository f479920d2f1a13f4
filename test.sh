#!/usr/bin/env bash
# Builds what is missing and runs all tests. Usage: ./test.sh [ctest options, as -L correctness or -R softmax]
set -euo pipefail
cd "$(dirname "$0")"
[ -f build/build.ninja ] || ./bootstrap.sh --no-autotune
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
.venv/bin/cmake --build build -j "$(nproc)"
exec .venv/bin/ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
