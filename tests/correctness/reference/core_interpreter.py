"""Evaluates a printed graph of core operators with PyTorch and compares the results with recorded ones.

    tilewright print MODEL.pt2 --stage core > MODEL.core
    python tests/correctness/reference/core_interpreter.py MODEL.core MODEL.pt2 MODEL.io.safetensors [--cases FAMILY.cases]

It is a second reading of lowering/decompose/CORE.md, independent of the translation: where it and the recorded outputs differ, a decomposition
rule is wrong; where it agrees and the compiled program differs, look further down. Exit status 1 on a mismatch.
"""
import argparse
import json
import math
import re
import sys
import warnings
import zipfile

import torch
from safetensors.torch import load_file

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|%\w+|torch\.\w+|[A-Za-z_]\w*|\d+\.?\d*(?:e[+-]?\d+)?|//|[-+*()\[\],=]|\S')
NODE = re.compile(r"^\s*%(\w+) : (.*?) = (placeholder|get_attr|call_function)(.*)$")


class Reader:
    """Python-like values: numbers, expressions of symbols, strings, types, nodes and lists."""

    def __init__(self, text, symbols):
        self.tokens = TOKEN.findall(text)
        self.place = 0
        self.symbols = symbols

    def peek(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected=None):
        token = self.tokens[self.place]
        assert expected is None or token == expected, (expected, token)
        self.place += 1
        return token

    def value(self):
        token = self.peek()
        if token == "[":
            self.take()
            items = []
            while self.peek() != "]":
                items.append(self.value())
                if self.peek() == ",":
                    self.take()
            self.take()
            return items
        if token.startswith("%") and len(token) > 1:
            return ("node", self.take()[1:])
        if token.startswith('"'):
            return self.take()[1:-1]
        if token.startswith("torch."):
            return getattr(torch, self.take()[6:])
        if token in ("true", "false", "none"):
            return {"true": True, "false": False, "none": None}[self.take()]
        return self.expression()

    def expression(self):
        """Up to the comma or bracket that ends it, as Python reads it."""
        depth, text = 0, ""
        while self.peek():
            token = self.peek()
            if depth == 0 and token in (",", "]", ")"):
                break
            depth += (token == "(") - (token == ")")
            text += self.take()
        names = {"inf": math.inf, "nan": math.nan, "Max": max, "Min": min, "Mod": lambda a, b: a % b, **self.symbols}
        return eval(text, {"__builtins__": {}}, names)

    def arguments(self):
        self.take("(")
        result = {}
        while self.peek() != ")":
            name = self.take()
            self.take("=")
            result[name] = self.value()
            if self.peek() == ",":
                self.take()
        return result


def gather_nd(a, indices, wrap, **_):
    for dim, index in enumerate(indices):
        if index is not None and index.numel():
            low = -a.shape[dim] if wrap else 0
            assert index.min() >= low and index.max() < a.shape[dim], "index out of range"
    return torch.ops.aten.index.Tensor(a, indices)


def index_put(a, indices, values, accumulate, **_):
    return torch.ops.aten.index_put(a, indices, values, accumulate)


def broadcast_in_dim(a, size, dims):
    shape = [1] * len(size)
    for i, dim in enumerate(dims):
        shape[dim] = a.shape[i]
    return a.reshape(shape).expand(size) if dims or a.dim() == 0 else a.reshape([1] * len(size)).expand(size)


def slice_of(a, dim, start, end, step):
    assert 0 <= start <= end <= a.shape[dim], (start, end, a.shape)
    return a[(slice(None),) * dim + (slice(start, end, step),)]


def pad(a, low, high, value):
    pairs = [n for pair in zip(reversed(low), reversed(high)) for n in pair]
    return torch.nn.functional.pad(a, pairs, value=value)


def dot(a, b, out_dtype):
    assert a.dtype == b.dtype and a.shape[:-2] == b.shape[:-2]
    return torch.matmul(a.to(out_dtype), b.to(out_dtype))


