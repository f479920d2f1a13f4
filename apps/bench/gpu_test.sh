#!/bin/bash
# The GPU test: checks first, then times. Runs in a source tree, with a bundle from make_bundle.sh, on a machine with a GPU.
#   gpu_test.sh BUNDLE RESULTS [PART…]   parts, in this order by default: doctor models operators device sanitizer bench compare
# One line a check goes to RESULTS/summary.txt, each part's output to RESULTS/PART.txt. The exit status is the number of failed checks.
# Variables: LIMIT seconds a check (120), BUDGET seconds a tuning (20), SANITIZED models under the sanitizer, COMPARE a folder with
# compare.py and its workloads, COMPARE_ARGS further arguments of it, UNPACKED where the bundle is unpacked.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
bundle=$1
results=$2
shift 2
parts=${*:-doctor models operators device sanitizer bench compare}
mkdir -p "$results"
results=$(cd "$results" && pwd)
unpacked=${UNPACKED:-/tmp/tilewright_bundle}
if [ ! -e "$unpacked/lib/libHalide.so" ]; then
    mkdir -p "$unpacked"
    xz -dc "$bundle/programs.tar.xz" | tar -x -C "$unpacked" || exit 100
    xz -dc "$bundle/libHalide.so.xz" > "$unpacked/lib/libHalide.so" || exit 100
    for library in "$unpacked"/system/*; do
        ldconfig -p | grep -q "$(basename "$library") " || cp "$library" "$unpacked/lib/"
    done
fi
models=$source/apps/models
operators=$source/tests/data/operators
export LD_LIBRARY_PATH="$unpacked/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$unpacked/python${PYTHONPATH:+:$PYTHONPATH}"
export PATH="$unpacked/bin:$PATH"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$unpacked/cache}"
# One place for NVRTC and cuBLASLt: the toolkit, else PyTorch's own wheels.
if [ ! -e /usr/local/cuda/lib64/libnvrtc.so ] && [ -z "${CUDA_HOME:-}" ]; then
    LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$(python3 -c 'import glob, torch; print(":".join(glob.glob(torch.__path__[0] + "/../nvidia/*/lib")))')"
fi
limit=${LIMIT:-120}  # seconds for one check
failed=0
begun=$SECONDS

check() {  # check NAME COMMAND…: runs it, records whether it succeeded
    local name=$1 began=$SECONDS
    shift
    echo "== $name" >> "$results/$part.txt"
    if timeout -k 5 "$limit" "$@" >> "$results/$part.txt" 2>&1; then
        echo "ok     $name ($((SECONDS - began)) s)" >> "$results/summary.txt"
    else
        echo "FAILED $name: $(grep -v '^$' "$results/$part.txt" | tail -1 | cut -c1-200)" >> "$results/summary.txt"
        failed=$((failed + 1))
    fi
}

recorded_models() {
    for io in "$models"/*.io.safetensors; do
        basename "$io" .io.safetensors
    done
}

doctor() { check doctor tilewright doctor; }

models() {
    for model in $(recorded_models); do
        check "model $model" tilewright run "$models/$model.pt2" --target cuda \
            --inputs "$models/$model.io.safetensors" --check "$models/$model.io.safetensors"
        check "model $model, engines none" tilewright run "$models/$model.pt2" --target cuda --engines none \
            --inputs "$models/$model.io.safetensors" --check "$models/$model.io.safetensors"
    done
    check "gpt2_dynamic and torch tensors" python3 "$source/apps/bench/gpu/dynamic_sizes.py" "$models/gpt2_dynamic.pt2"
}

operators() {
    for program in "$operators"/*.pt2; do
        local io=${program%.pt2}
        io=${io%.core}.io.safetensors
        check "operators $(basename "$program" .pt2)" tilewright run "$program" --target cuda --inputs "$io" --check "$io"
    done
}

sanitizer() {
    for model in ${SANITIZED:-special lstm distilbert unet}; do
        check "memcheck $model" compute-sanitizer --tool memcheck --error-exitcode 9 --leak-check no tilewright run "$models/$model.pt2" \
            --target cuda --engines none --inputs "$models/$model.io.safetensors"
        check "racecheck $model" compute-sanitizer --tool racecheck --error-exitcode 9 tilewright run "$models/$model.pt2" \
            --target cuda --engines none --inputs "$models/$model.io.safetensors"
    done
}

device() {
    cd "$source" && TILEWRIGHT_TEST_GPU=1 check "device primitives" tests_emulated --source-file='*math_primitives*'
    check "cuBLASLt" python3 "$source/apps/bench/gpu/engines.py"
    check "Python module" python3 "$source/apps/bench/python_module.py"
}

bench() {
    for model in $(recorded_models); do
        check "tune $model" tilewright autotune "$models/$model.pt2" --target cuda --budget "${BUDGET:-20}" --out "$results/$model.schedule"
        local schedule=
        [ -e "$results/$model.schedule" ] && schedule="--schedule $results/$model.schedule"
        check "bench $model" tilewright bench "$models/$model.pt2" --target cuda $schedule
    done
    check "registers and shared memory as cuobjdump says" python3 "$source/apps/bench/gpu/resources.py" $(recorded_models | sed "s|.*|$models/&.pt2|")
    check "eager and graph replay" python3 "$source/apps/bench/gpu/model_times.py" "$models" "$results"
}

compare() {  # COMPARE: folder with compare.py and its workloads; COMPARE_ARGS: more of its arguments
    [ -e "${COMPARE:-/nowhere}/compare.py" ] || return 0
    limit=${COMPARE_LIMIT:-560}
    (cd "$COMPARE" && check "compare kernels" python3 compare.py kernels --peers none --budget "${BUDGET:-10}" --keep "$results/workloads" \
        --json "$results/kernels.json" ${COMPARE_ARGS:-})
}

for part in $parts; do
    $part
done
echo "$failed checks failed, $((SECONDS - begun)) s" >> "$results/summary.txt"
cat "$results/summary.txt"
exit "$failed"
