"""Products under engine("cublaslt"), against PyTorch: layouts, batches, biases, ReLU, types.   engines.py"""

import os
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import tilewright

FOLDER = tempfile.mkdtemp()


def use_engine(text):
    """The schedule with every product that stands at the head of its kernel given to cuBLASLt."""
    blocks = re.split(r"(?m)^(?=kernel )", text)
    for i, block in enumerate(blocks):
        dot = re.search(r"(?m)^  fuses (?:\w+ )*?(dot\w*)", block)
        if dot:
            kept = [line for line in block.splitlines() if re.match(r"kernel |  fuses |  covers ", line)]
            blocks[i] = "\n".join(kept) + f'\n  {dot[1]}.engine("cublaslt")\nend\n\n'
    return "".join(blocks)


def run(name, fn, args):
    class Function(torch.nn.Module):
        def forward(self, *inputs):
            return fn(*inputs)

    path = f"{FOLDER}/{name}.pt2"
    torch.export.save(torch.export.export(Function(), args), path)
    text = subprocess.run(["tilewright", "print", path, "--target", "cuda", "--stage", "schedule"], capture_output=True, text=True, check=True).stdout
    with open(f"{FOLDER}/{name}.schedule", "w") as file:
        file.write(use_engine(text))
    out = tilewright.load(path, schedule=f"{FOLDER}/{name}.schedule", target="cuda")(*args)
    reference = fn(*[a.double() for a in args])
    eager = fn(*args)
    scale = reference.abs().max()
    error, eager_error = (((t.double() - reference).abs().max() / scale).item() for t in (out, eager))
    step = torch.finfo(out.dtype).eps
    good = error <= 2 * max(eager_error, step / 2)
    print(f"{name:24s} error {error:.2g}, eager's {eager_error:.2g} {'ok' if good else 'WRONG'}", flush=True)
    return good


def main():
    wrong = 0
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        def rand(*shape):
            return torch.randn(*shape, device="cuda").to(dtype)

        cases = {
            "matmul": (lambda a, b: a @ b, (rand(96, 64), rand(64, 128))),
            "matmul_transposed_left": (lambda a, b: a.t() @ b, (rand(64, 96), rand(64, 128))),
            "linear": (lambda x, w, b: F.linear(x, w, b), (rand(96, 64), rand(128, 64), rand(128))),
            "linear_relu": (lambda x, w, b: F.linear(x, w, b).relu(), (rand(96, 64), rand(128, 64), rand(128))),
            "batched": (lambda a, b: torch.bmm(a, b), (rand(5, 48, 64), rand(5, 64, 32))),
        }
        for name, (fn, args) in cases.items():
            try:
                wrong += not run(f"{name}_{str(dtype)[6:]}", fn, args)
            except Exception as problem:
                wrong += 1
                print(f"{name} {dtype}: {problem}", flush=True)
    sys.exit(wrong)


main()
