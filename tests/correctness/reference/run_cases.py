"""Runs folders of cases (make_operator_cases.py) with the compiled product and counts what passes.

    python tests/correctness/reference/run_cases.py FOLDER [--tilewright build/bin/tilewright] [--target cpu] [--timeout 120] [PREFIX...]

Each archive is one run; a case passes when all its outputs do. Prints a line for each archive that does not pass wholly, then the totals: passed,
wrong, refused (a clear error, exit status 2) and failed (anything else). Exit status 1 where any is wrong or failed. Needs no torch.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys


def cases_of(archive):
    """Output name -> case."""
    names = re.sub(r"(\.core)?\.pt2$", ".cases", archive)
    with open(names) as file:
        return dict(line.rstrip("\n").split(" ", 1) for line in file)


def run(archive, options):
    values = re.sub(r"(\.core)?\.pt2$", ".io.safetensors", archive)
    command = [options.tilewright, "run", archive, "--inputs", values, "--check", values]
    if options.target:
        command += ["--target", options.target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return None, f"no end after {options.timeout} s"
    return done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--tilewright", default="build/bin/tilewright")
    parser.add_argument("--target", default="")
    parser.add_argument("--timeout", type=int, default=120)
    options = parser.parse_intermixed_args()
    totals = collections.Counter()
    for archive in sorted(glob.glob(os.path.join(options.folder, "*.pt2"))):
        if options.prefixes and not os.path.basename(archive).startswith(tuple(options.prefixes)):
            continue
        names = cases_of(archive)
        cases = set(names.values())
        status, text = run(archive, options)
        lines = [line for line in text.splitlines() if line and not line.startswith("Warning")]
        wrong = {names[output] for output in re.findall(r"mismatch: (out\d+)", text) if output in names}
        if status == 0:
            totals["passed"] += len(cases)
            continue
        if wrong:
            totals["passed"] += len(cases - wrong)
            totals["wrong"] += len(wrong)
        else:
            totals["refused" if status == 2 else "failed"] += len(cases)
        first = next((line for line in lines if "mismatch" in line or "error" in line), lines[-1] if lines else "")
        print(f"{os.path.basename(archive)}: {len(wrong) or len(cases)} of {len(cases)} cases: {first[:300]}", flush=True)
    print(", ".join(f"{totals[kind]} {kind}" for kind in ("passed", "wrong", "refused", "failed")))
    sys.exit(totals["wrong"] + totals["failed"] > 0)


if __name__ == "__main__":
    main()
