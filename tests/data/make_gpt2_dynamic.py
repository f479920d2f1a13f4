"""Writes tests/data/gpt2_dynamic.safetensors: what PyTorch computes for apps/models/gpt2_dynamic.pt2 at six sizes.

Tensors are named BxS.in0 and BxS.out0 for a batch of B and a sequence of S. Run from the repository root, with torch 2.11 or later.
"""

import torch
from safetensors.torch import save_file

PAIRS = [(1, 2), (2, 17), (3, 5), (5, 33), (1, 64), (16, 8)]

program = torch.export.load("apps/models/gpt2_dynamic.pt2").module()
tensors = {}
for batch, sequence in PAIRS:
    torch.manual_seed(batch * 1000 + sequence)
    ids = torch.randint(0, 211, (batch, sequence))
    with torch.no_grad():
        (logits,) = torch.utils._pytree.tree_leaves(program(ids))
    tensors[f"{batch}x{sequence}.in0"] = ids
    tensors[f"{batch}x{sequence}.out0"] = logits.contiguous()
save_file(tensors, "tests/data/gpt2_dynamic.safetensors")
