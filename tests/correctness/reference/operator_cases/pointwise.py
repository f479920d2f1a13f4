"""Elementwise arithmetic, functions, comparisons, selection and activations."""
import torch
import torch.nn.functional as F

from .family import *

# --- unary functions
u = family("unary")
x, s = normal(3, 5), special()
for name in ["abs", "ceil", "cos", "erf", "exp", "exp2", "expm1", "floor", "neg", "round", "sign", "sin", "sigmoid", "tanh", "trunc", "atan",
             "asinh", "reciprocal", "square", "frac", "sinh", "cosh", "tan", "erfc", "sinc", "deg2rad", "rad2deg"]:
    u.add(name, getattr(torch, name), x)
    if name not in ("frac", "tan", "sinc"):
        u.add(name + " special", getattr(torch, name), s)
p = uniform(0.05, 5, 3, 5)
for name in ["log", "log10", "log1p", "log2", "rsqrt", "sqrt", "lgamma", "digamma", "acosh"]:
    q = p + 1 if name == "acosh" else p
    u.add(name, getattr(torch, name), q)
    if name not in ("digamma", "lgamma"):
        u.add(name + " special", getattr(torch, name), s)
unit = uniform(-0.99, 0.99, 4, 4)
for name in ["acos", "asin", "atanh", "erfinv"]:
    u.add(name, getattr(torch, name), unit)
    u.add(name + " special", getattr(torch, name), s)
u.add("logit", torch.logit, uniform(0.01, 0.99, 5))
u.add("logit eps", lambda a: torch.logit(a, 0.1), uniform(0, 1, 5))
u.add("round decimals", lambda a: torch.round(a, decimals=2), normal(4))
for name in ["isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf"]:
    u.add(name, getattr(torch, name), s)
u.add("nan_to_num", torch.nan_to_num, s)
u.add("nan_to_num values", lambda a: torch.nan_to_num(a, 1.0, 2.0, -3.0), s)
u.add("empty", torch.exp, normal(0, 3))
u.add("0-d", torch.cos, normal())

ut = family("unary_types")
ints = tensor([-128, -7, 0, 5, 127], i8)
for d in [f16, bf16, f64]:
    v = (normal(11) * 3).to(d)
    for name in ["abs", "cos", "erf", "exp", "floor", "neg", "rsqrt", "sigmoid", "tanh", "sqrt", "round", "log1p", "expm1", "sin"]:
        ut.add(f"{name}/{d}", getattr(torch, name), v.abs() if name in ("rsqrt", "sqrt", "log1p") else v)
    ut.add(f"exp special/{d}", torch.exp, special(d))
for name in ["abs", "neg", "sign", "exp", "sqrt", "floor", "ceil", "round", "trunc", "cos", "sigmoid", "reciprocal", "isnan", "isinf", "signbit", "square"]:
    ut.add(f"{name}/int8", getattr(torch, name), ints)
ut.add("abs/uint8", torch.abs, tensor([0, 7, 255], u8))
ut.add("neg/uint8", torch.neg, tensor([0, 7, 255], u8))
ut.add("neg/int64", torch.neg, tensor([-2**63, 5], i64))
ut.add("exp/bool", torch.exp, tensor([True, False], b8))
ut.add("sign/bool", torch.sign, tensor([True, False], b8))
for d in [u8, i16, i32, i64, b8]:
    ut.add(f"bitwise_not/{d}", torch.bitwise_not, integers(0, 100, 6).to(d))
    ut.add(f"logical_not/{d}", torch.logical_not, integers(0, 2, 6).to(d))
ut.add("logical_not/float32", torch.logical_not, special())

# --- arithmetic
a = family("arithmetic")
x, y = normal(2, 3, 4), normal(3, 1)
for name in ["add", "sub", "mul", "div", "atan2", "maximum", "minimum", "fmod", "remainder", "fmax", "fmin", "hypot", "copysign"]:
    a.add(f"{name} broadcast", getattr(torch, name), x, y)
    a.add(f"{name} special", lambda p, q, f=getattr(torch, name): f(p.unsqueeze(1), q), special(), special())
