#!/bin/bash
# Packs what a machine with a GPU needs to run Tilewright without building it: programs, libraries and the Python package, as two files.
#   make_bundle.sh BUILD_FOLDER OUT_FOLDER
# gpu_test.sh unpacks them. The GPU machine needs a driver, NVRTC and cuBLASLt (a toolkit, or PyTorch's wheels), Python with PyTorch, and
# this source tree for models and test data.
set -euo pipefail
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage"/{bin,lib,system,python/tilewright}

for program in tilewright tests_emulated; do
    if [ -e "$build/bin/$program" ]; then
        install -s "$build/bin/$program" "$stage/bin/"
    fi
done
install -s "$build/lib/libtilewright.so" "$stage/lib/"
cp "$build"/python/tilewright/*.py "$stage/python/tilewright/"

# Every library but those that each Linux system has; what most have goes to `system`, for those that lack it.
for binary in "$build"/bin/tilewright "$build"/lib/libtilewright.so; do
    ldd "$binary" | awk '$3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
    case $name in
        libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*|libgcc_s.so.*|libstdc++.so.*|ld-linux*) continue ;;
        libHalide.so)
            if [ ! -e "$out/libHalide.so.xz" ] || [ "$path" -nt "$out/libHalide.so.xz" ]; then
                xz -c --x86 --lzma2=preset=9e,dict=128MiB "$path" > "$out/libHalide.so.xz"
            fi
            continue ;;
        libcrypto.so.*|libz.so.*|libbz2.so.*|libtinfo.so.*|liblzma.so.*) to=$stage/system/$name ;;
        *) to=$stage/lib/$name ;;
    esac
    cp -L "$path" "$to"
    chmod u+w "$to"
    strip "$to"
done
tar -C "$stage" -c . | xz -9e -c > "$out/programs.tar.xz"
ls -l "$out"
