"""What the scripts here export: a function as a module, and many cases as one program."""

import tempfile

import torch

import tilewright


class Function(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *inputs):
        return self.fn(*inputs)


class Together(torch.nn.Module):
    """Cases that have `args`, and compute(*args) with one output or a list of them."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def forward(self, *inputs):
        outputs, begin = [], 0
        for one in self.cases:
            result = one.compute(*inputs[begin:begin + len(one.args)])
            outputs += result if isinstance(result, list) else [result]
            begin += len(one.args)
        return tuple(outputs)


def outputs_together(cases):
    """What one program of all the cases gives on the GPU."""
    args = tuple(a for one in cases for a in one.args)
    with tempfile.TemporaryDirectory() as folder:
        torch.export.save(torch.export.export(Together(cases), args), f"{folder}/cases.pt2")
        return tilewright.load(f"{folder}/cases.pt2", target="cuda")(*args)