a.add("add alpha", lambda p, q: torch.add(p, q, alpha=2.5), x, y)
a.add("sub alpha", lambda p, q: torch.sub(p, q, alpha=-0.5), x, y)
a.add("rsub", lambda p: torch.rsub(p, 2.0), x)
a.add("rsub alpha", lambda p, q: torch.rsub(p, q, alpha=3), x, y)
a.add("scalar add", lambda p: p + 1, x)
a.add("scalar mul", lambda p: p * 0.1, x)
a.add("scalar div", lambda p: p / 3, x)
a.add("scalar rdiv", lambda p: 3 / p, x)
a.add("empty", torch.add, normal(0, 3), normal(3))
a.add("empty broadcast", torch.mul, normal(2, 0, 3), normal(1, 1))
a.add("0-d", torch.add, normal(), normal())
a.add("transposed", lambda p, q: p.t() + q, normal(3, 5), normal(5, 3))
a.add("expanded", lambda p, q: p.expand(4, 3) * q, normal(1, 3), normal(4, 3))
a.add("sliced", lambda p, q: p[::2, 1:] - q[1:, ::2], normal(6, 4), normal(4, 6))
a.add("ceil then divide", lambda p: 1 / (torch.ceil(p) + torch.zeros(3)), tensor([-0.5, -0.1, -0.9]))
a.add("atan2 of zeros", lambda p: torch.atan2(p, torch.neg(p)), torch.zeros(2))
a.add("copysign scalar", lambda p: torch.copysign(p, -0.0), tensor([1.0, -2.0]))
a.add("minimum of zeros", lambda p, q: torch.minimum(p, q), tensor([-0.0, 0.0]), tensor([0.0, -0.0]))
a.add("nextafter", torch.nextafter, tensor([1.0, 0.0, -1.0]), tensor([2.0, 1.0, -2.0]))
a.add("addcmul", lambda p, q, r: torch.addcmul(p, q, r, value=0.5), x, y, normal(4))
a.add("addcdiv", lambda p, q, r: torch.addcdiv(p, q, r, value=-2), x, y, uniform(1, 2, 4))
a.add("lerp scalar low", lambda p, q: torch.lerp(p, q, 0.3), x, y)
a.add("lerp scalar high", lambda p, q: torch.lerp(p, q, 0.8), x, y)
a.add("lerp tensor", torch.lerp, x, y, uniform(0, 1, 4))
a.add("xlogy", torch.xlogy, tensor([0.0, 0.0, 2.0, 1.0]), tensor([0.0, NAN, 3.0, 0.0]))
a.add("logaddexp", torch.logaddexp, tensor([0.0, -INF, INF, 100.0]), tensor([1.0, -INF, INF, 99.0]))
a.add("logaddexp2", torch.logaddexp2, tensor([0.0, -INF, 10.0]), tensor([1.0, -INF, 9.0]))
a.add("heaviside", torch.heaviside, tensor([-1.0, 0.0, 2.0]), tensor([0.5, 0.5, 0.5]))
a.add("ldexp", torch.ldexp, normal(3), tensor([1, 2, -1], i32))
for mode in [None, "trunc", "floor"]:
    a.add(f"div mode {mode}", lambda p, q, m=mode: torch.div(p, q, rounding_mode=m), normal(3, 4) * 5, normal(4))
    a.add(f"div mode {mode} bfloat16", lambda p, q, m=mode: torch.div(p, q, rounding_mode=m), normal(40, dtype=bf16) * 5, normal(40, dtype=bf16))
