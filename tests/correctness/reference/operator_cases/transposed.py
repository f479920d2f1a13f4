"""Transposed convolutions, whose outputs fall into phases by their place modulo the stride."""
import math

import torch
import torch.nn.functional as F

from .family import family, normal

t = family("transposed_convolution")
x1, x2 = normal(2, 4, 9), normal(2, 4, 5, 6)
t.add("as many taps in each phase", lambda p, w, b: F.conv_transpose2d(p, w, b, stride=2, padding=1), x2, normal(4, 3, 4, 4), normal(3))
t.add("as many taps, groups", lambda p, w, b: F.conv_transpose2d(p, w, b, stride=(2, 3), padding=(1, 2), groups=2), x2, normal(4, 3, 4, 6), normal(6))
t.add("as many taps, bfloat16", lambda p, w: F.conv_transpose2d(p, w, stride=2), x2.to(torch.bfloat16), normal(4, 8, 2, 2, dtype=torch.bfloat16))
t.add("stride 1, wide padding", lambda p, w: F.conv_transpose2d(p, w, padding=(2, 3), dilation=(1, 2)), x2, normal(4, 2, 3, 2))
t.add("padding beyond the kernel", lambda p, w, b: F.conv_transpose1d(p, w, b, stride=2, padding=4), x1, normal(4, 3, 2), normal(3))
t.add("phases without taps", lambda p, w, b: F.conv_transpose1d(p, w, b, stride=3), x1, normal(4, 3, 2), normal(3))
t.add("stride and dilation with a common factor", lambda p, w: F.conv_transpose1d(p, w, stride=4, dilation=6, padding=3), x1, normal(4, 3, 5))
t.add("stride and dilation without one", lambda p, w: F.conv_transpose1d(p, w, stride=3, dilation=2, output_padding=2), x1, normal(4, 3, 5))
t.add("groups, unequal phases", lambda p, w, b: F.conv_transpose2d(p, w, b, stride=2, padding=1, output_padding=1, groups=2), x2, normal(4, 3, 3, 3), normal(6))
t.add("infinities reach only their taps", lambda p, w: F.conv_transpose1d(p, w, stride=2), torch.where(x1 > 1, math.inf, x1), normal(4, 3, 3))
t.add("unbatched", F.conv_transpose1d, normal(4, 9), normal(4, 3, 3), normal(3))
t.add("3d", lambda p, w: F.conv_transpose3d(p, w, stride=2, padding=1), normal(1, 2, 3, 4, 3), normal(2, 3, 2, 4, 3))
