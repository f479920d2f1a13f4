"""Random contractions on the GPU against float64: shapes, types, layouts, prologues, epilogues.   contractions.py [--count 500] [--seed 0] [--jobs N]

Ten contractions share a program. Each output may be as far from a float64 reference as twice eager's own error, a rounding step of its type, or what a sum of
k terms in float32 is likely to lose: sqrt(k) of its steps (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019). What is infinite
or no number in the reference is so in the output."""

import argparse
import functools
import math
import os
import random
import sys

import torch
import torch.nn.functional as F

import in_processes
from exported import outputs_together

PER_PROGRAM = 10
GROUP = 32  # terms that share a scale
FLOAT32_ROUNDING = 2.0**-24  # the most by which one rounding changes a number, relative to it


def size(rng):
    """Mostly small and odd, sometimes what fits tiles, sometimes a few rows."""
    return rng.choice([rng.randint(1, 8), rng.randint(9, 200), 8 * rng.randint(1, 40), 64 * rng.randint(1, 8), rng.randint(200, 600)])


class Contraction:
    """One expression with its inputs, drawn by `rng`."""

    def __init__(self, rng, generator):
        self.rng, self.generator = rng, generator
        self.dtype = rng.choice([torch.bfloat16, torch.bfloat16, torch.float16, torch.float32])
        self.m, self.n, self.k = size(rng), size(rng), size(rng)
        self.batch = rng.choice([0, 0, 0, 1, 3])
        self.args = []
        self.words = []
        left, right = self.operand(self.m, self.k, "left"), self.operand(self.k, self.n, "right")
        self.kind = rng.choice(["plain", "plain", "gate"]) if not self.batch else "plain"
        third = self.operand(self.k, self.n, "right") if self.kind == "gate" else None
        epilogue = self.epilogue()

        def compute(*inputs):
            product = left(inputs) @ right(inputs)
            product = F.silu(product) * (left(inputs) @ third(inputs)) if third else product
            return epilogue(product, inputs)

        self.compute = compute
        self.text = f"{self.m}x{self.n}x{self.k} batch {self.batch} {str(self.dtype)[6:]} {self.kind} {' '.join(self.words)}"

    def tensor(self, *shape, scale=1.0):
        self.args.append((torch.randn(*shape, generator=self.generator, device="cuda") * scale).to(self.dtype))
        return len(self.args) - 1

    def operand(self, rows, columns, side):
        """A function of the inputs that gives [batch, rows, columns]: its layout in memory and what is computed on the way."""
        lead = (self.batch,) if self.batch else ()
        layout = self.rng.choice(["rows", "columns", "slice"])
        prologue = self.rng.choice(["none", "none", "none", "int8", "scaled", "cast", "groups", "gather"])
        self.words.append(f"{side} {layout} {prologue}")
        scale = 1 / max(self.k, 1) ** 0.25
        if layout == "columns":
            at = self.tensor(*lead, columns, rows, scale=scale)
        elif layout == "slice":
            at = self.tensor(*lead, rows, columns + self.rng.choice([1, 8, 16]), scale=scale)
        else:
            at = self.tensor(*lead, rows, columns, scale=scale)
        if prologue in ("int8", "groups"):
            self.args[at] = torch.randint(-8, 8, self.args[at].shape, generator=self.generator, device="cuda", dtype=torch.int8)
        by = None
        if prologue == "scaled":
            by = self.tensor(*((rows, 1) if side == "left" else (1, columns)))
        elif prologue == "groups":
            by = self.group_scales(rows, columns, side)
        elif prologue == "gather":
            by = self.tensor(rows)
            self.args[by] = torch.randint(0, rows, (rows,), generator=self.generator, device="cuda")
        along = -1 if side == "left" else -2
        dtype = self.dtype

        def read(inputs):
            x = inputs[at]
            x = x.transpose(-1, -2) if layout == "columns" else x[..., :columns] if layout == "slice" else x
            if prologue == "int8":
                x = x.to(inputs[-1].dtype) * 0.125
            elif prologue == "groups":
                x = x.to(inputs[-1].dtype) * inputs[by].repeat_interleave(GROUP, along).narrow(along, 0, x.shape[along])
            elif prologue == "gather":
                x = x.index_select(-2, inputs[by])
            elif prologue == "scaled":
                x = x * inputs[by]
            return x if prologue != "cast" or inputs[-1].dtype == torch.float64 else x.float().to(dtype)

        return read

    def group_scales(self, rows, columns, side):
        """A scale for each group of terms; one in four tensors has one that is infinite, which must not spread to its neighbours."""
        groups = -(-self.k // GROUP)
        at = self.tensor(*((rows, groups) if side == "left" else (groups, columns)), scale=0.1)
        if self.rng.random() < 0.25:
            self.words.append("infinite scale")
            self.args[at].view(-1)[self.rng.randrange(self.args[at].numel())] = float("inf")
        return at

    def epilogue(self):
        kinds = self.rng.sample(["bias", "residual", "relu", "gelu", "scale", "column"], self.rng.randint(0, 3))
        self.words.append("then " + (" ".join(kinds) or "nothing"))
        lead = (self.batch,) if self.batch else ()
        places = {"bias": (self.n,), "residual": (*lead, self.m, self.n), "column": (self.m, 1)}
        at = {kind: self.tensor(*places[kind]) for kind in kinds if kind in places}
        self.tensor(1)  # the type of the whole: float64 in the reference

        def finish(x, inputs):
            for kind in kinds:
                if kind in ("bias", "residual"):
                    x = x + inputs[at[kind]]
                elif kind == "column":
                    x = x * inputs[at[kind]]
                else:
                    x = {"relu": torch.relu, "gelu": F.gelu, "scale": lambda t: t * 0.5}[kind](x)
            return x + inputs[-1]

        return finish


def wrong(one, out):
    eager = one.compute(*one.args)
    reference = one.compute(*[a.double() if a.is_floating_point() else a for a in one.args])
    if out.shape != eager.shape or out.dtype != eager.dtype:
        return f"is {out.dtype}{tuple(out.shape)}"
    both = reference.isfinite() == eager.isfinite()  # eager overflows some types
    if not torch.equal(out.isfinite() & both, reference.isfinite() & both) or not torch.equal(out.isnan() & both, reference.isnan() & both):
        return "is infinite, or no number, at other places"
    numbers = both & reference.isfinite()
    if not numbers.any():
        return ""
    scale = reference[numbers].abs().max().item() or 1.0
    error, allowed = ((t.double() - reference)[numbers].abs().max().item() / scale for t in (out, eager))
    allowed = 2 * max(allowed, torch.finfo(out.dtype).eps, math.sqrt(one.k) * FLOAT32_ROUNDING)
    return "" if error <= allowed else f"error {error:.3g}, allowed {allowed:.3g}"


def check(seed, number):
    """What is wrong with the contractions of one program."""
    rng, generator = random.Random(f"{seed} {number}"), torch.Generator("cuda").manual_seed(1000 * seed + number)
    contractions = [Contraction(rng, generator) for _ in range(PER_PROGRAM)]
    outputs = outputs_together(contractions)
    found = ((one.text, wrong(one, out)) for one, out in zip(contractions, outputs, strict=True))
    return [f"{text}: {message}" for text, message in found if message]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    return in_processes.report(functools.partial(check, options.seed), options.count, PER_PROGRAM, "contractions", options.jobs)


if __name__ == "__main__":
    sys.exit(main())
