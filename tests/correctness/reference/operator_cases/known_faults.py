"""What compilers like this one get wrong: each kind of fault by itself and beside neighbours that it may be fused with."""
import torch
import torch.nn.functional as F

from .family import *

k = family("known_faults", core=False)

# Narrow integers wrap, also inside of a chain and before a comparison.
k.add("uint8 negation summed", lambda x: torch.cat([-torch.abs(x)] * 2).sum(), tensor([200, 200], u8))
k.add("uint8 negation plus float", lambda c, x: torch.neg(c) + x, tensor(7, u8), tensor([1.5]))
k.add("uint8 sum widened", lambda x: (x + x).to(i16), tensor([128], u8))
k.add("uint8 negation compared", lambda x: torch.neg(x) < tensor(4, u8), tensor([6], u8))
k.add("int8 product then quotient", lambda x: (x * x).float() / 2, tensor([100, -128, 7], i8))
v = [5, 1, 100, 3, 7, 8, 9, 13, 100, 120, 127, 2, 6, 4, 11, 12, 90, 80]
for n in (15, 16, 17, 18, 31, 33):
    long = (v * 2)[:n]
    k.add(f"minimum of {n} uint8", lambda x: (x.min(), x.argmin(), (x + 1).min()), tensor(long, u8))
    k.add(f"maximum of {n} int8", lambda x: ((-x).max(), (-x).argmax()), tensor(long, i8))

# Quotients and remainders.
a, b = tensor([-7, 7, -7, 7, -6], i64), tensor([3, -3, -3, 3, 3], i64)
k.add("quotients", lambda p, q: (torch.remainder(p, q), torch.fmod(p, q), p // q, torch.div(p, q, rounding_mode="trunc"), (p // q) * q + p % q), a, b)
k.add("smallest by -1", lambda p, q: (torch.remainder(p, q), torch.fmod(p, q)), tensor([-2147483648], i32), tensor([-1], i32))


# One value for all its readers; casts that were written stay.
def equals_its_maximum(x):
    s = x / math.sqrt(3)
    return (s == torch.amax(s, -1, keepdim=True)).sum(-1) > 0


k.add("every row has its maximum", equals_its_maximum, normal(32, 257, dtype=bf16))
k.add("cast read later", lambda x: (x * 1).to(bf16).float() + 1, tensor([1.00400625]))


def cast_of_product(x):
    y = (x @ x).to(bf16).float()
    return (y * torch.sigmoid(y)).sum()


k.add("cast of a product", cast_of_product, normal(64, 64))

# Infinities in rows.
rows = tensor([[-INF] * 4, [1, INF, 2, 3], [-INF, 0, -INF, 1]])
k.add("softmax of infinities", lambda x: (x.softmax(-1), x.log_softmax(-1), x.logsumexp(-1)), rows)
k.add("logcumsumexp of infinities", lambda x: x.logcumsumexp(0), tensor([-INF, -INF, 1]))
q, keys, mask = normal(1, 2, 3, 8), normal(1, 2, 5, 8), torch.ones(3, 5, dtype=torch.bool)
mask[1] = False
k.add("a row of the mask all False", lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m), q, keys, mask)

# NaN and ties.
k.add("NaN wins", lambda x: (x.argmax(), x.argmin(), x.max(), x.min()), tensor([4, 5.5, NAN, 9]))
k.add("first of ties", lambda x: (x.argmax(), (x * 2).argmax()), tensor([1.0, 3, 3, 3]))
for n in (5000, 2**20):
    k.add(f"ties of {n} zeros", lambda x, n=n: (x.expand(n).argmax(), x.expand(n).argmin()), tensor(0.0))
k.add("NaN passes", lambda x: (torch.maximum(x, x - x), x.clamp_min(0.5), x.clamp(0, 1), x.relu(), torch.minimum(x, x * 0)), tensor([NAN, 1.0, -1.0]))

# The sign of zero shows in the reciprocal.
zeros = tensor([-0.0, 0.0])
k.add("ceil keeps no sign after a sum", lambda x: 1 / (torch.ceil(x) + torch.zeros(3)), tensor([-0.5, -0.1, -0.9]))
k.add("ceil, trunc, round keep signs", lambda x: (1 / torch.ceil(x), 1 / torch.trunc(x), 1 / torch.round(x)), tensor([-0.4, 0.1, -0.3]))
k.add("atan2 of zeros", lambda x: torch.atan2(x, torch.neg(x)), torch.zeros(2))
k.add("copysign and signbit", lambda x: (torch.copysign(x + 1, -0.0), torch.signbit(x), torch.signbit(-x)), zeros)
k.add("minimum of zeros", lambda x, y: 1 / torch.minimum(x, y), tensor([-0.0]), tensor([0.0]))
k.add("product and negation of zeros", lambda x: (1 / (x * -1), 1 / -x, 1 / (x * x)), zeros)

# Moments at a large mean, against float64.
for mean in (0, 100, 1000):
    k.add(f"layer norm at {mean}", lambda x: F.layer_norm(x, (16,), eps=1e-5), mean + torch.arange(16.0).reshape(1, 16) * 1e-3, float64=True)
k.add("layer norm at 80000", lambda x: F.layer_norm(x, (4,)) * 2, tensor([[80000.0, 80001, 80002, 80003]]), float64=True)
k.add("variance at 1e5", lambda x: (x.var(-1), x.std(-1)), 1e5 + normal(2, 4096), float64=True)
k.add("variance of one element", lambda x: (x.var(-1, correction=1), x.var(-1, correction=0)), tensor([[3.0]]))

# A zero factor skips its operand.
k.add("addmm without its bias", lambda x, p, q: torch.addmm(x, p, q, beta=0), torch.full((4,), NAN), torch.ones(1, 4), torch.ones(4, 4))

# Repeated indices.
k.add("repeated indices accumulate", lambda x, i, y: torch.index_put(x, (i,), y, accumulate=True), torch.zeros(8), tensor([5, 5, 5, 7], i64), tensor([1.0, 2, 3, 4]))
k.add("negative index", lambda x: x[[-1]], torch.arange(4.0))

# No dimensions, no elements.
k.add("no dimensions", lambda x: (x.mean(0), x.cumsum(0), x.cumsum(-1), x.flip(0) * 1), tensor(5.0))
k.add("inner dimension empty", lambda p, q: p @ q, torch.ones(4, 0), torch.ones(0, 4))
k.add("addmm of empty", lambda x, p, q: torch.addmm(x, p, q) + 1, torch.full((3,), 2.0), torch.ones(2, 0), torch.ones(0, 3))
k.add("reductions of empty", lambda x, y: (x.sum(0), y.mean(1), x.prod(), (x > 0).all(), (x > 0).any(), x.argmin(1)), torch.zeros(0, 3), torch.zeros(3, 0))