def convolution(input, weight, stride, padding, dilation, groups, out_dtype):
    return torch.ops.aten.convolution(input.to(out_dtype), weight.to(out_dtype), None, stride, padding, dilation, False, [0] * len(stride), groups)


def pool_max(a, kernel, stride, padding, dilation, shapes):
    spatial = len(kernel)
    function = getattr(torch.nn.functional, f"max_pool{spatial}d")
    for ceil_mode in (False, True):
        values, indices = function(a, kernel, stride, padding, dilation, ceil_mode, return_indices=True)
        if list(values.shape) == shapes[0]:
            return values, indices
    raise AssertionError((values.shape, shapes))


def pool_sum(a, kernel, stride, padding, shapes):
    spatial = len(kernel)
    function = getattr(torch.nn.functional, f"avg_pool{spatial}d")
    extra = [(n - 1) * s + k - (i + 2 * p) for n, s, k, i, p in zip(shapes[0][2:], stride, kernel, a.shape[2:], padding)]
    padded = pad(a, [0, 0] + padding, [0, 0] + [p + max(e, 0) for p, e in zip(padding, extra)], 0.0)
    slots = [slice(None)] * 2 + [slice(0, n) for n in shapes[0][2:]]
    return (function(padded.double(), kernel, stride, divisor_override=1) if spatial > 1
            else function(padded.double(), kernel, stride) * kernel[0])[tuple(slots)].to(a.dtype)


def scatter(a, dim, index, src, reduce):
    assert index.shape == src.shape and a.dtype == src.dtype
    if reduce == "":
        return torch.scatter(a, dim, index, src)
    return torch.scatter_reduce(a, dim, index, src, {"add": "sum"}.get(reduce, reduce))


def fold(function):
    def run(a, dims):
        for dim in sorted(dims, reverse=True):
            a = function(a, dim)
        return a
    return run


def div_trunc(a, b):
    return torch.div(a, b, rounding_mode="trunc")


def integer_safe(function):
    """Division by an integer zero gives 0, as the compiled program does on a GPU."""
    def run(a, b):
        if a.dtype.is_floating_point:
            return function(a, b)
        zero = b == 0
        return torch.where(zero, torch.zeros_like(a), function(a, torch.where(zero, torch.ones_like(b), b)))
    return run


OPERATORS = {
    "prims.convert_element_type": lambda a, dtype, explicit: a.to(dtype),
    "prims.where": lambda condition, a, b: torch.where(condition, a, b),
    "prims.full": lambda size, value, dtype: torch.full(size, value, dtype=dtype),
    "prims.iota": lambda size, start, step, dtype: (torch.arange(size) * step + start).to(dtype),
    "prims.broadcast_in_dim": broadcast_in_dim,
    "prims.reshape": lambda a, size: a.reshape(size),
    "prims.permute": lambda a, dims: a.permute(dims),
    "prims.slice": slice_of,
    "prims.flip": lambda a, dims: a.flip(dims),
    "prims.as_strided": lambda a, size, stride, offset: torch.as_strided(a.contiguous(), size, stride, offset),
    "prims.cat": lambda tensors, dim: torch.cat(tensors, dim),
    "prims.pad": pad,
    "prims.sum": lambda a, dims: a.sum(dims, dtype=a.dtype),
    "prims.prod": fold(lambda a, dim: torch.prod(a, dim, dtype=a.dtype)),
    "prims.amin": lambda a, dims: a.amin(dims),
    "prims.amax": lambda a, dims: a.amax(dims),
    "prims.any": fold(torch.any),
    "prims.all": fold(torch.all),
    "prims.argmin": lambda a, dim: a.argmin(dim),
    "prims.argmax": lambda a, dim: a.argmax(dim),
    "prims.max_with_index": lambda a, dim: torch.max(a, dim),
    "prims.min_with_index": lambda a, dim: torch.min(a, dim),
    "prims.var_mean": lambda a, dims, correction: tuple(t.to(a.dtype) for t in torch.var_mean(a.double(), dims, correction=correction)),
    "prims.cumsum": lambda a, dim: a.cumsum(dim, dtype=a.dtype),
    "prims.cumprod": lambda a, dim: a.cumprod(dim, dtype=a.dtype),
    "prims.cummax": torch.cummax,
    "prims.cummin": torch.cummin,
    "prims.logcumsumexp": torch.logcumsumexp,
    "prims.logsumexp": lambda a, dims: torch.logsumexp(a, dims),
    "tw.dot": dot,
    "tw.convolution": convolution,
    "tw.gather_nd": gather_nd,
    "tw.gather": lambda a, dim, index: torch.gather(a, dim, index),
    "tw.scatter": scatter,
    "tw.index_put": index_put,
    "tw.sort": lambda a, dim, descending, count: tuple(x.narrow(dim, 0, count) if x.dim() else x for x in torch.sort(a, dim=dim, descending=descending, stable=True)),
    "prims.div_floor": integer_safe(lambda a, b: torch.div(a, b, rounding_mode="floor")),
    "prims.div_trunc": integer_safe(div_trunc),
    "prims.remainder": integer_safe(torch.remainder),
    "prims.fmod": integer_safe(torch.fmod),
    "prims.shift_left": lambda a, b: torch.bitwise_left_shift(a, b),
    "prims.shift_right": lambda a, b: torch.bitwise_right_shift(a, b),
}
SHAPED = {"tw.pool_max": pool_max, "tw.pool_sum": pool_sum}


