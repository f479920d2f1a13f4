"""Tuning from Python: the command, with its options as keyword arguments."""

import os
import re
import shutil
import subprocess

from .errors import TilewrightBug, UserError


def _command():
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "..", "..", "bin", "tilewright"), shutil.which("tilewright")):
        if path and os.path.exists(path):
            return path
    raise UserError("the command tilewright is neither beside the package (../../bin) nor in PATH; add its folder to PATH")


def autotune(archive, target=None, out=None, quiet=False, **options):
    """Searches schedules for an archive by measuring and writes a schedule file; returns its path.

    out: the file; by default beside the archive, M.cpu.schedule or, after the GPU, M.h200.schedule.

    Options are the command's: budget=60, sizes={"s0": 8}, inputs="x.safetensors", records=…, engines="none", fusion="max", jobs=8,
    deterministic=True.
    """
    arguments = [_command(), "autotune", os.fspath(archive)]
    options = {"target": target, "out": out, **options}
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False or value == {}:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, dict):
            arguments += [flag, ",".join(f"{key}={number}" for key, number in value.items())]
        else:
            arguments += [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not quiet:
        print(result.stdout, end="", flush=True)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        message = lines[-1] if lines else f"the command ended with status {result.returncode}"
        raise (UserError if result.returncode == 2 else TilewrightBug)(message.removeprefix("error: "))
    return os.fspath(out) if out is not None else re.search(r"; schedule in (.*)$", result.stdout, re.MULTILINE).group(1)
