#!/usr/bin/env bash
# Installs what Tilewright needs on Debian 12, builds it, and tunes a shipped model. Usage: ./bootstrap.sh [--no-autotune]
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
jobs=$(nproc)

packages=(build-essential ninja-build pkg-config git ccache python3-venv
    libboost1.81-dev libboost-json1.81-dev libboost-context1.81-dev libboost-program-options1.81-dev
    libzip-dev libsqlite3-dev libfmt-dev libspdlog-dev doctest-dev libbenchmark-dev llvm-14-dev zlib1g-dev)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    say "packages: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

say "Python environment .venv"
[ -x .venv/bin/python ] || python3 -m venv .venv
wheels=("halide==21.*" "cmake>=3.28" numpy safetensors)
# Where there is no CUDA toolkit: its headers, and the compiler, which needs no GPU; cuBLASLt and cuDNN only beside a GPU.
if [ ! -f "${CUDA_HOME:-/usr/local/cuda}/include/cuda.h" ]; then
    wheels+=("nvidia-cuda-runtime==13.0.*" "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-crt==13.0.*")
    [ -e /dev/nvidia0 ] && wheels+=("nvidia-cublas==13.0.*" "nvidia-cudnn-cu13==9.*")
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check "${wheels[@]}"
# Of cuDNN's frontend the headers alone serve: what its package depends on is for Python.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "nvidia-cudnn-frontend==1.*"

say "build"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
.venv/bin/cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" 
.venv/bin/cmake --build build --target tilewright -j "$jobs"

if [ "${1:-}" != --no-autotune ]; then
    say "autotune of a shipped model"
    build/bin/tilewright autotune apps/models/whisper_enc.pt2 --budget 60 --out whisper_enc.schedule
    say "the schedule that it found: whisper_enc.schedule"
    sed -n 1,20p whisper_enc.schedule
fi
