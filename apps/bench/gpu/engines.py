"""Products under engine("cublaslt"), convolutions and attention under engine("cudnn"), against PyTorch: layouts, batches, epilogues, types.   engines.py"""

import os
import re
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import tilewright

FOLDER = tempfile.mkdtemp()


def use_engine(text, engine):
    """The schedule with the first product of each kernel given to the library."""
    blocks = re.split(r"(?m)^(?=kernel )", text)
    for i, block in enumerate(blocks):
        product = re.search(r"(?m)^  fuses (?:\w+ )*?((?:dot|convolution)\w*)", block)
        if product:
            kept = [line for line in block.splitlines() if re.match(r"kernel |  fuses |  covers ", line)]
            blocks[i] = "\n".join(kept) + f'\n  {product[1]}.engine("{engine}")\nend\n\n'
    return "".join(blocks)


def run(name, fn, args, engine):
    class Function(torch.nn.Module):
        def forward(self, *inputs):
            return fn(*inputs)

    path = f"{FOLDER}/{name}.pt2"
    torch.export.save(torch.export.export(Function(), args), path)
    text = subprocess.run(["tilewright", "print", path, "--target", "cuda", "--stage", "schedule"], capture_output=True, text=True, check=True).stdout
    with open(f"{FOLDER}/{name}.schedule", "w") as file:
        file.write(use_engine(text, engine))
    out = tilewright.load(path, schedule=f"{FOLDER}/{name}.schedule", target="cuda")(*args)
    reference = fn(*[a.double() for a in args])
    eager = fn(*args)
    scale = reference.abs().max()
    error, eager_error = (((t.double() - reference).abs().max() / scale).item() for t in (out, eager))
    step = torch.finfo(out.dtype).eps
    good = error <= 2 * max(eager_error, step / 2)
    print(f"{name:24s} error {error:.2g}, eager's {eager_error:.2g} {'ok' if good else 'WRONG'}", flush=True)
    return good


def products(dtype):
    def rand(*shape):
        return torch.randn(*shape, device="cuda").to(dtype)

    return {
        "matmul": (lambda a, b: a @ b, (rand(96, 64), rand(64, 128))),
        "matmul_transposed_left": (lambda a, b: a.t() @ b, (rand(64, 96), rand(64, 128))),
        "linear": (lambda x, w, b: F.linear(x, w, b), (rand(96, 64), rand(128, 64), rand(128))),
        "linear_relu": (lambda x, w, b: F.linear(x, w, b).relu(), (rand(96, 64), rand(128, 64), rand(128))),
        "batched": (lambda a, b: torch.bmm(a, b), (rand(5, 48, 64), rand(5, 64, 32))),
    }


def convolutions_and_attention(dtype):
    def rand(*shape):
        return torch.randn(*shape, device="cuda").to(dtype)

    def channels_last(*shape):
        return rand(*shape).to(memory_format=torch.channels_last)

    def attention(**how):
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **how)

    return {
        "conv": (lambda x, w: F.conv2d(x, w, padding=1), (rand(2, 16, 14, 14), rand(32, 16, 3, 3))),
        "conv_channels_last": (lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), (channels_last(2, 64, 14, 14), channels_last(64, 64, 3, 3), rand(64))),
        "conv_strided": (lambda x, w: F.conv2d(x, w, stride=2, padding=3), (channels_last(2, 16, 31, 30), channels_last(32, 16, 7, 7))),
        "conv_dilated": (lambda x, w, s, r: F.conv2d(x, w, dilation=(1, 2)) * s.view(-1, 1, 1) + r,
                         (channels_last(2, 32, 16, 17), channels_last(64, 32, 3, 3), rand(64), channels_last(2, 64, 14, 13))),
        "conv1d": (lambda x, w: F.conv1d(x, w, padding=2), (rand(3, 32, 50), rand(64, 32, 5))),
        "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), (rand(2, 16, 6, 7, 8), rand(32, 16, 3, 3, 3))),
        "attention": (attention(), (rand(2, 4, 128, 64), rand(2, 4, 192, 64), rand(2, 4, 192, 64))),
        "attention_causal": (attention(is_causal=True), tuple(rand(2, 4, 256, 128) for _ in range(3))),
        "attention_grouped": (attention(is_causal=True, enable_gqa=True), (rand(1, 8, 128, 64), rand(1, 2, 128, 64), rand(1, 2, 128, 64))),
        "attention_heads_last": (lambda q, k, v: F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v))), tuple(rand(2, 128, 4, 64) for _ in range(3))),
        "attention_decode": (attention(), (rand(2, 8, 1, 128), rand(2, 8, 512, 128), rand(2, 8, 512, 128))),
    }


def main():
    wrong = 0
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        cases = {name: (*case, "cublaslt") for name, case in products(dtype).items()}
        if dtype.itemsize == 2:
            cases |= {name: (*case, "cudnn") for name, case in convolutions_and_attention(dtype).items()}
        for name, case in cases.items():
            try:
                wrong += not run(f"{name}_{str(dtype)[6:]}", *case)
            except Exception as problem:
                wrong += 1
                print(f"{name} {dtype}: {problem}", flush=True)
    sys.exit(wrong)


main()
