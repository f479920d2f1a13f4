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