def type_of(text, symbols):
    """[(dtype, size)] of "float32[2, s0]" or "(float32[2], int64[2])"; strides are left out."""
    types = []
    for dtype, size in re.findall(r"(\w+)\[([^\]]*)\](?: strides=\[[^\]]*\])?", text):
        if dtype != "strides":
            types.append((getattr(torch, dtype), Reader("[" + size + "]", symbols).value()))
    return types


def evaluate(line, values, symbols):
    name, meta, opcode, rest = NODE.match(line).groups()
    target, _, arguments = rest.strip().partition("(")
    read = {k: resolve(v, values) for k, v in Reader("(" + arguments, symbols).arguments().items()}
    types = type_of(re.sub(r" strides=\[[^\]]*\]", "", meta), symbols)
    if target == "getitem":
        result = read["tuple"][read["index"]]
    elif target in SHAPED:
        result = SHAPED[target](**read, shapes=[size for _, size in types])
    else:
        for operand in read.values():
            half = isinstance(operand, torch.Tensor) and operand.dtype in (torch.float16, torch.bfloat16)
            if half and target.startswith("prims.") and target not in VIEWS:
                raise AssertionError(f"{target} of {operand.dtype}")
        function = OPERATORS.get(target) or getattr(torch, target.removeprefix("prims."))
        result = function(*read.values()) if target not in OPERATORS else function(**read)
    results = list(result) if isinstance(result, tuple) else [result]
    for tensor, (dtype, size) in zip(results, types):
        assert tensor.dtype == dtype and list(tensor.shape) == size, f"is {tensor.dtype}{list(tensor.shape)}, meta says {meta}"
    values[name] = tuple(results) if isinstance(result, tuple) else result


VIEWS = {"prims.convert_element_type", "prims.full", "prims.broadcast_in_dim", "prims.reshape", "prims.permute", "prims.slice", "prims.flip",
         "prims.as_strided", "prims.cat", "prims.pad"}


def resolve(value, values):
    if isinstance(value, tuple):
        return values[value[1]]
    return [resolve(item, values) for item in value] if isinstance(value, list) else value


SERIALISED_TYPES = {1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64, 6: torch.float16, 7: torch.float32,
                    8: torch.float64, 12: torch.bool, 13: torch.bfloat16}


