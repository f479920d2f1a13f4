"""gpt2_dynamic at six pairs of batch and sequence from one load, against PyTorch.   dynamic_sizes.py ARCHIVE"""

import sys

import torch

import tilewright

path = sys.argv[1]
program = torch.export.load(path)
reference = program.module()
model = tilewright.load(path, target="cuda")
torch.manual_seed(0)
vocabulary = min(p.shape[0] for name, p in program.state_dict.items() if "wte" in name or "embed" in name)
failures = 0
for batch, sequence in ((1, 2), (1, 64), (2, 17), (3, 33), (8, 64), (64, 5)):
    tokens = torch.randint(0, vocabulary, (batch, sequence))
    with torch.no_grad():
        expected = [t for t in torch.utils._pytree.tree_leaves(reference(tokens)) if isinstance(t, torch.Tensor)]
    actual = torch.utils._pytree.tree_leaves(model(tokens.cuda()))
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        error = ((a.cpu().double() - e.double()).abs().max() / e.double().abs().max()).item()
        good = error <= 2e-5 and a.shape == e.shape
        failures += not good
        print(f"batch {batch:2d} sequence {sequence:2d} output {i}: error {error:.2g} {'ok' if good else 'WRONG'}")
sys.exit(1 if failures else 0)
