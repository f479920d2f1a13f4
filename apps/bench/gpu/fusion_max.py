"""What the tuner chose against everything fused, both tuned: time, registers, spills.   fusion_max.py BUDGET [NAME…]"""

import sys

import fusion_workloads  # noqa: F401 (registers them)
from tuned_workloads import Workload, chosen

NOISE = 1.02


def main():
    budget, better = float(sys.argv[1]), 0
    print(f"{'workload':42s} {'kernels':>8s} {'us':>9s} {'regs':>5s} {'spill':>6s}   {'max: kernels':>12s} {'us':>9s} {'regs':>5s} {'spill':>6s}  max/chosen")
    for name in chosen(sys.argv[2:]):
        workload = Workload(name)
        searched, _ = workload.tune("search", budget)
        fused, _ = workload.tune("max", budget, "--fusion", "max")
        a, b = workload.times([searched, fused])
        better += b * NOISE < a
        rows = [workload.resources(searched), workload.resources(fused)]
        print(f"{name:42s} {rows[0][0]:8d} {a:9.1f} {rows[0][1]:5d} {rows[0][2]:6d}   {rows[1][0]:12d} {b:9.1f} {rows[1][1]:5d} {rows[1][2]:6d}  {b / a:.3f}", flush=True)
    sys.exit(better)


main()
