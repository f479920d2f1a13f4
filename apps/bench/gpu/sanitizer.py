"""Every workload of the comparison at a reduced size under compute-sanitizer.   sanitizer.py [--tools memcheck,racecheck] [--jobs 12] [NAME…]

workloads.py (beside compare.py) is on PYTHONPATH. Rows, batches and images shrink, the lengths of rows that functions name stay; what cannot shrink
so runs at its full size. Default schedules, products by our own kernels. The exit status is the number of runs that are not clean."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import fusion_workloads  # noqa: F401 (registers more of them)
import torch
import workloads
from exported import Function

FEW, BATCH, FLAT, KERNEL = 264, 2, 40_000, 16  # rows, images, elements of a vector of millions; a shorter last axis is a convolution's window
full_rand, full_ids = workloads.rand, workloads.ids


def reduced(shape):
    if len(shape) == 1:
        return (shape[0] if shape[0] <= 1_000_000 else FLAT,)
    if len(shape) == 2:
        return min(shape[0], FEW), shape[1]
    if shape[-1] < KERNEL:
        return shape
    return min(shape[0], BATCH), *(min(size, FEW) if len(shape) == 4 and axis > 0 else size for axis, size in enumerate(shape[1:]))


def reduced_rand(*shape, **how):
    return full_rand(*reduced(shape), **how)


def reduced_ids(limit, *shape):
    return full_ids(min(limit, FEW), *(min(size, FEW) for size in shape))


def export(name, folder):
    for workloads.rand, workloads.ids in ((reduced_rand, reduced_ids), (full_rand, full_ids)):
        function, inputs = workloads.KERNELS[name][0]()
        try:
            function(*inputs)
            break
        except RuntimeError:  # a vector goes with what shrank
            continue
    program = torch.export.export(Function(function), inputs)
    program._example_inputs = None
    torch.export.save(program, f"{folder}/{name}.pt2")


def sanitize(tool, program, limit):
    """What is wrong, in words; nothing where the run is clean."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "tilewright", "bench", program, "--target", "cuda", "--engines", "none", "--seconds", "0.001"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"took longer than {limit:.0f} s"
    lines = (result.stdout + result.stderr).splitlines()
    if result.returncode == 0 and any("0 errors" in line or "0 hazards" in line for line in lines[-3:]):
        return ""
    marks = ("Invalid", "hazard", "Race", "rror")
    return next((line.strip() for line in lines if any(mark in line for mark in marks)), f"status {result.returncode}")[:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings; by default all")
    parser.add_argument("--tools", default="memcheck,racecheck")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--limit", type=float, default=120, help="seconds a run")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run after this long")
    options = parser.parse_args()
    names = [name for name in workloads.KERNELS if not options.names or any(name.startswith(beginning) for beginning in options.names)]
    started, dirty = time.time(), 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for name in names:
            export(name, folder)
        torch.cuda.empty_cache()
        runs = [(tool, name) for tool in options.tools.split(",") for name in names]

        def run(which):
            tool, name = which
            if time.time() - started > options.seconds:
                return "was not begun: time is up"
            return sanitize(tool, os.path.join(folder, name + ".pt2"), options.limit)

        for (tool, name), wrong in zip(runs, pool.map(run, runs)):
            dirty += bool(wrong)
            if wrong:
                print(f"{tool} {name}: {wrong}", flush=True)
    print(f"{len(runs)} runs, {dirty} not clean, {time.time() - started:.0f} s")
    sys.exit(min(dirty, 100))


main()
