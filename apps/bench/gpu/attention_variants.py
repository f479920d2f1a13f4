"""Attention drawn at random, one kernel each where it streams, against float64.   attention_variants.py [--count 200] [--seed 0] [--largest 700] [--jobs N] [--show]

Types, head sizes, lengths, grouped queries, layouts of the operands, scales, masks of every kind, score functions, symbolic lengths; as
scaled_dot_product_attention and written out. Wrong is what errs by more than twice PyTorch eager's own error, or has other strides than the program says."""

import argparse
import functools
import math
import os
import random
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import in_processes
import tilewright
from exported import Function

def operand(layout, dtype, batch, heads, length, width):
    """A tensor [batch, heads, length, width], perhaps with its heads interleaved or a slice of a wider one."""
    if layout == "plain":
        return torch.randn(batch, heads, length, width, device="cuda").to(dtype)
    if layout == "interleaved":
        return torch.randn(batch, length, heads, width, device="cuda").to(dtype).transpose(1, 2)
    return torch.randn(batch, heads, length, width + 8, device="cuda").to(dtype)[..., :width]


def mask_of(draw, kind, dtype, batch, heads, rows, columns):
    """What is added to the scores, or where they count; None for masks that are made of places."""
    shape = (draw.choice([1, batch]), draw.choice([1, heads]), rows, columns)
    if kind == "bias":
        return torch.randn(shape, device="cuda").to(dtype)
    if kind == "boolean":
        mask = torch.rand(shape, device="cuda") > 0.4
        mask[..., 0] = True
        return mask
    if kind == "boolean, empty rows":
        mask = torch.rand(shape, device="cuda") > 0.4
        mask[..., rows // 2, :] = False
        return mask
    return None


def written_out(kind, scale, window, cap, group):
    """softmax(score(q @ k)) @ v, with one's own score function."""

    def attention(q, k, v, *mask):
        if group > 1:
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = (q @ k.transpose(-1, -2)).to(torch.promote_types(q.dtype, torch.float32)) * scale
        if cap:
            scores = torch.tanh(scores / cap) * cap
        row = torch.arange(scores.shape[-2], device=q.device)[:, None]
        column = torch.arange(scores.shape[-1], device=q.device)
        if kind == "alibi":
            slope = torch.exp2(-torch.arange(1, scores.shape[1] + 1, device=q.device) * 0.5).to(scores.dtype)
            scores = scores - slope[:, None, None] * (row - column).abs()
        if kind in ("causal", "alibi"):
            scores = scores.masked_fill(column > row, -math.inf)
        elif kind == "window":
            scores = scores.masked_fill((column > row) | (column < row - window), -math.inf)
        elif kind == "prefix":
            scores = torch.where((column <= row) | (column < window), scores, -math.inf)
        elif kind == "bias":
            scores = scores + mask[0]
        elif mask:
            scores = torch.where(mask[0], scores, -math.inf)
        return torch.softmax(scores, -1).to(q.dtype) @ v

    return attention


def variant(number, seed, largest):
    draw = random.Random(f"{seed} {number}")
    torch.manual_seed(number)
    dtype = draw.choice([torch.bfloat16, torch.float16])
    width = draw.choice([32, 40, 64, 64, 72, 80, 96, 128, 128, 160, 192, 256])
    value_width = draw.choice([width, width, 64, 128])
    batch, group, keys_of = draw.choice([1, 2, 3]), draw.choice([1, 1, 2, 4]), draw.choice([1, 2, 3])
    heads = group * keys_of
    rows = draw.choice([draw.randint(2, largest), 64, 128, 256])
    columns = draw.choice([rows, rows, draw.randint(2, largest), 192])
    own_form = draw.random() < 0.5
    kind = draw.choice(["none", "causal", "bias", "boolean", "boolean, empty rows"] + (["window", "prefix", "alibi"] if own_form else []))
    scale = draw.choice([1 / math.sqrt(width), 0.2])
    symbolic = kind in ("none", "causal", "window", "prefix", "alibi") and rows == columns and group == 1 and draw.random() < 0.6
    layouts = ["plain"] if symbolic else ["plain", "plain", "interleaved", "slice"]
    q = operand(draw.choice(layouts), dtype, batch, heads, rows, width)
    k = operand(draw.choice(layouts), dtype, batch, keys_of, columns, width)
    v = operand(draw.choice(layouts), dtype, batch, keys_of, columns, value_width)
    mask = mask_of(draw, kind, dtype, batch, heads, rows, columns)
    args = (q, k, v) if mask is None else (q, k, v, mask)
    window, cap = draw.randint(0, columns), draw.choice([0, 0, 15.0])
    if own_form:
        fn = written_out(kind, scale, window, cap, group)
        text = f"written out, {kind}, cap {cap:g}"
    else:
        def fn(q, k, v, *m):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=m[0] if m else None, is_causal=kind == "causal", scale=scale, enable_gqa=group > 1)
        text = f"sdpa, {kind}"
    text = f"{str(dtype)[6:]:8} b{batch} h{heads}/{keys_of} {rows}x{columns} d{width}/{value_width} {text}{', symbolic' if symbolic else ''}"
    shapes = None
    if symbolic:
        length = torch.export.Dim("length", min=2, max=max(largest, 1024))
        shapes = (tuple({2: length} for _ in args),)
    return text, fn, args, shapes


def error(actual, reference):
    """Relative, over all that is a number; infinite where NaN stands at other places."""
    nan = reference.isnan()
    if not torch.equal(actual.isnan(), nan):
        return math.inf
    difference, size = (actual.double() - reference)[~nan], reference[~nan]
    return (difference.norm() / size.norm().clamp(min=1e-30)).item() if size.numel() else 0.0


def check(options, number):
    """Whether the variant is right, whether it is one kernel, and what to say of it."""
    text, fn, args, shapes = variant(number, options.seed, options.largest)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{number}.pt2"
        program = torch.export.export(Function(fn), args, dynamic_shapes=shapes)
        torch.export.save(program, path)
        out = tilewright.load(path, target="cuda")(*args)
        schedule = subprocess.run(["tilewright", "print", path, "--target", "cuda", "--stage", "schedule"], capture_output=True, text=True, check=True).stdout
    node = program.graph.output_node().args[0][0]
    eager = fn(*args)
    reference = fn(*(a.double() if a.is_floating_point() else a for a in args))
    ours, theirs = error(out, reference), error(eager, reference)
    rounding = torch.finfo(out.dtype).eps / 4
    # The kernels that eager chooses among differ in the strides they give: the program's own are those that count.
    good = ours <= 2 * max(theirs, rounding) and (shapes is not None or out.stride() == node.meta["val"].stride())
    streams = ".stream(" in schedule
    return good, streams, f"{text:90s} {'one kernel' if streams else 'apart':10s} error {ours:.2g}, eager's {theirs:.2g} {'ok' if good else 'WRONG'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=700, help="longest sequence")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", action="store_true", help="print those that are right too")
    parser.add_argument("--first", type=int, default=0, help="number of the first variant")
    options = parser.parse_args()
    wrong = streamed = 0
    numbers = range(options.first, options.first + options.count)
    for number, result in zip(numbers, in_processes.run(functools.partial(check, options), numbers, options.jobs), strict=True):
        if isinstance(result, BaseException):
            result = False, False, f"FAILED: {str(result)[:200]}"
        good, streams, text = result
        wrong += not good
        streamed += streams
        if options.show or not good:
            print(f"{number:3d} {text}", flush=True)
    print(f"{options.count} variants, {streamed} in one kernel, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
