"""Writes lesson_8_operator.pt2 and its recorded inputs and outputs: a model that uses operators of one's own.

    python3 lesson_8_operator.py        in this folder, with torch 2.11 or later and safetensors
"""

import torch
from safetensors.torch import save_file


@torch.library.custom_op("lessons::soft_clip", mutates_args=())
def soft_clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return limit * torch.tanh(x / limit)


@torch.library.custom_op("lessons::row_energy", mutates_args=())
def row_energy(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum(-1)


@torch.library.custom_op("lessons::center", mutates_args=())
def center(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(-1, keepdim=True)


# What torch.export asks of an operator: the shape and type of its result.
soft_clip.register_fake(lambda x, limit: torch.empty_like(x))
row_energy.register_fake(lambda x: x.new_empty(x.shape[:-1]))
center.register_fake(torch.empty_like)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(24, 40)

    def forward(self, x):
        y = center(soft_clip(self.linear(x), 0.75))
        return y, row_energy(y) + 1


torch.manual_seed(8)
model = Model()
x = torch.randn(6, 24)
with torch.no_grad():
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=1, max=4096)},))
    torch.export.save(program, "lesson_8_operator.pt2")
    y, energy = model(x)
save_file({"in0": x, "out0": y, "out1": energy}, "lesson_8_operator.io.safetensors")
