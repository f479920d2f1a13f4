"""Sorts, scans, gathers, scatters and windows on the GPU: ours under default schedules against PyTorch eager, checked against it.

    python apps/bench/gpu/rows_and_gathers.py [--only NAME,NAME] [--budget SECONDS]     a budget tunes each program first"""

import argparse
import math
import os
import tempfile

import torch
import torch.nn.functional as F

import tilewright
from graph_times import capture, replay_time


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def index(count, *shape):
    return torch.randint(0, count, shape, device="cuda")


def image(batch, channels, size, layout):
    return normal(batch, channels, size, size, dtype=torch.bfloat16).to(memory_format=layout)


CONTIGUOUS, CHANNELS_LAST = torch.contiguous_format, torch.channels_last

# name → (function, its inputs made when they are needed)
PROGRAMS = {
    "sort_rows_4096x4096": (lambda x: torch.sort(x, -1), lambda: [normal(4096, 4096)]),
    "sort_rows_8192x1024": (lambda x: torch.sort(x, -1), lambda: [normal(8192, 1024)]),
    "sort_rows_1024x16384": (lambda x: torch.sort(x, -1), lambda: [normal(1024, 16384)]),
    "sort_rows_65536x64": (lambda x: torch.sort(x, -1), lambda: [normal(65536, 64)]),
    "argsort_64x65536": (lambda x: torch.argsort(x, -1), lambda: [normal(64, 65536)]),
    "topk50_64x50257": (lambda x: torch.topk(x, 50, -1), lambda: [normal(64, 50257)]),
    "topk8_8192x128": (lambda x: torch.topk(x, 8, -1), lambda: [normal(8192, 128)]),
    "cumsum_rows_4096x8192": (lambda x: torch.cumsum(x, -1), lambda: [normal(4096, 8192)]),
    "cumsum_columns_4096x8192": (lambda x: torch.cumsum(x, 0), lambda: [normal(4096, 8192)]),
    "cummax_rows_4096x4096": (lambda x: torch.cummax(x, -1), lambda: [normal(4096, 4096)]),
    "argmax_64x50257": (lambda x: torch.argmax(x, -1), lambda: [normal(64, 50257)]),
    "embedding_1M_of_100k_x64": (lambda t, i: F.embedding(i, t), lambda: [normal(100_000, 64), index(100_000, 1 << 20)]),
    "gather_4096x4096": (lambda x, i: torch.gather(x, 1, i), lambda: [normal(4096, 4096), index(4096, 4096, 4096)]),
    "index_select_columns": (lambda x, i: torch.index_select(x, 1, i), lambda: [normal(4096, 4096), index(4096, 4096)]),
    "scatter_add_1M_x64": (
        lambda v, i: torch.zeros(100_000, 64, device=v.device).index_add(0, i, v),
        lambda: [normal(1 << 20, 64), index(100_000, 1 << 20)],
    ),
    "scatter_add_16M_of_1M": (
        lambda v, i: torch.zeros(1 << 20, device=v.device).scatter_add(0, i, v),
        lambda: [normal(1 << 24), index(1 << 20, 1 << 24)],
    ),
    "scatter_rows_4096x4096": (lambda x, i, v: torch.scatter(x, 1, i, v), lambda: [normal(4096, 4096), torch.argsort(normal(4096, 4096), -1), normal(4096, 4096)]),
    "max_pool_last": (lambda x: F.max_pool2d(x, 3, 2, 1), lambda: [image(64, 64, 112, CHANNELS_LAST)]),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), lambda: [image(64, 64, 112, CONTIGUOUS)]),
    "avg_pool_last": (lambda x: F.avg_pool2d(x, 3, 2, 1), lambda: [image(64, 64, 112, CHANNELS_LAST)]),
    "avg_pool2": (lambda x: F.avg_pool2d(x, 2), lambda: [image(64, 64, 112, CONTIGUOUS)]),
    "adaptive7_last": (lambda x: F.adaptive_avg_pool2d(x, 7), lambda: [image(64, 64, 112, CHANNELS_LAST)]),
    "adaptive7": (lambda x: F.adaptive_avg_pool2d(x, 7), lambda: [image(64, 64, 112, CONTIGUOUS)]),
    "global_pool_last": (lambda x: F.adaptive_avg_pool2d(x, 1), lambda: [image(64, 256, 56, CHANNELS_LAST)]),
    "global_pool": (lambda x: F.adaptive_avg_pool2d(x, 1), lambda: [image(64, 256, 56, CONTIGUOUS)]),
    "nearest_last": (lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"), lambda: [image(64, 64, 56, CHANNELS_LAST)]),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"), lambda: [image(64, 64, 56, CONTIGUOUS)]),
    "bilinear_last": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), lambda: [image(64, 64, 56, CHANNELS_LAST)]),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), lambda: [image(64, 64, 56, CONTIGUOUS)]),
}


def export(name, fn, inputs, folder):
    class Function(torch.nn.Module):
        def forward(self, *given):
            result = fn(*given)
            return result if isinstance(result, torch.Tensor) else tuple(result)

    path = os.path.join(folder, name + ".pt2")
    torch.export.save(torch.export.export(Function(), tuple(inputs)), path)
    return path


def tensors_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def measure(name, budget, folder):
    """Microseconds of ours, eager, and a copy of what is read and written at least once; whether the values agree."""
    fn, make = PROGRAMS[name]
    inputs = make()
    expected = tensors_of(fn(*inputs))
    path = export(name, fn, inputs, folder)
    schedule = None
    if budget:
        schedule = path.replace(".pt2", ".schedule")
        tilewright.autotune(path, target="cuda", out=schedule, budget=budget)
    ours = tilewright.load(path, schedule=schedule, target="cuda")
    got = tensors_of(ours(*inputs))
    if "sort" in name or "topk" in name:  # equal keys may stand in any order
        agree = torch.equal(got[0], expected[0]) if len(got) == 2 else torch.equal(inputs[0].gather(-1, got[0]), inputs[0].gather(-1, expected[0]))
    else:
        agree = all(torch.allclose(g.float(), e.float(), rtol=2e-2, atol=2e-2) for g, e in zip(got, expected))
    read_and_written = sum(t.numel() * t.element_size() for t in inputs + expected)
    half = torch.empty(read_and_written // 2, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(half)
    with torch.no_grad():
        return (
            replay_time(capture(lambda: ours(*inputs)), 11),
            replay_time(capture(lambda: fn(*inputs)), 11),
            replay_time(capture(lambda: other.copy_(half)), 11),
            agree,
        )


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--budget", type=float, default=0)
    arguments = arguments.parse_args()
    chosen = [n for n in arguments.only.split(",") if n] or list(PROGRAMS)
    logs = []
    print(f"{'us':28s} {'ours':>9s} {'eager':>9s} {'copy':>9s}  ours/eager")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            try:
                ours, eager, copy, agree = measure(name, arguments.budget, folder)
            except Exception as problem:
                print(f"{name:28s} {str(problem)[:200]}", flush=True)
                continue
            logs.append(math.log(ours / eager))
            print(f"{name:28s} {ours:9.1f} {eager:9.1f} {copy:9.1f}  {ours / eager:6.2f}{'' if agree else '  WRONG'}", flush=True)
    if logs:
        print(f"geometric mean of ours/eager: {math.exp(sum(logs) / len(logs)):.2f}")


if __name__ == "__main__":
    main()
