#!/bin/bash
# Packs what a machine with a GPU needs to run Tilewright without building it: programs, libraries, the Python package, models, tests.
#   make_bundle.sh BUILD_FOLDER OUT_FOLDER
# OUT_FOLDER is then small (libHalide.so is compressed); unpack.sh in it makes it ready to run. The GPU machine needs a driver, CUDA's
# NVRTC and cuBLASLt (a toolkit, or PyTorch's wheels), and Python with PyTorch.
set -euo pipefail
build=$(realpath "$1")
out=$2
source=$(realpath "$(dirname "$0")/../..")
mkdir -p "$out"/{bin,lib,python/tilewright,models,tests}
out=$(realpath "$out")

for program in tilewright tests_emulated tests_gpu; do
    [ -e "$build/bin/$program" ] && install -s "$build/bin/$program" "$out/bin/"
done
install -s "$build/lib/libtilewright.so" "$out/lib/"
cp "$build"/python/tilewright/*.py "$out/python/tilewright/"
cp "$source"/apps/models/*.pt2 "$source"/apps/models/*.safetensors "$out/models/"
cp -r "$source/tests/data" "$out/tests/"
cp "$source/apps/bench/gpu_test.sh" "$source/apps/bench/unpack.sh" "$out/"
[ -d "$source/apps/bench/gpu" ] && cp -r "$source/apps/bench/gpu" "$out/"

# Every library but those that each Linux system has.
for binary in "$out"/bin/* "$out"/lib/libtilewright.so; do
    original=$build/${binary#"$out"/}
    ldd "$original" | awk '$3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
    case $name in
        libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*|libgcc_s.so.*|libstdc++.so.*|ld-linux*) ;;
        libHalide.so)
            if [ ! -e "$out/lib/libHalide.so.xz" ] || [ "$path" -nt "$out/lib/libHalide.so.xz" ]; then
                xz -c --x86 --lzma2=preset=9e,dict=128MiB "$path" > "$out/lib/libHalide.so.xz"
            fi ;;
        *) cp -L "$path" "$out/lib/$name"; chmod u+w "$out/lib/$name"; strip "$out/lib/$name" ;;
    esac
done
du -sh "$out"
