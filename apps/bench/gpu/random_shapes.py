"""Kernels like the workloads', of random shapes, against float64, and their time over a copy.   random_shapes.py [--count 60] [--seed 0] [--show]

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


def harris(x):
    def at(a, i, j):
        return a[i : a.shape[0] - 2 + i, j : a.shape[1] - 2 + j]

    def box(a):
        return sum(at(a, i, j) for i in range(3) for j in range(3))

    x = wide(x)
    down = (at(x, 2, 0) - at(x, 0, 0) + (at(x, 2, 1) - at(x, 0, 1)) * 2 + at(x, 2, 2) - at(x, 0, 2)) / 12
    right = (at(x, 0, 2) - at(x, 0, 0) + (at(x, 1, 2) - at(x, 1, 0)) * 2 + at(x, 2, 2) - at(x, 2, 0)) / 12
    xx, yy, xy = box(right * right), box(down * down), box(right * down)
    return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2


def blur(x):
    x = wide(x)
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) / 3


def adamw(p, g, m, v):
    m = m * 0.9 + g * 0.1
    v = v * 0.99 + g * g * 0.01
    return p * 0.999 - 1e-3 * m / (v.abs().sqrt() + 1e-8), m, v


def wide_pointwise(*xs):
    terms = [torch.tanh(xs[i] * xs[(i * 7 + 3) % 12]) for i in range(12)]
    out = xs[0]
    for i in range(12):
        out = out * 0.5 + terms[(i * 5 + 5) % 12] * terms[11 - i]
    return out


def norm_chain(a, b, c, g):
    x = F.layer_norm(a, a.shape[-1:], g)
    y = F.layer_norm(b + x, a.shape[-1:], g)
    return torch.softmax(y * c, -1) * x.amax(-1, keepdim=True) + y.std(-1, keepdim=True)


# name -> (function, its arguments: m a matrix, v a vector of a row's length, i a row's index of a column, r a row's index of a row)
KINDS = {
    "softmax": (lambda x: torch.softmax(x, -1), "m"),
    "log_softmax": (lambda x: F.log_softmax(wide(x), -1).to(x.dtype), "m"),
    "logsumexp": (lambda x: torch.logsumexp(wide(x), -1), "m"),
    "cross_entropy": (lambda x, t: F.cross_entropy(wide(x), t), "mi"),
    "layer_norm": (lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b), "mvv"),
    "rms_norm": (lambda x, y, g: ((x + y) * torch.rsqrt(wide(x + y).pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * g, "mmv"),
    "layer_norm_backward": (layernorm_backward, "mmv"),
    "embedding_layer_norm": (lambda e, p, t, g, b: F.layer_norm(e[t] + p, e.shape[-1:], g, b), "mmrvv"),
    "group_norm": (lambda x, g, b: F.silu(F.group_norm(x, 4 if x.shape[1] % 4 == 0 else 1, g, b)), "mvv"),
    "batch_norm": (lambda x, g, b: F.relu(F.batch_norm(x, None, None, g, b, True)), "mvv"),
    "norm_chain": (norm_chain, "mmmv"),
    "column_sum": (lambda x: x.sum(0), "m"),
    "row_sum": (lambda x: x.sum(-1), "m"),
    "row_max": (lambda x: x.amax(-1), "m"),
    "argmax": (lambda x: x.argmax(-1), "m"),
    "centre_columns": (lambda x: (x - wide(x).mean(0)).to(x.dtype), "m"),
    "variance": (lambda x: wide(x).var(-1), "m"),
    "cumsum": (lambda x: x.cumsum(-1), "m"),
    "gelu_bias": (lambda x, y, b: F.gelu(x + b, approximate="tanh") + y, "mmv"),
    "adamw": (adamw, "mmmm"),
    "wide_pointwise": (wide_pointwise, "m" * 12),
    "transpose": (lambda x: (x.t() * 2).contiguous(), "m"),
    "clamp_scale": (lambda x, g: (x * g).clamp(-1, 1), "mv"),
    "blur": (blur, "m"),
    "harris": (harris, "m"),
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


def argument(draw, letter, rows, columns, dtype):
    if letter == "m":
        return matrix(draw, rows, columns, dtype)
    if letter == "v":
        return torch.randn(columns, device="cuda").to(dtype)
    return torch.randint(0, columns if letter == "i" else rows, (rows,), device="cuda")


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
        over = error(o, x) / (2 * max(error(e, x), step))
        worst = math.inf if math.isnan(over) else max(worst, over)
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
        fn, letters = KINDS[kind]
        elements = draw.randint(24, 64) * 1000000 // (2 if dtype == torch.float32 else 1) // (1 if len(letters) < 5 else 3)
        rows, columns = (max(4, size) for size in draw_shape(draw, elements))
        torch.manual_seed(number)
        args = [argument(draw, letter, rows, columns, dtype) for letter in letters]
        if time.time() - started > options.seconds:
            break
        layouts = ",".join("x".join(map(str, a.stride())) for a, letter in zip(args, letters) if letter == "m")
        text = f"{number:3d} {kind:20s} {str(dtype)[6:]:9s} {rows}x{columns} strides {layouts}"
        path = os.path.join(FOLDER, f"{number}.pt2")
        torch.export.save(torch.export.export(Function(fn), tuple(args)), path)
        try:
            model = tilewright.load(path, target="cuda")
            ours = outputs(model(*args))
            over = check(ours, outputs(fn(*args)), outputs(fn(*[a.double() if a.is_floating_point() else a for a in args])))
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
            copies = (lambda: other.copy_(half), lambda: torch.neg(half, out=other))  # the driver's copy is the slower one in a graph
            ours_us, *copies_us = replay_times([capture(fn, 1) for fn in (lambda: model(*args), *copies)], 9)
            copy_us = min(copies_us)
            ratio = ours_us / copy_us
            text += f"  {ours_us:.1f} us, copy {copy_us:.1f}, {ratio:.2f}"
        bad = over > 1
        wrong += bad
        slow += ratio is not None and ratio > 1.15
        if bad or options.show or (ratio is not None and ratio > 1.15):
            print(f"{text}  error {over:.2f}{' WRONG' if bad else ''}", flush=True)
        del ours, model, args
    print(f"{done} cases, {wrong} wrong, {slow} of those over 64 MB more than 15 % over a copy")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
