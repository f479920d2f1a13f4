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


class ViewChains(torch.nn.Module):
    def forward(self, x):
        y = x.t()[1:5:2]
        y.mul_(3)
        w = x.view(2, 12)
        w[0].fill_(7)
        y.add_(1)
        x[2].zero_()
        x.diagonal().fill_(9.0)
        x[:, 1].copy_(x[:, 0])
        return x.sum(0), y, w


class PartsOfOne(torch.nn.Module):
    def forward(self, x):
        a, b = x.split(2)
        c, d = x.unbind(0)[1:3]
        a.add_(b)
        c.mul_(2)
        x.chunk(3, 1)[1].neg_()
        x[::2, 1::2] = 0
        x[-1, :2] += 1
        x.narrow(1, 1, 2).mul_(2)
        return a, b, c, d


class TypesOfWrites(torch.nn.Module):
    def forward(self, half, full, integers):
        half.add_(full)
        integers.add_(2)
        integers[1:3] = 7
        integers.bitwise_and_(3)
        flags = full > 0
        flags.logical_not_()
        full.gt_(0.0)
        return half * 1, flags, integers * 2


class ShapesInPlace(torch.nn.Module):
    def forward(self, x):
        y = x * 1
        y.transpose_(0, 1).unsqueeze_(0)
        y.mul_(2)
        z = y.squeeze_(0)
        z.add_(1)
        flat = x.reshape(24)
        flat.add_(10)
        copied = x.transpose(0, 2).reshape(24)
        copied.mul_(5)
        return y, copied.sum()


class IndexedWrites(torch.nn.Module):
    def forward(self, x, index, source, mask):
        x.index_add_(0, index, source)
        x.index_copy_(0, index, source * 2)
        x.scatter_add_(0, torch.zeros(2, 4, dtype=torch.long), source)
        x.masked_fill_(mask, -1.0)
        x[index] += x[index]
        x.as_strided((2, 2), (5, 1), 1).fill_(3)
        return torch.relu_(x + 1)


class KeysOfAttention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 8, 4))

    def forward(self, x, position):
        self.keys[:, position] = x
        return self.keys @ x.transpose(1, 2)


class NormInTraining(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(x)


CASES = {
    "view_chains": (ViewChains(), (torch.arange(24.0).reshape(4, 6),)),
    "parts_of_one": (PartsOfOne(), (torch.arange(24.0).reshape(4, 6),)),
    "types_of_writes": (TypesOfWrites(), (torch.arange(8.0).half() / 3, torch.arange(8.0) / 7 - 0.5, torch.arange(6))),
    "shapes_in_place": (ShapesInPlace(), (torch.arange(24.0).reshape(2, 3, 4),)),
    "indexed_writes": (
        IndexedWrites(),
        (torch.arange(12.0).reshape(3, 4), torch.tensor([0, 2]), torch.arange(8.0).reshape(2, 4), torch.arange(12).reshape(3, 4) % 5 == 0),
    ),
    "keys_of_attention": (KeysOfAttention(), (torch.arange(16.0).reshape(2, 2, 4), torch.tensor([1, 5]))),
    "norm_in_training": (NormInTraining(), (torch.arange(96.0).reshape(2, 3, 4, 4).sin(),)),
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
