"""Tuning from Python: the command, with its options as keyword arguments."""

import os
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

    out: the file; by default beside the archive, M.cpu.schedule or M.cuda.schedule after the target given, else M.tuned.schedule.

    Options are the command's: budget=60, sizes={"s0": 8}, inputs="x.safetensors", records=…, engines="none", fusion="max", jobs=8,
    deterministic=True.
    """
    arguments = [_command(), "autotune", os.fspath(archive)]
    out = os.fspath(out) if out is not None else os.path.splitext(os.fspath(archive))[0] + f".{target or 'tuned'}.schedule"
    options = {"target": target, "out": out, **options}
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, dict):
            arguments += [flag, ",".join(f"{key}={number}" for key, number in value.items())]
        else:
            arguments += [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    result = subprocess.run(arguments, stdout=subprocess.DEVNULL if quiet else None, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        message = lines[-1] if lines else f"the command ended with status {result.returncode}"
        raise (UserError if result.returncode == 2 else TilewrightBug)(message.removeprefix("error: "))
    return out
