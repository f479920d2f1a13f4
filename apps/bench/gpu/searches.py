"""What a search owes: a second one ends where the first did, and fusing everything is no faster.   searches.py [--budget 3] [NAME…]

Each workload is tuned twice, each time knowing nothing, and with `--fusion max` where that gives other kernels; the schedules are replayed in turn.
Also the seconds of the longest search, of one from its records, and the milliseconds of loading with a warm cubin cache.
Names are beginnings; by default all that move memory and need no matrix unit, and those of fusion_workloads.py. --json collects several calls."""

import argparse
import json
import os
import sys
import time

import fusion_workloads
from tuned_workloads import Workload, named, needs_no_matrix_unit

APART, FASTER = 1.03, 1.02  # two searches; everything fused
LATE, FROM_RECORDS, LOAD = 3.0, 1.0, 50.0  # seconds over the budget, seconds, milliseconds


def measure(name, budget, folder):
    workload = Workload(name, folder)
    first, seconds = workload.tune("first", budget)
    second, again = workload.tune("second", budget)
    same, from_records = workload.tune("first", budget, out="same")
    row = {"tune_s": max(seconds, again), "records_s": from_records, "same_bytes": open(first).read() == open(same).read()}
    schedules = [first, second]
    if workload.kernels(first) != workload.kernels_by_default("--fusion", "max"):
        fused, _ = workload.tune("max", budget, "--fusion", "max")
        schedules.append(fused)
    row["load_ms"] = 1e3 * workload.load_seconds(first)
    row["us"] = workload.times(schedules)
    row["resources"] = [workload.resources(schedule) for schedule in (first, schedules[-1])]
    return row


def faults(row, budget):
    first, second, *fused = row["us"]
    found = []
    if max(first, second) > APART * min(first, second):
        found.append(f"two searches end {100 * (max(first, second) / min(first, second) - 1):.1f} % apart")
    if fused and fused[0] * FASTER < first:
        found.append("everything fused is faster")
    if row["tune_s"] > budget + LATE:
        found.append("the search is late")
    if row["records_s"] > FROM_RECORDS or not row["same_bytes"]:
        found.append("its records give something else or come late")
    if row["load_ms"] > LOAD:
        found.append("loading is slow")
    return found


def show(name, row, budget):
    first, second, *fused = row["us"]
    chosen, most = row["resources"]
    max_text = f"{most[0]:3d} {fused[0]:8.1f} {most[1]:4d} {most[2]:5d} {fused[0] / first:6.2f}" if fused else f"{'the same kernels':>30s}"
    print(f"{name:40s} {chosen[0]:3d} {first:8.1f} {chosen[1]:4d} {chosen[2]:5d} {second:8.1f} | {max_text} | {row['tune_s']:5.1f} {row['records_s']:5.2f} "
          f"{row['load_ms']:5.0f}  {'; '.join(faults(row, budget))}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--budget", type=float, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no workload after this long")
    parser.add_argument("--json", help="file that rows are merged into; workloads that it has are not measured again")
    parser.add_argument("--keep", help="folder for programs, schedules and records")
    options = parser.parse_args()
    rows = json.load(open(options.json)) if options.json and os.path.exists(options.json) else {}
    print(f"{'workload':40s}   k       us regs spill    again |   k  fused us regs spill  ratio |  tune  rec. load ms")
    started = time.time()
    for name in named(options.names) or [*needs_no_matrix_unit(), *fusion_workloads.NAMES]:
        if time.time() - started > options.seconds:
            print(f"stopped before {name}")
            break
        if name in rows or any(name.startswith(beginning) for beginning in options.skip):
            continue
        rows[name] = measure(name, options.budget, options.keep)
        show(name, rows[name], options.budget)
        if options.json:
            json.dump(rows, open(options.json, "w"), indent=1)
    bad = sum(bool(faults(row, options.budget)) for row in rows.values())
    slower = sum(len(row["us"]) == 3 and row["us"][2] > FASTER * row["us"][0] for row in rows.values())
    print(f"{len(rows)} workloads, {bad} with a fault; everything fused is slower in {slower}")
    sys.exit(min(bad, 100))


main()
