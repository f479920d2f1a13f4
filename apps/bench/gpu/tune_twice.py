"""Two tunings of a workload, each without the other's records, end how far apart?   tune_twice.py BUDGET [NAME…]"""

import sys

from tuned_workloads import Workload, chosen

ALLOWED = 1.03


def main():
    budget, apart = float(sys.argv[1]), 0
    for name in chosen(sys.argv[2:]):
        workload = Workload(name)
        (first, seconds), (second, again) = (workload.tune(tag, budget) for tag in ("first", "second"))
        a, b = workload.times([first, second])
        ratio = max(a, b) / min(a, b)
        apart += ratio > ALLOWED
        print(f"{name:42s} {a:9.1f} us {b:9.1f} us  ratio {ratio:.3f}  tuned in {seconds:.1f} s and {again:.1f} s", flush=True)
    sys.exit(apart)


main()