class Archive:
    """The parts of a .pt2 file that an evaluation needs. torch.export.load would ask for the model's own classes."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.files = {name.partition("/")[2]: name for name in self.zip.namelist()}
        signature = json.loads(self.read("models/model.json"))["graph_module"]["signature"]
        self.tensors = {**self.config("weights", "model_weights_config"), **self.config("constants", "model_constants_config")}
        self.weights = {}
        for spec in signature["input_specs"]:
            (kind, body), = spec.items()
            if kind != "user_input":
                name = body.get("parameter_name") or body.get("buffer_name") or body.get("tensor_constant_name")
                self.weights[body["arg"]["name"]] = self.tensors[name]
        self.mutated = sum("mutation" in kind for spec in signature["output_specs"] for kind in spec)

    def read(self, name):
        return self.zip.read(self.files[name])

    def config(self, folder, name):
        entries = json.loads(self.read(f"data/{folder}/{name}.json"))["config"]
        return {key: self.tensor(folder, entry) for key, entry in entries.items()}

    def tensor(self, folder, entry):
        meta = entry["tensor_meta"]
        content = bytearray(self.read(f"data/{folder}/{entry['path_name']}"))
        dtype = SERIALISED_TYPES[meta["dtype"]]
        sizes, strides = ([n["as_int"] for n in meta[key]] for key in ("sizes", "strides"))
        flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
        return torch.as_strided(flat, sizes, strides, meta["storage_offset"]["as_int"])


def read_symbols(meta, shape, symbols):
    """Sizes such as s0 and s0*2 tell what their symbol stands for."""
    for text, size in zip(meta.partition("[")[2].partition("]")[0].split(","), shape):
        if match := re.fullmatch(r"\s*(s\d+)(?:\*(\d+))?\s*", text):
            symbols[match.group(1)] = size // int(match.group(2) or 1)


def run(core, archive, inputs):
    values, outputs, symbols = dict(archive.weights), None, {}
    pending = [inputs[f"in{i}"] for i in range(sum(name.startswith("in") for name in inputs))]
    for line in core.splitlines():
        if match := NODE.match(line):
            if match.group(3) == "placeholder":
                if match.group(1) not in values:
                    values[match.group(1)] = pending.pop(0)
                    read_symbols(match.group(2), values[match.group(1)].shape, symbols)
            else:
                try:
                    evaluate(line, values, symbols)
                except Exception as error:
                    values[match.group(1)] = RuntimeError(f"{line.strip()}: {error}")
        elif "= output(" in line:
            outputs = Reader("(" + line.partition("output(")[2], symbols).arguments()["values"]
    return [resolve(value, values) for value in outputs][archive.mutated:]


def difference(actual, wanted):
    """Empty where they agree within the rounding of one operator in the type."""
    if isinstance(actual, Exception):
        return str(actual)
    if actual.dtype != wanted.dtype or actual.shape != wanted.shape:
        return f"{actual.dtype}{list(actual.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.float64: 1e-12}.get(wanted.dtype, 0)
    scale = wanted[wanted.isfinite()].abs().max().item() if wanted.is_floating_point() and wanted.isfinite().any() else 0
    close = torch.isclose(actual, wanted, rtol=tolerance, atol=tolerance * min(max(scale, 1e-3), 1e3), equal_nan=True)
    if close.all():
        if wanted.is_floating_point() and not torch.equal(torch.signbit(actual[wanted == 0]), torch.signbit(wanted[wanted == 0])):
            return "zeros of the other sign"
        return ""
    place = tuple((~close).nonzero()[0].tolist())
    return f"index {list(place)}: expected {wanted[place].item()!r}, actual {actual[place].item()!r} ({int((~close).sum())} of {close.numel()} differ)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ["core", "archive", "values"]:
        parser.add_argument(name)
    parser.add_argument("--cases")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    names = dict(line.rstrip("\n").split(" ", 1) for line in open(options.cases)) if options.cases else {}
    recorded = load_file(options.values)
    outputs = run(open(options.core).read(), Archive(options.archive), recorded)
    failed = 0
    for i in range(sum(name.startswith("out") for name in recorded)):
        if problem := difference(outputs[i], recorded[f"out{i}"]):
            failed += 1
            print(f"out{i} {names.get(f'out{i}', '')}: {problem}")
    print(f"{options.core}: {len(outputs)} outputs, {failed} differ")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
