"""Rows, columns and pointwise kernels of random shapes against float64, and their time over a copy.   random_rows.py [--count 60] [--seed 0] [--show]

Odd rows, prime columns, three float types, strided inputs; default schedules. Wrong is what errs by more than twice PyTorch eager's own error
and half a rounding step. `copy` is what a plain device copy of the same bytes takes; sizes over 64 MB are timed, and counted as slow from 15 % over it."""

import argparse
import math
import os
import random
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

import tilewright
from exported import Function
from graph_times import capture, replay_times

FOLDER = tempfile.mkdtemp()
LARGE = 64e6  # bytes


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def layernorm_backward(x, dy, g):
    xf, d = wide(x), wide(dy)
    xc = xf - xf.mean(-1, keepdim=True)
    rs = torch.rsqrt(xc.pow(2).mean(-1, keepdim=True) + 1e-5)
    xh = xc * rs
    dg = d * wide(g)
    dx = rs * (dg - dg.mean(-1, keepdim=True) - xh * (dg * xh).mean(-1, keepdim=True))
    return dx.to(x.dtype), (d * xh).sum(0).to(x.dtype), d.sum(0).to(x.dtype)


# name -> (function of the matrices and vectors, matrices, vectors of a row's length, whether it writes a matrix)
KINDS = {
    "softmax": (lambda x: torch.softmax(x, -1), 1, 0, True),
    "log_softmax": (lambda x: F.log_softmax(wide(x), -1).to(x.dtype), 1, 0, True),
    "logsumexp": (lambda x: torch.logsumexp(wide(x), -1), 1, 0, False),
    "layer_norm": (lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b), 1, 2, True),
    "rms_norm": (lambda x, y, g: ((x + y) * torch.rsqrt(wide(x + y).pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * g, 2, 1, True),
    "layer_norm_backward": (layernorm_backward, 2, 1, True),
    "column_sum": (lambda x: x.sum(0), 1, 0, False),
    "row_sum": (lambda x: x.sum(-1), 1, 0, False),
    "row_max": (lambda x: x.amax(-1), 1, 0, False),
    "argmax": (lambda x: x.argmax(-1), 1, 0, False),
    "normalise_columns": (lambda x: (x - wide(x).mean(0)).to(x.dtype), 1, 0, True),
    "variance": (lambda x: wide(x).var(-1), 1, 0, False),
    "cumsum": (lambda x: x.cumsum(-1), 1, 0, True),
    "gelu_bias": (lambda x, y, b: F.gelu(x + b, approximate="tanh") + y, 2, 1, True),
    "transpose": (lambda x: (x.t() * 2).contiguous(), 1, 0, True),
    "clamp_scale": (lambda x, g: (x * g).clamp(-1, 1), 1, 1, True),
}


def draw_shape(draw, size):
    """(rows, columns): about `size` elements, or a small matrix; lengths that divide by nothing as often as even ones."""
    elements = size if draw.random() < 0.5 else draw.randint(200, 300000)
    columns = draw.choice([draw.randint(1, 300), draw.randint(300, 9000), draw.choice([1021, 4093, 8191, 12289, 50257]), draw.choice([64, 768, 4096, 16384])])
    if draw.random() < 0.1:
        columns = draw.randint(20000, 140000)
    return max(1, elements // columns) | draw.randint(0, 1), columns


def matrix(draw, rows, columns, dtype):
    layout = draw.choice(["plain", "plain", "slice", "transposed"]) if rows * columns < 1e6 else draw.choice(["plain", "plain", "plain", "slice"])
    if layout == "slice":
        return torch.randn(rows, columns + draw.choice([1, 8]), device="cuda").to(dtype)[:, :columns]
    if layout == "transposed":
        return torch.randn(columns, rows, device="cuda").to(dtype).t()
    return torch.randn(rows, columns, device="cuda").to(dtype)


def outputs(value):
    return [t for t in (value if isinstance(value, (tuple, list)) else (value,))]


def error(got, expected):
    if got.dtype in (torch.int64, torch.int32, torch.bool):
        return float((got != expected).sum())
    scale = max(float(expected.abs().max()), 1e-30)
    return float((got.double() - expected).abs().max()) / scale if got.numel() else 0.0


def check(ours, eager, exact):
    """The worst of our errors over twice eager's."""
    worst = 0.0
    for o, e, x in zip(ours, eager, exact):
        assert o.shape == e.shape and o.dtype == e.dtype and o.stride() == e.stride(), f"{o.shape} {o.dtype} {o.stride()} for {e.shape} {e.dtype} {e.stride()}"
        step = torch.finfo(o.dtype).eps / 2 if o.dtype.is_floating_point else 0.5
        worst = max(worst, error(o, x) / (2 * max(error(e, x), step)))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    parser.add_argument("--seconds", type=float, default=1e9, help="draw no more after this long")
    parser.add_argument("--show", action="store_true", help="every case, not only what is wrong or slow")
    options = parser.parse_args()
    draw, wrong, slow, done, started = random.Random(options.seed), 0, 0, 0, time.time()
    for number in range(options.count):
        kind = draw.choice(options.only.split(",") if options.only else list(KINDS))
        dtype = draw.choice([torch.bfloat16, torch.float16, torch.float32])
        rows, columns = draw_shape(draw, draw.randint(24, 64) * 1000000 // (2 if dtype == torch.float32 else 1))
        fn, matrices, vectors, writes = KINDS[kind]
        torch.manual_seed(number)
        args = [matrix(draw, rows, columns, dtype) for _ in range(matrices)] + [torch.randn(columns, device="cuda").to(dtype) for _ in range(vectors)]
        if time.time() - started > options.seconds:
            break
        layouts = ",".join("x".join(map(str, a.stride())) for a in args[:matrices])
        text = f"{number:3d} {kind:20s} {str(dtype)[6:]:9s} {rows}x{columns} strides {layouts}"
        path = os.path.join(FOLDER, f"{number}.pt2")
        torch.export.save(torch.export.export(Function(fn), tuple(args)), path)
        try:
            model = tilewright.load(path, target="cuda")
            ours = outputs(model(*args))
            over = check(ours, outputs(fn(*args)), outputs(fn(*[a.double() for a in args])))
        except Exception as failure:
            wrong += 1
            print(f"{text}: FAILED {str(failure)[:300]}", flush=True)
            continue
        done += 1
        bytes_ = sum(a.numel() * a.element_size() for a in args) + sum(o.numel() * o.element_size() for o in ours)
        ratio = None
        if bytes_ > LARGE:
            half = torch.empty(bytes_ // 4, device="cuda", dtype=torch.bfloat16)
            other = torch.empty_like(half)
            ours_us, copy_us = replay_times([capture(lambda: model(*args), 1), capture(lambda: other.copy_(half), 1)], 9)
            ratio = ours_us / copy_us
            text += f"  {ours_us:.1f} us, copy {copy_us:.1f}, {ratio:.2f}"
        bad = over > 1 or math.isnan(over)
        wrong += bad
        slow += ratio is not None and ratio > 1.15
        if bad or options.show or (ratio is not None and ratio > 1.15):
            print(f"{text}  error {over:.2f}{' WRONG' if bad else ''}", flush=True)
        del ours, model, args
    print(f"{done} cases, {wrong} wrong, {slow} of those over 64 MB more than 15 % over a copy")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
