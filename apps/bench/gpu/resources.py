"""Registers, stack and shared memory in `explain` against what `cuobjdump -res-usage` says of the cubins; no GPU is needed.

    resources.py MODEL.pt2 …        each is compiled into a cache of its own, under its default schedule"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

RESERVED = 1024  # bytes of shared memory that the driver keeps in a block which uses any, counted by some versions of cuobjdump


def cubins(cache):
    """For each image in the cache: its functions, {name: (registers, stack, shared)}."""
    images = []
    for path in glob.glob(f"{cache}/tilewright/cubin/*"):
        image = open(path, "rb").read()[41:].partition(b"\n\n")[2]
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(image)
            file.flush()
            text = subprocess.run(["cuobjdump", "-res-usage", file.name], check=True, capture_output=True, text=True).stdout
        images.append({m[1]: tuple(int(m[i]) for i in (2, 3, 4)) for m in re.finditer(r"Function (\w+):\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)", text)})
    return images


def agrees(kernel, functions):
    """Of several launches `explain` shows the most that any takes. What is spilled lies on the stack."""
    registers, stack, shared = (max(values) for values in zip(*functions.values()))
    spills = kernel["spill_bytes"] == 0 or stack > 0
    return registers == kernel["registers"] and shared - kernel["shared_bytes"] in (0, RESERVED) and spills


def compare(model):
    """(kernels compared, those that differ)."""
    with tempfile.TemporaryDirectory() as cache:
        text = subprocess.run(["tilewright", "explain", model, "--target", "cuda", "--arch", "sm_90a", "--engines", "none", "--no-time", "--json"], check=True,
                              capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": cache}).stdout
        images = cubins(cache)
    kernels = {kernel["name"]: kernel for kernel in json.loads(text)["kernels"]}
    of_kernel = {name: [] for name in kernels}
    for functions in images:
        names = [name for name in kernels if all(function.startswith(name + "_") for function in functions)]
        if functions and names:
            of_kernel[max(names, key=len)].append(functions)
    different = 0
    for name, kernel in kernels.items():
        if not any(agrees(kernel, functions) for functions in of_kernel[name]):
            different += 1
            print(f"{os.path.basename(model)}, kernel {name}: {kernel['registers']} registers, {kernel['spill_bytes']} B spilled, {kernel['shared_bytes']} B shared; "
                  f"cuobjdump (registers, stack, shared): {of_kernel[name]}")
    return len(kernels), different


def main():
    compared = wrong = 0
    for model in sys.argv[1:]:
        count, different = compare(model)
        compared, wrong = compared + count, wrong + different
    print(f"{compared} kernels compared, {wrong} differ")
    sys.exit(1 if wrong or not compared else 0)


main()
