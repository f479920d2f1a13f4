"""Products of int8, float8, packed int4 and tf32 on the matrix unit, against float64 and beside eager in time.   product_types.py [--size 4096] [NAME…]

Wrong is what errs by more than twice eager's own error. Integers have no error."""

import argparse
import re
import subprocess
import sys
import tempfile

import torch

import tilewright
from exported import Function
from model_times import capture, replay_time

FOLDER = tempfile.mkdtemp()
E4M3, E5M2, BF16 = torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, device="cuda").to(dtype)


def int8(*shape):
    return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)


def scales(*shape):
    return torch.rand(shape, device="cuda") + 0.5


def scaled_rows(x, w, s, t):
    return (torch._int_mm(x, w.t()).float() * s[:, None] * t).to(BF16)


def scaled_product(dtype):
    return lambda x, w, s, t: torch._scaled_mm(x, w.t(), s, t, out_dtype=dtype)


def int4_weight(x, w, s):
    """Two values of 4 bits a byte, a scale for each 128 terms."""
    q = torch.stack([w & 15, w >> 4], -1).reshape(w.shape[0], -1).to(s.dtype)
    return x @ ((q.reshape(w.shape[0], -1, 128) - 8) * s[..., None]).reshape(w.shape[0], -1).t()


def scaled_reference(x, w, s, t):
    return x.double() @ w.double().t() * s.double() * t.double()


def cases(n):
    """Function, arguments, the same in float64."""
    yield "int8", lambda x, w: torch._int_mm(x, w.t()), (int8(n, n), int8(n, n)), lambda x, w: x.double() @ w.double().t()
    yield "int8, scaled", scaled_rows, (int8(n, n), int8(n, n), scales(n), scales(n)), lambda x, w, s, t: scaled_reference(x, w, s[:, None], t)
    yield "float8", scaled_product(BF16), (normal(n, n, dtype=E4M3), normal(n, n, dtype=E4M3), scales(), scales()), scaled_reference
    yield "float8 rows", scaled_product(BF16), (normal(n, n, dtype=E4M3), normal(n, n, dtype=E4M3), scales(n, 1), scales(1, n)), scaled_reference
    yield "float8 e5m2", scaled_product(BF16), (normal(n, n, dtype=E5M2), normal(n, n, dtype=E4M3), scales(), scales()), scaled_reference
    yield "float8 to float32", scaled_product(torch.float32), (normal(n, n, dtype=E4M3), normal(n, n, dtype=E4M3), scales(), scales()), scaled_reference
    weights = torch.randint(0, 256, (n, n // 2), device="cuda", dtype=torch.uint8)
    for rows in (1, 16, 64):
        yield f"int4, {rows} rows", int4_weight, (normal(rows, n, dtype=BF16), weights, normal(n, n // 128, dtype=BF16)), lambda x, w, s: int4_weight(x.double(), w, s.double())
    yield "tf32", lambda x, w: x @ w.t(), (normal(n, n), normal(n, n)), lambda x, w: x.double() @ w.double().t()


def with_tf32(schedule):
    """The one product's own directives in place of its default's."""
    stage = re.search(r"(?m)^  fuses .*?(\w+)$", schedule)[1]
    kept = [line for line in schedule.splitlines() if re.match(r"tilewright |model |target |$|kernel |  fuses |  covers ", line)]
    return "\n".join(kept) + f"""
  {stage}.tile(d0, d1, mo, no, mi, ni, 128, 128).gpu_blocks(no, mo).tensor_core(64, 128, 8).precision(tf32).warpgroups(2)
  {stage}.split(r0, ko, ki, 32).pipeline(ko, 5).producer_warps(1).raster(8).persistent()
end
"""


def error(value, reference):
    return ((value.double() - reference).norm() / reference.norm()).item()


def check(name, fn, args, reference):
    path = f"{FOLDER}/{re.sub('[^a-z0-9]', '_', name)}.pt2"
    torch.export.save(torch.export.export(Function(fn), args), path)
    schedule = subprocess.run(["tilewright", "print", path, "--target", "cuda", "--stage", "schedule"], capture_output=True, text=True, check=True).stdout
    if name == "tf32":
        schedule = with_tf32(schedule)
        torch.backends.cuda.matmul.allow_tf32 = True
    with open(path + ".schedule", "w") as file:
        file.write(schedule)
    model = tilewright.load(path, schedule=path + ".schedule", target="cuda")
    wanted = reference(*args)
    ours, eager = error(model(*args), wanted), error(fn(*args), wanted)
    good = ours <= 2 * eager and "tensor_core" in schedule
    times = [replay_time(capture(lambda run=run: run(*args))) for run in (model, fn)]
    print(f"{name:18s} {times[0]:8.1f} us, eager {times[1]:8.1f} us; error {ours:.2g}, eager's {eager:.2g} {'ok' if good else 'WRONG'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wrong = 0
    for name, fn, args, reference in cases(options.size):
        if options.names and name not in options.names:
            continue
        try:
            wrong += not check(name, fn, args, reference)
        except Exception as problem:  # one that fails does not hide the others
            wrong += 1
            print(f"{name} FAILED: {str(problem)[:300]}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
