"""Searches that are stopped (TERM) or killed (KILL) at random moments leave no broken file, and the next one goes on from their records.

    killed_searches.py MODEL.pt2 [--count 20] [--seed 0] [--longest 4]"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=4, help="seconds until a signal, at most")
    options = parser.parse_args()
    draw, broken = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        schedule = f"{folder}/model.schedule"
        tune = ["tilewright", "autotune", options.model, "--target", options.target, "--out", schedule, "--records", f"{folder}/records.sqlite", "--budget"]
        for number in range(options.count):
            kind = (signal.SIGKILL, signal.SIGTERM)[number % 2]
            search = subprocess.Popen([*tune, "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0.02, options.longest))
            search.send_signal(kind)
            status = search.wait(60)
            fits = not os.path.exists(schedule) or subprocess.run(["tilewright", "check", schedule, options.model], stdout=subprocess.DEVNULL).returncode == 0
            stopped_well = kind == signal.SIGKILL or status in (0, -signal.SIGTERM)
            if not fits or not stopped_well:
                broken += 1
                print(f"{kind.name}: status {status}, the file {'fits' if fits else 'is broken'}", flush=True)
        with sqlite3.connect(f"{folder}/records.sqlite") as records:
            (kept,) = records.execute("select count(*) from measurements").fetchone()
        last = subprocess.run([*tune, "2"], capture_output=True, text=True)
        print(last.stdout.strip().splitlines()[-1] if last.returncode == 0 else last.stderr)
        broken += last.returncode != 0 or subprocess.run(["tilewright", "check", schedule, options.model], stdout=subprocess.DEVNULL).returncode != 0
    print(f"{options.count} searches ended by signals, {broken} left something broken; {kept} measurements were kept")
    sys.exit(min(broken, 100))


main()
