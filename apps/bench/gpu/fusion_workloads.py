"""Workloads in which one more fusion is possible and costs more than it saves; they join those of workloads.py.

A product or a convolution that computes its operand computes it again for each of its tiles; channels that are normalised where they lie innermost
leave few blocks, each of which reads all rows twice; a chain of blurs in one kernel computes each pixel for every neighbour.
"""

import torch
import torch.nn.functional as F
import workloads
from workloads import KERNELS, kernel

BEFORE = set(KERNELS)


@kernel("gelu_linear_8192x4096x4096", (8192 * 4096 * 2 + 4096 * 4096) * 2, 2 * 8192 * 4096 * 4096)
def _():
    return lambda x, w: F.gelu(x) @ w.t(), (workloads.rand(8192, 4096), workloads.rand(4096, 4096))


@kernel("gate_linear_4096x8192x4096", (4096 * 8192 * 2 + 4096 * 8192 + 4096 * 4096) * 2, 2 * 4096 * 8192 * 4096)
def _():
    return lambda gate, up, w: (F.silu(gate) * up) @ w.t(), (workloads.rand(4096, 8192), workloads.rand(4096, 8192), workloads.rand(4096, 8192))


@kernel("norm_silu_conv3x3_32x128x56x56", 2 * 32 * 128 * 56 * 56 * 2, 2 * 32 * 56 * 56 * 128 * 128 * 9)
def _():
    def f(x, scale, shift, w):
        return F.conv2d(F.silu(x * scale[:, None, None] + shift[:, None, None]), w, padding=1)

    last = dict(memory_format=torch.channels_last)
    return f, (workloads.rand(32, 128, 56, 56).to(**last), workloads.rand(128), workloads.rand(128), workloads.rand(128, 128, 3, 3).to(**last))


@kernel("instance_norm_channels_last_16x4096x512", 2 * 16 * 4096 * 512 * 2)
def _():
    def f(x):
        x = x.float()
        centred = x - x.mean(1, keepdim=True)
        return (centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + 1e-5)).to(torch.bfloat16)

    return f, (workloads.rand(16, 4096, 512),)


@kernel("unsharp_f32_4096", 2 * 4096 * 4096 * 4)
def _():
    taps = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)

    def blur(x):
        rows = sum(tap * x[:, i : x.shape[1] - 4 + i] for i, tap in enumerate(taps))
        return sum(tap * rows[i : rows.shape[0] - 4 + i] for i, tap in enumerate(taps))

    return lambda x: 2 * x[4:-4, 4:-4] - blur(blur(x)), (workloads.rand(4096, 4096, dtype=torch.float32),)


NAMES = [name for name in KERNELS if name not in BEFORE]
