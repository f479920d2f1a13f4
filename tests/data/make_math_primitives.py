"""Writes math_primitives.txt: PyTorch's values of the scalar primitives over edge inputs, as hexadecimal representations.

A block is `NAME TYPE RESULT_TYPE ULPS COUNT`, then COUNT lines of inputs and the value. Transcendental functions are computed in float64.
"""
import math
import struct
import sys

import torch

F = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.5, 2.5, 1.5, 0.1, -0.1, 1e-3, -1e-3, 1e-8, -1e-8, 1e-20, 1e-38, 1.1754944e-38, 1e-40, -1e-40,
     1.401298464324817e-45, 10.0, -10.0, 17.3, 80.0, 88.0, 88.72, 88.73, 89.0, -87.0, -87.4, -100.0, -103.9, -104.5, 127.5, 128.0, -126.5, -149.2, 1e4, -1e4, 1e10,
     3e38, -3e38, math.inf, -math.inf, math.nan, 0.99999994, 1.0000001, 0.7, 0.70710678, 1.4142135, 0.9277, 0.928, 3.9, 4.1, -5.5, 6.0, 9.2, 12.5, 0.34, 0.35, 8388607.5]
PAIRS = [(a, b) for a in [0.0, -0.0, 1.0, 2.5, -7.0, 1e-40, 3e38, -math.inf, math.nan]
         for b in [0.0, -0.0, 1.0, -3.0, 0.5, 2e38, math.inf, -math.inf, math.nan]]
UNARY = {"exp": 2, "exp2": 2, "expm1": 3, "log": 2, "log2": 2, "log10": 2, "log1p": 3, "tanh": 3, "erf": 2, "sqrt": 0, "rsqrt": 1, "sin": 1, "cos": 1, "tan": 1,
         "asin": 1, "acos": 1, "atan": 1, "sinh": 2, "cosh": 2, "asinh": 2, "acosh": 2, "atanh": 2, "erfc": 2, "erfinv": 2, "lgamma": 2, "digamma": 2, "floor": 0,
         "ceil": 0, "trunc": 0, "round": 0, "abs": 0, "neg": 0, "signbit": 0, "isnan": 0, "isinf": 0, "isfinite": 0}
BINARY = {"add": 0, "sub": 0, "mul": 0, "div_true": 0, "pow": 2, "fmod": 0, "remainder": 0, "div_floor": 0, "div_trunc": 0, "atan2": 2, "copysign": 0, "hypot": 1,
          "minimum": 0, "maximum": 0, "eq": 0, "ne": 0, "lt": 0, "le": 0, "gt": 0, "ge": 0, "nextafter": 0}
TORCH = {"sqrt": lambda x: torch.tensor([math.sqrt(v) if v >= 0 or v != v else math.nan for v in x.tolist()], dtype=x.dtype),  # torch.sqrt of float64 is off by one ulp
         "div_true": torch.div, "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"), "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
         "shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift, "isnan": torch.isnan}
EXACT = {"floor", "ceil", "trunc", "round", "abs", "neg", "signbit", "isnan", "isinf", "isfinite", "add", "sub", "mul", "div_true", "fmod", "remainder", "div_floor",
         "div_trunc", "copysign", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge", "nextafter", "sqrt"}
CODES = {torch.float32: "I", torch.float64: "Q", torch.int8: "B", torch.uint8: "B", torch.int32: "I", torch.int64: "Q", torch.bool: "B", torch.bfloat16: "H", torch.float16: "H"}
SAME_SIZE = {"B": torch.uint8, "H": torch.int16, "I": torch.int32, "Q": torch.int64}


def bits(t):
    code = CODES[t.dtype]
    width = struct.calcsize(code) * 8
    return [f"{v & ((1 << width) - 1):x}" for v in t.view(SAME_SIZE[code]).tolist()]


def name(dtype):
    return str(dtype).removeprefix("torch.")


def block(out, op, ulps, inputs, result):
    out.write(f"{op} {name(inputs[0].dtype)} {name(result.dtype)} {ulps} {len(result)}\n")
    for row in zip(*[bits(t) for t in inputs], bits(result)):
        out.write(" ".join(row) + "\n")


def function(op):
    return TORCH.get(op) or getattr(torch, op, None) or getattr(torch.special, op)


def one_by_one(f, *tensors):
    """Scalar by scalar: PyTorch's vector code treats ties of signed zeros otherwise than its scalar code."""
    return torch.stack([f(*values) for values in zip(*tensors)])


def main():
    with open("tests/data/math_primitives.txt", "w") as out:
        for dtype in (torch.float32, torch.float64):
            x = torch.tensor(F, dtype=dtype)
            for op, ulps in UNARY.items():
                y = function(op)(x) if op in EXACT else function(op)(x.double()).to(dtype)
                wide = 64 if op == "digamma" else max(ulps, 2) * 4  # digamma cancels near its root
                block(out, op, ulps if dtype == torch.float32 or op in EXACT else wide, [x], y)
            a, b = (torch.tensor(v, dtype=dtype) for v in zip(*PAIRS))
            for op, ulps in BINARY.items():
                y = one_by_one(function(op), a, b) if op in EXACT else function(op)(a.double(), b.double()).to(dtype)
                block(out, op, ulps if dtype == torch.float32 or op in EXACT else max(ulps, 1) * 4, [a, b], y)
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
            info = torch.iinfo(dtype)
            values = [0, 1, 2, 7, 100, info.max] + ([-1, -2, -7, info.min, info.min + 1] if info.min < 0 else [])
            pairs = [(p, q) for p in values for q in values]
            a, b = (torch.tensor(v, dtype=dtype) for v in zip(*pairs))
            for op in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "minimum", "maximum"):
                block(out, op, 0, [a, b], function(op)(a, b))
            keep = b != 0
            a, b = a[keep], b[keep]
            if info.min < 0:  # PyTorch's own quotient of the smallest value by -1 is undefined
                keep = ~((a == info.min) & (b == -1))
                a, b = a[keep], b[keep]
            for op in ("div_floor", "div_trunc", "fmod", "remainder"):
                block(out, op, 0, [a, b], function(op)(a, b))
            keep = (b >= 0) & (b < info.bits)
            for op in ("shift_left", "shift_right", "pow"):
                block(out, op, 0, [a[keep], b[keep]], function(op)(a[keep], b[keep]))
            x = torch.tensor(values, dtype=dtype)
            for op in ("neg", "abs", "bitwise_not"):
                if op != "abs" or info.min < 0:
                    block(out, op, 0, [x], function(op)(x))
        halves = F + [65504.0, 65519.9, 65520.0, 6e-8, 2.98e-8, 3e-8, 1.00390625, 1.01171875, 1.0078125, 0.33333334, 3.3895e38, 3.39e38]
        x = torch.tensor(halves)
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.bool):
            block(out, "convert", 0, [x], x.to(dtype))
            if dtype != torch.bool:
                y = x.to(dtype)
                block(out, "convert", 0, [y], y.float())
        small = torch.tensor([0.0, -0.0, 1.7, -1.7, 255.5, 300.0, -128.9, 40000.0, 2147483520.0])
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
            block(out, "convert", 0, [small], small.to(dtype))
        wide = torch.tensor([0, 1, -1, 255, 256, -129, 2**31 - 1, 2**24 + 1, 2**53 + 1, -(2**63), 2**63 - 1])
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.float32, torch.float64, torch.bool, torch.bfloat16):
            block(out, "convert", 0, [wide], wide.to(dtype))


if __name__ == "__main__":
    sys.exit(main())
