"""The shipped models on the CPU: ours, with its schedule, against PyTorch eager on the same cores.

    PYTHONPATH=build/python python3 apps/bench/cpu_models.py [NAME …] [--models FOLDER] [--schedules FOLDER] [--rounds N] [--threads N] [--json FILE]

They take turns in rounds of some calls each. A round counts as its fastest call, a model as the median of its rounds. Small operators are
slower on several threads than on one, so eager counts as the faster of one thread and all. The exit status is the number of models that are
slower than eager. Needs torch and safetensors.
"""

import argparse
import glob
import json
import os
import statistics
import sys
import time
import warnings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("names", nargs="*", help="models; by default all that the folder holds")
parser.add_argument("--models", default="apps/models", help="folder of NAME.pt2 and NAME.io.safetensors")
parser.add_argument("--schedules", help="folder of NAME.cpu.schedule; by default that of the models")
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--json", help="file for the figures")
options = parser.parse_args()
os.environ.setdefault("HL_NUM_THREADS", str(options.threads))

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

import tilewright  # noqa: E402
from shipped_programs import load_program  # noqa: E402

warnings.filterwarnings("ignore", message="The given buffer is not writable")
SIZES = {"batch": 2, "seq": 64}  # of inputs that are not recorded
ROUND_SECONDS = 0.03
PAUSE_SECONDS = 0.005  # idle threads of the other side stop spinning


def drawn_inputs(program):
    """Token numbers: every input that the shipped models take without a recording is one."""
    inputs = []
    for node, value in zip(program.graph.nodes, [n.meta.get("val") for n in program.graph.nodes]):
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs:
            sizes = [size if isinstance(size, int) else list(SIZES.values())[axis] for axis, size in enumerate(value.shape)]
            inputs.append(torch.randint(0, 100, sizes, dtype=value.dtype))
    return inputs


def inputs_of(name, program):
    recorded = f"{options.models}/{name}.io.safetensors"
    if not os.path.exists(recorded):
        return drawn_inputs(program)
    tensors = load_file(recorded)
    return [tensors[f"in{i}"] for i in range(len(tensors)) if f"in{i}" in tensors]


def fastest_call(call):
    call()
    times = []
    end = time.perf_counter() + ROUND_SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    time.sleep(PAUSE_SECONDS)
    return min(times) * 1e6


def compare(name):
    program = load_program(f"{options.models}/{name}.pt2")
    inputs = inputs_of(name, program)
    eager = program.module()
    schedule = f"{options.schedules or options.models}/{name}.cpu.schedule"
    tuned = os.path.exists(schedule)
    ours = tilewright.load(f"{options.models}/{name}.pt2", schedule=schedule if tuned else None, target="cpu")
    sides = {
        "eager": (options.threads, lambda: eager(*inputs)),
        "eager on one": (1, lambda: eager(*inputs)),
        "ours": (1, lambda: ours(*inputs)),
    }
    rounds = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, (threads, call) in sides.items():
            torch.set_num_threads(threads)
            rounds[side].append(fastest_call(call))
    times = {side: statistics.median(of_rounds) for side, of_rounds in rounds.items()}
    return {"eager": min(times["eager"], times["eager on one"]), "ours": times["ours"], "tuned": tuned}


def main():
    names = options.names or sorted(os.path.basename(path).removesuffix(".pt2") for path in glob.glob(options.models + "/*.pt2"))
    rows, slower = {}, 0
    print(f"{'model':14s} {'eager us':>10s} {'ours us':>10s} {'ratio':>7s}  schedule")
    with torch.no_grad():
        for name in names:
            row = rows[name] = compare(name)
            slower += row["ours"] > row["eager"]
            print(f"{name:14s} {row['eager']:10.1f} {row['ours']:10.1f} {row['eager'] / row['ours']:7.2f}  {'tuned' if row['tuned'] else 'default'}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(slower)


main()
