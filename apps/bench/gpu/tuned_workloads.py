"""Workloads of the comparison (workloads.py beside compare.py, on PYTHONPATH), tuned in several ways and timed in turn."""

import json
import os
import subprocess
import tempfile
import time

import compare
import torch
import workloads

import tilewright


class Workload:
    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp()
        self.program = f"{self.folder}/{name}.pt2"
        function, self.arguments = workloads.KERNELS[name][0]()
        compare.export(compare.Function(function), self.arguments, self.program)
        torch.cuda.empty_cache()

    def tune(self, tag, budget, *options):
        """(schedule file, seconds) of a search that knows no earlier one."""
        schedule = f"{self.folder}/{tag}.schedule"
        started = time.time()
        subprocess.run(["tilewright", "autotune", self.program, "--target", "cuda", "--out", schedule, "--budget", str(budget),
                        "--records", f"{self.folder}/{tag}.sqlite", *options], check=True, stdout=subprocess.DEVNULL)
        return schedule, time.time() - started

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


def chosen(beginnings):
    """Names of workloads that begin as one of them; all without any."""
    return [name for name in workloads.KERNELS if not beginnings or any(name.startswith(b) for b in beginnings)]
