#!/bin/bash
# Makes a bundle ready to run: restores libHalide.so. Run once, in the bundle's folder or by its path.
set -euo pipefail
cd "$(dirname "$0")"
[ -e lib/libHalide.so ] || xz -dc -T0 lib/libHalide.so.xz > lib/libHalide.so.part
[ -e lib/libHalide.so ] || mv lib/libHalide.so.part lib/libHalide.so
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
bin/tilewright doctor