a.add("floor_divide", torch.floor_divide, normal(3, 4) * 5, normal(4))
a.add("where", lambda c, p, q: torch.where(c, p, q), booleans(3, 1), normal(3, 4), normal(4))
a.add("where scalar other", lambda c, p: torch.where(c, p, 0.0), booleans(3, 4), normal(3, 4))
a.add("where scalar self", lambda c, p: torch.where(c, 1.5, p), booleans(3, 4), normal(3, 4))
a.add("where scalars", lambda c: torch.where(c, 1, 0), booleans(3, 4))
a.add("where mixed types", torch.where, booleans(3), integers(0, 9, 3), normal(3))
a.add("masked_fill", lambda p, m: p.masked_fill(m, -INF), normal(3, 4), booleans(4))
a.add("masked_fill tensor", lambda p, m, v: p.masked_fill(m, v), normal(3, 4), booleans(3, 1), tensor(2.5))
a.add("masked_fill int", lambda p, m: p.masked_fill(m, 7), integers(0, 9, 3, 4), booleans(3, 4))

pw = family("power")
x, pos = normal(3, 4), uniform(0.1, 3, 3, 4)
for e in [0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 1.7, -3.0]:
    pw.add(f"tensor ** {e}", lambda p, e=e: torch.pow(p, e), pos)
pw.add("special ** 2", lambda p: p ** 2, special())
pw.add("special ** 0", lambda p: p ** 0, special())
pw.add("special ** 0.5", lambda p: p ** 0.5, special())
pw.add("negative ** 3", lambda p: p ** 3, x)
pw.add("negative ** 1.5 is NaN", lambda p: p ** 1.5, x)
for base in [2, 10000.0, 1, 0.5]:
    pw.add(f"{base} ** tensor", lambda p, b=base: torch.pow(b, p), x)
pw.add("tensor ** tensor", torch.pow, pos, x)
pw.add("special ** special", lambda p, q: torch.pow(p.unsqueeze(1), q), special(), special())
pw.add("int ** 2", lambda p: p ** 2, tensor([-3, 0, 5], i32))
pw.add("int ** 5", lambda p: p ** 5, tensor([-3, 0, 5], i64))
pw.add("int ** 0.5", lambda p: p ** 0.5, tensor([4, 0, 9], i64))
pw.add("int ** int", torch.pow, tensor([2, -3, 0, 7], i64), tensor([10, 3, 0, 1], i64))
pw.add("uint8 wraps", lambda p: p ** 2, tensor([200, 3], u8))
pw.add("2 ** int", lambda p: 2 ** p, tensor([0, 1, 5], i64))
pw.add("float16 ** 2", lambda p: p ** 2, normal(5, dtype=f16))
pw.add("bfloat16 ** 0.3", lambda p: p ** 0.3, uniform(0, 4, 5, dtype=bf16))

# --- type promotion
t = family("promotion", core=False)
kinds = {"bool": tensor([True, False, True], b8), "uint8": tensor([200, 3, 7], u8), "int8": tensor([-100, 3, 7], i8),
         "int16": tensor([-1000, 3, 7], i16), "int32": tensor([-70000, 3, 7], i32), "int64": tensor([2**40, -3, 7], i64),
         "float16": tensor([1.5, -2.25, 100.0], f16), "bfloat16": tensor([1.5, -2.25, 100.0], bf16), "float32": tensor([1.1, -2.2, 3.3]),
         "float64": tensor([1.1, -2.2, 3.3], f64)}
names = list(kinds)
for i, n in enumerate(names):
    for m in names[i:]:
        t.add(f"mul {n} {m}", torch.mul, kinds[n], kinds[m])
        if (i + len(m)) % 2:
            t.add(f"eq {m} {n}", torch.eq, kinds[m], kinds[n])
for n, v in kinds.items():
    t.add(f"{n} + 1", lambda p: p + 1, v)
    t.add(f"{n} * 2.5", lambda p: p * 2.5, v)
    t.add(f"{n} / 2", lambda p: p / 2, v)
    t.add(f"{n} > 1.5", lambda p: p > 1.5, v)
    t.add(f"{n} + 0-d float64", torch.add, v, tensor(0.5, f64))
    t.add(f"{n} * 0-d int64", torch.mul, v, tensor(3, i64))
    t.add(f"{n} where 0-d", lambda p, q: torch.where(p > 1, p, q), v, tensor(2, i32))
