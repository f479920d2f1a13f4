"""Exports small modules with PyTorch, one for each family of operators, with inputs and the outputs that PyTorch computes.

    python tests/correctness/reference/make_operator_cases.py [--out tests/data/operators] [FAMILY...]

For each family it writes
    FAMILY.pt2              the program: every case's results are its outputs, in order
    FAMILY.io.safetensors   in0..., out0... in the order of the program's signature
    FAMILY.cases            one line an output: "out3 add/float16 broadcast" - its name and the case that it belongs to
    FAMILY.core.pt2         the same after run_decompositions(), where the family asks for it; same inputs, outputs and cases
Needs torch and safetensors. The files are checked in, so that tests need neither.
"""
import argparse
import importlib
import io
import os
import pkgutil
import sys
import warnings
import zipfile

import torch
from safetensors.torch import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import operator_cases  # noqa: E402
from operator_cases.family import FAMILIES, Case  # noqa: E402


class Cases(torch.nn.Module):
    """Runs all cases of a family; each takes its inputs by number from the shared list."""

    def __init__(self, cases, numbers):
        super().__init__()
        self.cases = cases
        self.numbers = numbers

    def forward(self, *inputs):
        results = []
        for case in self.cases:
            outputs = case.function(*[inputs[self.numbers[id(x)]] for x in case.inputs])
            results.extend(outputs if isinstance(outputs, (tuple, list)) else (outputs,))
        # An output that is an input, or another output, would be exported as an alias; a copy keeps one value an output.
        return tuple(r.clone() if any(r is i for i in inputs) else r for r in results)


def expected(case):
    inputs = [x.clone(memory_format=torch.preserve_format) for x in case.inputs]
    outputs = case.function(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    if case.float64:
        precise = case.function(*[x.double() if x.is_floating_point() else x for x in case.inputs])
        precise = list(precise) if isinstance(precise, (tuple, list)) else [precise]
        outputs = [p.to(o.dtype) for p, o in zip(precise, outputs)]
    return outputs


def sized(family, batch, length):
    """The family's cases with inputs of this batch and length, each input made once."""
    made = {}
    cases = []
    for case in family.cases:
        inputs = tuple(x if isinstance(x, torch.Tensor) else made.setdefault(id(x), x.make(batch, length)) for x in case.inputs)
        cases.append(Case(case.name, case.function, inputs, case.float64))
    return cases


def symbols(inputs, more_batch, more_length, family_length):
    """For each input its dynamic dimensions: those that grow with the batch or the length."""
    batch, length = torch.export.Dim("batch", min=3, max=16), 2 * torch.export.Dim("half", min=2, max=8)
    shapes = []
    for x, wide, long in zip(inputs, more_batch, more_length):
        dims = {}
        for i in range(x.dim()):
            if wide.shape[i] != x.shape[i]:
                dims[i] = batch
            elif long.shape[i] != x.shape[i]:
                dims[i] = length + (x.shape[i] - family_length) if x.shape[i] != family_length else length
        shapes.append(dims or None)
    return (tuple(shapes),)


def number(cases):
    """The inputs of all cases, each once, and their places."""
    places, inputs = {}, []
    for case in cases:
        for x in case.inputs:
            if id(x) not in places:
                places[id(x)] = len(inputs)
                inputs.append(x)
    return places, inputs


def write(family, folder):
    if family.sizes:
        return write_dynamic(family, folder)
    numbers, inputs = number(family.cases)
    program = torch.export.export(Cases(family.cases, numbers), tuple(inputs), strict=False)
    return record(family, folder, program, family.cases, inputs)


def write_dynamic(family, folder):
    (batch, length), recorded = family.sizes
    cases = sized(family, batch, length)
    numbers, inputs = number(cases)
    shapes = symbols(inputs, number(sized(family, batch + 1, length))[1], number(sized(family, batch, length + 1))[1], length)
    program = torch.export.export(Cases(cases, numbers), tuple(inputs), strict=False, dynamic_shapes=shapes)
    cases = sized(family, *recorded)
    return record(family, folder, program, cases, number(cases)[1])


def record(family, folder, program, cases, inputs):
    tensors = {}
    lines, count = [], 0
    for case in cases:
        for output in expected(case):
            tensors[f"out{count}"] = output.detach().contiguous().clone()
            lines.append(f"out{count} {case.name}\n")
            count += 1
    for i, x in enumerate(inputs):
        tensors[f"in{i}"] = x.detach().contiguous().clone()
    path = os.path.join(folder, family.name)
    save(program, path + ".pt2")
    if family.core:
        save(program.run_decompositions(), path + ".core.pt2")
    save_file(tensors, path + ".io.safetensors")
    with open(path + ".cases", "w") as file:
        file.writelines(lines)
    return len(cases), count


def save(program, path):
    """torch.export.save, with the graph compressed and without the sample inputs, which stand in the other file."""
    program._example_inputs = None
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as full, zipfile.ZipFile(path, "w") as small:
        for entry in full.infolist():
            compressed = entry.filename.endswith(".json")
            info = zipfile.ZipInfo(entry.filename)  # a fixed date: the same cases give the same bytes
            if "/sample_inputs/" not in entry.filename and "serialization_id" not in entry.filename:
                small.writestr(info, full.read(entry), zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="tests/data/operators")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    os.makedirs(options.out, exist_ok=True)
    for module in pkgutil.iter_modules(operator_cases.__path__):
        importlib.import_module(f"operator_cases.{module.name}")
    total = 0
    for family in FAMILIES:
        if options.families and family.name not in options.families:
            continue
        cases, outputs = write(family, options.out)
        total += cases
        print(f"{family.name}: {cases} cases, {outputs} outputs")
    print(f"{total} cases")


if __name__ == "__main__":
    main()
