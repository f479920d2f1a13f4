"""Random convolutions on the GPU against float64: sizes, layouts, slices, windows, groups, epilogues.   convolutions.py [--count 200] [--seed 0] [--jobs N]

Four convolutions share a program, of which some read what another gives out. Each output may be as far from a float64 reference as twice eager's own error or a
rounding step of its type."""

import argparse
import functools
import os
import random
import sys

import torch
import torch.nn.functional as F

import in_processes
from exported import outputs_together

PER_PROGRAM = 4


class Convolution:
    """A convolution of two dimensions, drawn by `rng`: its inputs, and as text."""

    def __init__(self, rng, generator):
        dtype = rng.choice([torch.bfloat16, torch.bfloat16, torch.float16, torch.float32])
        groups = rng.choice([1, 1, 1, 1, 2, 4])
        channels, outputs = (groups * rng.choice([3, 8, 16, 26, 40, 52, 64, 72, 128]) for _ in range(2))
        kernel = [rng.choice([1, 2, 3, 3, 3, 5]) for _ in range(2)]
        self.how = {"stride": [rng.choice([1, 1, 1, 2]) for _ in range(2)], "dilation": [rng.choice([1, 1, 1, 2]) for _ in range(2)], "groups": groups}
        self.how["padding"] = [rng.randint(0, d * (k - 1)) for k, d in zip(kernel, self.how["dilation"])]
        spatial = [d * (k - 1) + rng.randint(1, 40) for k, d in zip(kernel, self.how["dilation"])]
        self.extra, self.last, self.relu, self.residual = rng.choice([0, 0, 26, 8]), rng.random() < 0.6, rng.random() < 0.5, rng.random() < 0.3
        self.first = rng.choice([0, self.extra])

        def tensor(*shape, scale=1.0):
            return (torch.randn(*shape, generator=generator, device="cuda") * scale).to(dtype)

        x = tensor(rng.randint(1, 4), channels + self.extra, *spatial)
        x = x.contiguous(memory_format=torch.channels_last) if self.last else x
        terms = channels // groups * kernel[0] * kernel[1]
        self.channels = channels
        self.args = [x, tensor(outputs, channels // groups, *kernel, scale=terms**-0.5), tensor(outputs)]
        self.again = tensor(outputs, outputs, 3, 3, scale=(9 * outputs)**-0.5) if rng.random() < 0.4 else None
        self.args += [self.again] if self.again is not None else []
        self.text = f"{tuple(x.shape)} {'last' if self.last else 'first'} by {tuple(self.args[1].shape)} {self.how} slice {self.first}+{self.extra} {dtype}"

    def compute(self, x, w, b, again=None):
        y = F.conv2d(x[:, self.first:self.first + self.channels], w, b, **self.how)
        y = y + b.view(-1, 1, 1) * y if self.residual else y
        y = torch.relu(y) if self.relu else y
        return [y] if again is None else [y, F.conv2d(y, again, stride=2, padding=1)]


def wrong(out, eager, reference):
    if out.shape != eager.shape or out.dtype != eager.dtype or out.stride() != eager.stride():
        return f"is {out.dtype}{tuple(out.shape)} strides {out.stride()}"
    scale = reference.abs().max().item() or 1.0
    error, allowed = ((t.double() - reference).abs().max().item() / scale for t in (out, eager))
    allowed = 2 * max(allowed, torch.finfo(out.dtype).eps)
    return "" if error <= allowed else f"error {error:.3g}, allowed {allowed:.3g}"


def check(seed, number):
    """What is wrong with the convolutions of one program."""
    rng, generator = random.Random(f"{seed} {number}"), torch.Generator("cuda").manual_seed(1000 * seed + number)
    convolutions = [Convolution(rng, generator) for _ in range(PER_PROGRAM)]
    outputs = iter(outputs_together(convolutions))
    messages = []
    for one in convolutions:
        for eager, reference in zip(one.compute(*one.args), one.compute(*[a.double() for a in one.args]), strict=True):
            message = wrong(next(outputs), eager, reference)
            messages += [f"{one.text}: {message}"] if message else []
    return messages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    return in_processes.report(functools.partial(check, options.seed), options.count, PER_PROGRAM, "convolutions", options.jobs)


if __name__ == "__main__":
    sys.exit(main())
