"""Writes tests/data/changed_models/{original,renamed,changed}.pt2: one small model, the same with other names, and with another activation.

Run from the repository root, with torch 2.11 or later.
"""

import os

import torch


def layers(names, activation):
    model = torch.nn.Sequential()
    parts = [torch.nn.Linear(24, 40), activation, torch.nn.Linear(40, 24), torch.nn.LayerNorm(24), torch.nn.Softmax(-1)]
    for name, part in zip(names, parts):
        model.add_module(name, part)
    return model


CASES = {
    "original": layers(("expand", "activation", "project", "norm", "weights"), torch.nn.ReLU()),
    "renamed": layers(("up", "f", "down", "scale", "out"), torch.nn.ReLU()),
    "changed": layers(("expand", "activation", "project", "norm", "weights"), torch.nn.Sigmoid()),
}

folder = "tests/data/changed_models"
os.makedirs(folder, exist_ok=True)
for name, model in CASES.items():
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.2, 0.2)
    torch.export.save(torch.export.export(model, (torch.zeros(6, 24),)), f"{folder}/{name}.pt2")
