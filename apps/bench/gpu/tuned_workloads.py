"""Workloads of the comparison (workloads.py beside compare.py, on PYTHONPATH), tuned in several ways and timed in turn."""

import json
import os
import re
import subprocess
import tempfile
import time

import compare
import torch
import workloads

import tilewright


class Workload:
    def __init__(self, name, folder=None):
        self.name = name
        self.folder = os.path.join(folder or tempfile.mkdtemp(), name)
        os.makedirs(self.folder, exist_ok=True)
        self.program = f"{self.folder}/{name}.pt2"
        function, self.arguments = workloads.KERNELS[name][0]()
        compare.export(compare.Function(function), self.arguments, self.program)
        torch.cuda.empty_cache()

    def tune(self, tag, budget, *options, out=None):
        """(schedule file, seconds) of a search that knows those of its tag alone."""
        schedule = f"{self.folder}/{out or tag}.schedule"
        started = time.time()
        subprocess.run(["tilewright", "autotune", self.program, "--target", "cuda", "--out", schedule, "--budget", str(budget),
                        "--records", f"{self.folder}/{tag}.sqlite", *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return schedule, time.time() - started

    def kernels(self, schedule):
        """What the kernels of a schedule file compute, by hash."""
        return hashes(open(schedule).read())

    def kernels_by_default(self, *options):
        return hashes(subprocess.run(["tilewright", "print", self.program, "--target", "cuda", "--stage", "schedule", *options], check=True,
                                     capture_output=True, text=True).stdout)

    def load_seconds(self, schedule):
        """Of loading with cubins in the cache and no compiled plan there."""
        started = time.time()
        tilewright.load(self.program, schedule=schedule, target="cuda", cache=False)
        return time.time() - started

    def times(self, schedules):
        """Microseconds of each, replayed in turn."""
        runs = [tilewright.load(self.program, schedule=schedule, target="cuda") for schedule in schedules]
        with torch.no_grad():
            graphs = [compare.capture(lambda run=run: run(*self.arguments)) for run in runs]
        return compare.replay_times([graph for graph, _ in graphs])

    def resources(self, schedule):
        """(kernels, most registers, spilled bytes of all)."""
        text = subprocess.run(["tilewright", "explain", self.program, "--target", "cuda", "--schedule", schedule, "--no-time", "--json"],
                              check=True, capture_output=True, text=True).stdout
        kernels = json.loads(text)["kernels"]
        return len(kernels), max(k["registers"] for k in kernels), sum(k["spill_bytes"] for k in kernels)


def hashes(schedule):
    return sorted(re.findall(r"^kernel .* algorithm (\w+)", schedule, re.MULTILINE))


def named(beginnings):
    """Names of workloads that begin so, in the order of the beginnings."""
    return [name for beginning in beginnings for name in workloads.KERNELS if name.startswith(beginning)]


def needs_no_matrix_unit():
    return [name for name, (_, _, multiplied) in workloads.KERNELS.items() if not multiplied]
