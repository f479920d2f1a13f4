"""Runs PyTorch's own samples of its operators (OpInfo) through the compiled product and counts those that pass, fail and are refused.

    python tests/correctness/reference/run_opinfo.py [--samples 64] [--dtypes float32,int64,bool,bfloat16] [--table OUT.tsv] [OPERATOR...]

Without names: the operators that real models have (tests/data/model_operators.tsv). Samples of an operator and type are exported together, with
PyTorch's results on the CPU as the expected values; a program that is refused or fails is halved until the sample to blame stands alone. Prints a
line for each operator and type that does not pass wholly, then the totals. "Cannot be cases": PyTorch refuses or cannot export the sample, gives
other results each time, or has complex numbers in it. Exit status 1 where any sample is wrong or failed. Needs torch; not part of the tests.
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_operator_cases import expected, write  # noqa: E402
from operator_cases.family import Family  # noqa: E402
from opinfo_samples import cases_of, label, operators_of, op_db  # noqa: E402

BATCH = 24
TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
COUNTED = ("passed", "wrong", "refused", "failed", "cannot be cases")


def run(options, path):
    """The outputs, or the status and what was printed."""
    command = [options.tilewright, "run", path + ".pt2", "--target", options.target, "--no-cache"]
    command += ["--inputs", path + ".io.safetensors", "--out", path + ".out.safetensors"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return None, -1, f"no end after {options.timeout} s"
    outputs = load_file(path + ".out.safetensors") if done.returncode == 0 else None
    return outputs, done.returncode, done.stdout + done.stderr


def error_of(actual, right):
    """The largest difference, in units of the largest finite magnitude; infinite where NaNs or infinities differ."""
    actual, right = actual.double(), right.double()
    finite = right.isfinite()
    if not torch.equal(actual.isfinite(), finite) or not torch.equal(actual[~finite].nan_to_num(), right[~finite].nan_to_num()):
        return float("inf")
    scale = right[finite].abs().max().item() if finite.any() else 1.0
    return ((actual - right)[finite].abs().max().item() / (scale or 1.0)) if finite.any() else 0.0


def difference(case, number, actual, expected):
    """What is wrong with an output: it is not eager's, and further from float64 than twice eager's error. Empty where nothing is."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if not expected.is_floating_point():
        return "" if torch.equal(actual, expected) else f"{actual.flatten()[:8].tolist()}, expected {expected.flatten()[:8].tolist()}"
    error = error_of(actual, expected)
    if error <= TOLERANCES[expected.dtype]:
        return ""
    precise = case.function(*[x.double() if x.is_floating_point() else x for x in case.inputs])
    precise = precise[number] if isinstance(precise, tuple) else precise
    ours, eagers = error_of(actual, precise), error_of(expected, precise)
    return "" if ours <= 2 * eagers else f"error {error:.1e}; against float64 {ours:.1e}, eager's {eagers:.1e}"


def judge(options, folder, cases, counts, notes):
    """Counts the cases; the notes say what is wrong with those that do not pass."""
    path = os.path.join(folder, "cases")
    try:
        write(Family("cases", core=False, cases=cases), folder)
        outputs, status, text = run(options, path)
    except Exception as error:
        outputs, status, text = None, None, f"torch.export: {(str(error).splitlines() or [''])[0][:150]}"
    if outputs is not None:
        recorded, place = load_file(path + ".io.safetensors"), 0
        for case in cases:
            count = len(expected(case))
            wrong = [difference(case, i, outputs[f"out{place + i}"], recorded[f"out{place + i}"]) for i in range(count)]
            place += count
            counts["wrong" if any(wrong) else "passed"] += 1
            notes += [f"wrong: {case.name}: {next(filter(None, wrong))}"] if any(wrong) else []
    elif len(cases) > 1:
        judge(options, folder, cases[: len(cases) // 2], counts, notes)
        judge(options, folder, cases[len(cases) // 2 :], counts, notes)
    else:
        kind = "cannot be cases" if status is None else "refused" if status == 2 else "failed"
        line = next((line for line in text.splitlines() if "error" in line), text.strip())
        counts[kind] += 1
        notes.append(f"{kind}: {cases[0].name}: {line[:300]}")


def examine(options, operator, in_place, kind):
    """What became of the samples of one operator in one type."""
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    counts, notes = collections.Counter(), []
    limit = options.samples if kind == "float32" else max(1, options.samples // 4)
    try:
        cases, reasons = cases_of(operator, in_place, getattr(torch, kind), limit)
    except Exception as error:
        cases, reasons = [], [f"OpInfo gives no samples: {(str(error).splitlines() or [''])[0][:100]}"]
    counts["cannot be cases"] += len(reasons)
    notes += sorted({f"cannot be cases: {reason}" for reason in reasons})
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(cases), BATCH):
            judge(options, folder, cases[first : first + BATCH], counts, notes)
    return counts, notes


def examine_named(options, name, in_place, kind):
    return examine(options, next(o for o in op_db if label(o) == name), in_place, kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("operators", nargs="*", help="OpInfo names, as nn.functional.conv2d")
    parser.add_argument("--samples", type=int, default=64, help="at most so many of an operator in float32, a quarter in other types")
    parser.add_argument("--dtypes", default="float32,int64,bool,bfloat16")
    parser.add_argument("--table", help="file for the counts of each operator and type, tab-separated")
    parser.add_argument("--tilewright", default="build/bin/tilewright")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_intermixed_args()
    if options.operators:
        operators, without = [(o, False) for o in op_db if o.name in options.operators or label(o) in options.operators], []
    else:
        operators, without = operators_of("tests/data/model_operators.tsv")
    work = [(label(o), in_place, kind) for o, in_place in operators for kind in options.dtypes.split(",") if getattr(torch, kind) in o.supported_dtypes("cpu")]
    totals, rows = collections.Counter(), []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        results = [pool.submit(examine_named, options, *one) for one in work]
        for (name, _, kind), result in zip(work, results):
            counts, notes = result.result()
            totals += counts
            rows.append("\t".join([name, kind] + [str(counts[column]) for column in COUNTED]))
            for note in notes:
                print(f"{name} {kind}: {note}", flush=True)
    if options.table:
        with open(options.table, "w") as file:
            file.write("\t".join(("operator", "type") + COUNTED) + "\n" + "\n".join(rows) + "\n")
    if without:
        print("no OpInfo:", ", ".join(without))
    print(f"{len(operators)} operators, {sum(totals.values())} samples:", ", ".join(f"{totals[column]} {column}" for column in COUNTED))
    sys.exit(totals["wrong"] + totals["failed"] > 0)


if __name__ == "__main__":
    main()
