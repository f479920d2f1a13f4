"""Writes tests/data/archives/NAME.pt2: small programs whose archives use the less common forms of torch.export's format.

Run from the repository root, with torch 2.11 or later.
"""

import os

import torch
from torch._subclasses import FakeTensorMode
from torch.export import Dim


class Kinds(torch.nn.Module):
    """Every kind of input: parameter, buffers that are saved and that are not, constant, tensor, number, string; outputs that are no tensors."""

    def __init__(self):
        super().__init__()
        self.empty = torch.nn.Parameter(torch.zeros(0, 3))
        self.register_buffer("saved", torch.arange(3.0))
        self.register_buffer("unsaved", torch.full((3,), 2.0), persistent=False)
        self.constant = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, number, text, nothing=None):
        with torch.no_grad():
            y = x * number
        with torch.autocast("cpu", enabled=False):
            z = y + self.saved
        return z * self.unsaved + self.constant, None, 3, 2.5, True, text, torch.where(x > 0, float("-inf"), x), self.empty


class Sizes(torch.nn.Module):
    def forward(self, x, n):
        padded = torch.nn.functional.pad(x, (0, 16 - x.shape[1] % 16))
        return padded, x[:n] * n, x[:, x.shape[1] // 2 :], x.shape[0] + 1


class Shared(torch.nn.Module):
    """Weights that share memory: tied, overlapping, transposed, expanded."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        base = torch.arange(10.0)
        self.register_buffer("front", base[2:6])
        self.register_buffer("back", base[5:9])
        self.register_buffer("turned", torch.arange(8.0).reshape(2, 4).t())
        self.register_buffer("repeated", torch.arange(4.0).expand(3, 4))

    def forward(self, indices):
        x = self.embedding(indices)
        return self.head(x * self.front + self.back) + (self.repeated @ self.turned).sum()


class Results(torch.nn.Module):
    """Operators with several results, some of which nobody reads."""

    def forward(self, x):
        a, b = x.split([1, 3])
        return a, x.topk(2)[1], x.unbind(1)[2], torch.max(x, 0)[0]


class DataDependent(torch.nn.Module):
    def forward(self, x):
        return x.nonzero() * 2, x[x > 0].sum() * x.sum().item()


class Asserted(torch.nn.Module):
    """A number out of a tensor that only assertions read."""

    def forward(self, lengths):
        longest = lengths.max().item()
        torch._check(longest <= 17)
        torch._check(longest * 2 >= 0)
        return lengths * 2


CASES = {
    "kinds": (Kinds(), (torch.arange(3.0) - 1, 2, "label"), None),
    "sizes": (Sizes(), (torch.zeros(8, 6), 5), ({0: Dim("rows", min=2, max=64), 1: Dim.DYNAMIC}, Dim.DYNAMIC)),
    "shared": (Shared(), (torch.tensor([1, 2]),), None),
    "results": (Results(), (torch.zeros(4, 4),), None),
    "asserted": (Asserted(), (torch.tensor([3, 5]),), None),
    "data_dependent": (DataDependent(), (torch.zeros(4),), None),
}

torch.manual_seed(0)
os.makedirs("tests/data/archives", exist_ok=True)
for name, (module, inputs, sizes) in CASES.items():
    torch.export.save(torch.export.export(module, inputs, dynamic_shapes=sizes), f"tests/data/archives/{name}.pt2")

# What an export on a GPU looks like, without one: its inputs have a device and no memory.
class Convolution(torch.nn.Module):
    def forward(self, x, weight):
        return torch.relu(torch.nn.functional.conv2d(x, weight, padding=1))


with FakeTensorMode(allow_non_fake_inputs=True):
    image = torch.empty(2, 4, 5, 6, device="cuda").to(memory_format=torch.channels_last)
    weight = torch.empty(8, 4, 3, 3, device="cuda")
torch.export.save(torch.export.export(Convolution(), (image, weight)), "tests/data/archives/exported_on_gpu.pt2")
