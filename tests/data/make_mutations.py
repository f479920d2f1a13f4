"""Writes tests/data/mutations/NAME.pt2 and NAME.io.safetensors: programs that write their inputs and buffers.

in0… are the inputs, out0… the outputs of the first call, after0… the inputs after it; second0… the outputs of a second call with the same
inputs. Run from the repository root, with torch 2.11 or later.
"""

import os

import torch
from safetensors.torch import save_file


class Swap(torch.nn.Module):
    def forward(self, x, y):
        t = x.clone()
        x.copy_(y)
        y.copy_(t)
        return x + y


class OverlappingRows(torch.nn.Module):
    def forward(self, x):
        x[1:] = x[:-1].clone()
        return x.sum()


class OrderOfWrites(torch.nn.Module):
    def forward(self, dst, src):
        dst[0:, :] = src[0:, :]
        src.add_(1)
        return dst * 1


class InPlaceAffine(torch.nn.Module):
    def forward(self, x, acc):
        x.mul_(0.5).add_(1)
        acc += x
        return acc.sum()


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("scale", torch.full((4,), 3.0))

    def forward(self, x):
        self.count.add_(1)
        self.mean.mul_(0.5).add_(x.mean(0) * 0.5)
        return x * self.scale.sqrt() + self.mean, self.count


class Outputs(torch.nn.Module):
    """The same value twice, an input as it came, a view of one, a weight, a constant."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))

    def forward(self, x):
        y = x * 2
        return y, y, x, x.t(), self.weight * 1, torch.ones(2), y.t()


CASES = {
    "swap": (Swap(), (torch.arange(6.0).reshape(2, 3), -torch.arange(6.0).reshape(2, 3))),
    "overlapping_rows": (OverlappingRows(), (torch.randn(3, 16, 16),)),
    "overlapping_rows_large": (OverlappingRows(), (torch.arange(64.0 * 33).reshape(64, 33),)),
    "order_of_writes": (OrderOfWrites(), (torch.zeros(2, 2), torch.tensor([[0.0, 1.0], [2.0, 3.0]]))),
    "in_place_affine": (InPlaceAffine(), (torch.arange(1.0, 65.0), torch.zeros(64))),
    "counter": (Counter(), (torch.randn(5, 4),)),
    "outputs": (Outputs(), (torch.randn(4, 4),)),
}

torch.manual_seed(0)
os.makedirs("tests/data/mutations", exist_ok=True)
for name, (module, inputs) in CASES.items():
    program = torch.export.export(module, tuple(x.clone() for x in inputs))
    torch.export.save(program, f"tests/data/mutations/{name}.pt2")
    tensors = {f"in{i}": x.clone() for i, x in enumerate(inputs)}
    for prefix in ("out", "second"):
        given = [x.clone() for x in inputs]
        with torch.no_grad():
            results = torch.utils._pytree.tree_leaves(module(*given))
        tensors |= {f"{prefix}{i}": x.detach().clone().contiguous() for i, x in enumerate(results)}
        if prefix == "out":
            tensors |= {f"after{i}": x.clone() for i, x in enumerate(given)}
    save_file(tensors, f"tests/data/mutations/{name}.io.safetensors")
