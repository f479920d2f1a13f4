"""Numbered checks shared out among processes: most of their time goes into export and compilation."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor


def run(check, numbers, jobs=os.cpu_count()):
    """check(number) of each number, in order; what one raises stands in its place."""
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(check, number) for number in numbers]
        for future in futures:
            problem = future.exception()
            yield future.result() if problem is None else problem


def report(check, count, per_program, what, jobs=os.cpu_count()):
    """Runs check(number), which lists what is wrong, for as many programs as `count` cases fill; prints that and gives how much it was."""
    programs = range(-(-count // per_program))
    failures = 0
    for number, result in zip(programs, run(check, programs, jobs), strict=True):
        messages = [f"program {number}: {str(result)[:300]}"] if isinstance(result, BaseException) else result
        failures += len(messages)
        for message in messages:
            print(message, flush=True)
    print(f"{len(programs) * per_program} {what}, {failures} wrong")
    return min(failures, 100)