t.add("0-d int32 + 0-d float16", torch.add, tensor(3, i32), tensor(0.5, f16))
t.add("0-d bool + 1", lambda p: p + 1, tensor(True, b8))
t.add("bool + bool", torch.add, kinds["bool"], kinds["bool"])
t.add("cat mixed", lambda p, q: torch.cat([p, q]), kinds["int64"], kinds["float16"])
t.add("stack mixed", lambda p, q: torch.stack([p, q]), kinds["uint8"], kinds["int8"])
t.add("clamp int by float", lambda p: torch.clamp(p, 0.5, 3.5), kinds["int32"])

# --- integers
n = family("integers", core=False)
a64, b64 = tensor([-7, 7, -7, 7, -6], i64), tensor([3, -3, -3, 3, 3], i64)
for name in ["remainder", "fmod", "floor_divide"]:
    n.add(name, getattr(torch, name), a64, b64)
n.add("div trunc", lambda p, q: torch.div(p, q, rounding_mode="trunc"), a64, b64)
n.add("div floor", lambda p, q: torch.div(p, q, rounding_mode="floor"), a64, b64)
n.add("true div", torch.div, a64, b64)
n.add("remainder scalar", lambda p: p % 4, a64)
n.add("remainder scalar tensor", lambda p: torch.remainder(10, p), b64)
n.add("fmod scalar", lambda p: torch.fmod(p, 4), a64)
n.add("remainder of the smallest", torch.remainder, tensor([-2147483648, 5], i32), tensor([-1, -1], i32))
n.add("uint8 wraps in sums", lambda p: torch.sum(torch.cat([-torch.abs(p), -torch.abs(p)])), tensor([200, 200], u8))
n.add("uint8 neg plus float", lambda c, p: torch.neg(c) + p, tensor(7, u8), tensor([1.5]))
n.add("uint8 add to int16", lambda p: (p + p).to(i16), tensor([128], u8))
n.add("uint8 neg less", lambda p: torch.neg(p) < tensor([4], u8), tensor([6], u8))
n.add("int8 wraps", lambda p: p * p, tensor([100, -128, 7], i8))
n.add("int16 shift", lambda p: p << 3, tensor([100, -128, 32767], i16))
n.add("int32 shift right", lambda p: p >> 2, tensor([100, -128, -1], i32))
n.add("shift tensors", torch.bitwise_left_shift, tensor([1, 2, 3], i64), tensor([4, 0, 62], i64))
n.add("shift right tensors", torch.bitwise_right_shift, tensor([-64, 2, 3], i64), tensor([4, 0, 1], i64))
for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
    n.add(name, getattr(torch, name), tensor([12, -7, 255], i32), tensor([10, 3, -1], i32))
    n.add(name + " bool", getattr(torch, name), tensor([True, True, False], b8), tensor([True, False, False], b8))
    n.add(name + " scalar", lambda p, f=getattr(torch, name): f(p, 6), tensor([12, 7, 255], u8))
n.add("and operator", lambda p, q: p & q, booleans(3, 4), booleans(4))
n.add("or operator", lambda p, q: p | q, booleans(3, 4), booleans(3, 1))
for name in ["logical_and", "logical_or", "logical_xor"]:
    n.add(name, getattr(torch, name), tensor([0, 2, 3], i32), tensor([0.0, 0.0, 1.5]))
n.add("maximum int", torch.maximum, a64, b64)
n.add("minimum uint8", torch.minimum, tensor([200, 3], u8), tensor([100, 255], u8))
n.add("max.other int32", torch.max, tensor([200, 3], i32), tensor([100, 255], i32))
n.add("min.other", torch.min, normal(4), normal(4))
n.add("addcmul int", lambda p, q, r: torch.addcmul(p, q, r, value=3), a64, b64, a64)
n.add("uint8 div floor", lambda p: p // 7, tensor([200, 6, 255], u8))
n.add("int64 large", lambda p: p * 3 + 1, tensor([2**61, -(2**62)], i64))

c = family("comparison")
x = normal(3, 4).round()
for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    c.add(name, getattr(torch, name), x, normal(4).round())
    c.add(name + " scalar", lambda p, f=getattr(torch, name): f(p, 0), x)
    c.add(name + " special", lambda p, q, f=getattr(torch, name): f(p.unsqueeze(1), q), special(), special())
c.add("lt bool", torch.lt, tensor([True, False, False], b8), tensor([True, True, False], b8))
c.add("int with float scalar", lambda p: p > 2.5, tensor([2, 3], i32))
c.add("float16 eq scalar", lambda p: p == 0.1, tensor([0.1, 0.2], f16))
c.add("isclose", torch.isclose, tensor([1.0, NAN, INF, 1.0]), tensor([1.000001, NAN, INF, 2.0]))
c.add("isclose equal_nan", lambda p, q: torch.isclose(p, q, equal_nan=True), tensor([1.0, NAN]), tensor([1.0, NAN]))
c.add("isin", torch.isin, integers(0, 6, 3, 4), integers(0, 6, 3))
c.add("isin invert", lambda p, q: torch.isin(p, q, invert=True), integers(0, 6, 3, 4), integers(0, 6, 3))
c.add("clamp", lambda p: p.clamp(-0.5, 0.5), special())
c.add("clamp min", lambda p: p.clamp(min=0.5), special())
c.add("clamp max", lambda p: p.clamp(max=0.5), special())
c.add("clamp_min", lambda p: torch.clamp_min(p, 0.5), special())
c.add("clamp tensors", torch.clamp, normal(3, 4), normal(4) - 1, normal(4) + 1)
c.add("clamp int", lambda p: p.clamp(2, 5), integers(0, 9, 6))
c.add("clamp bfloat16", lambda p: p.clamp(-0.3, 0.3), normal(6, dtype=bf16))

act = family("activation")
x, s = normal(4, 6) * 3, special()
one_argument = {
    "relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "gelu tanh": lambda p: F.gelu(p, approximate="tanh"), "silu": F.silu, "mish": F.mish,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "hardtanh": F.hardtanh, "hardtanh limits": lambda p: F.hardtanh(p, -2.0, 0.5),
    "hardshrink": F.hardshrink, "softshrink": F.softshrink, "leaky_relu": lambda p: F.leaky_relu(p, 0.2), "elu": F.elu,
    "elu alpha": lambda p: F.elu(p, 1.7), "celu": lambda p: F.celu(p, 1.3), "selu": F.selu, "softplus": F.softplus,
    "softplus beta": lambda p: F.softplus(p, 2.0, 5.0), "logsigmoid": F.logsigmoid, "softsign": F.softsign, "tanhshrink": F.tanhshrink,
    "threshold": lambda p: F.threshold(p, 0.2, -1.0), "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "rrelu in eval": lambda p: F.rrelu(p, training=False), "dropout in eval": lambda p: F.dropout(p, 0.5, training=False),
}
for name, f in one_argument.items():
    act.add(name, f, x)
    if name not in ("hardswish", "mish", "gelu", "softshrink"):  # the CPU's vectorised forms treat infinities and signs of zero otherwise
        act.add(name + " special", f, s)
act.add("prelu", F.prelu, normal(2, 3, 4), normal(3))
act.add("prelu one", F.prelu, normal(2, 3, 4), normal(1))
act.add("glu", F.glu, normal(3, 6))
act.add("glu dim", lambda p: F.glu(p, 1), normal(3, 4, 5))
act.add("relu int", F.relu, tensor([-3, 0, 4], i32))
ah = family("activation_half", core=False)
for d in [f16, bf16]:
    v = (normal(17) * 3).to(d)
    for name in ["relu", "gelu", "gelu tanh", "silu", "hardsigmoid", "hardswish", "leaky_relu", "elu", "softplus", "logsigmoid", "mish", "hardtanh"]:
        ah.add(f"{name}/{d}", one_argument[name], v)
