"""Writes core_operators.txt: one call of a core operator a case, its inputs and the values that PyTorch computes.

    python tests/data/make_core_operators.py > tests/data/core_operators.txt
"""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
NAN, INF = float("nan"), float("inf")
NAMES = {torch.bool: "bool", torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16",
         torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8"}


def randn(*size, dtype=torch.float32):
    """Normal, in sixteenths: short to print, and sums of them are exact."""
    return (torch.randn(*size) * 16).round().to(dtype) / 16


def meta(t):
    return f"{NAMES[t.dtype]}[{', '.join(map(str, t.shape))}]"


def number(v):
    return str(int(v)) if isinstance(v, (bool, int)) else f"{v:.9g}"


def values(t):
    return " ".join(number(v) for v in t.detach().reshape(-1).tolist())


def argument(value, add):
    if isinstance(value, torch.Tensor):
        return add(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(argument(v, add) for v in value) + "]"
    if isinstance(value, torch.dtype):
        return f"torch.{NAMES[value]}"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value)
    return number(value)


def case(name, target, expected, **arguments):
    several = isinstance(expected, (list, tuple))
    results = [r.contiguous() for r in (expected if several else [expected])]
    lines, inputs = [], []

    def add(t):
        t = t.contiguous()
        inputs.append((f"x{len(inputs)}", t))
        lines.append(f"%{inputs[-1][0]} : {meta(t)} = placeholder")
        return f"%{inputs[-1][0]}"

    text = ", ".join(f"{k}={argument(v, add)}" for k, v in arguments.items())
    result_meta = f"({', '.join(map(meta, results))})" if several else meta(results[0])
    lines.append(f"%y : {result_meta} = call_function {target}({text})")
    if several:
        for i, r in enumerate(results):
            lines.append(f"%y{i} : {meta(r)} = call_function getitem(tuple=%y, index={i})")
        lines.append(f"%output = output(values=[{', '.join(f'%y{i}' for i in range(len(results)))}])")
    else:
        lines.append("%output = output(values=[%y])")
    print("case", name)
    for line in lines:
        print("graph", line)
    for input_name, t in inputs:
        print("input", input_name, values(t))
    for i, r in enumerate(results):
        print(f"expect out{i}", values(r))
    print("end")


def T(data, dtype=torch.float32):
    return torch.tensor(data, dtype=dtype)


SPECIAL = T([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, INF, -INF, NAN, 1e-30, 20.0])
UNIT = T([0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 0.999])
ABOVE = T([1.0, 1.5, 3.0, 40.0])


def pointwise():
    special = torch.special
    for name, f in dict(abs=torch.abs, atan=torch.atan, asinh=torch.asinh, ceil=torch.ceil, cosh=torch.cosh, erf=torch.erf, erfc=torch.erfc,
                        exp=torch.exp, exp2=torch.exp2, expm1=torch.expm1, floor=torch.floor, isfinite=torch.isfinite, isinf=torch.isinf,
                        isnan=torch.isnan, log=torch.log, log10=torch.log10, log1p=torch.log1p, log2=torch.log2,
                        logical_not=torch.logical_not, neg=torch.neg, round=torch.round, rsqrt=torch.rsqrt, sign=torch.sign,
                        signbit=torch.signbit, sinh=torch.sinh, sqrt=torch.sqrt, tanh=torch.tanh, trunc=torch.trunc).items():
        case(f"pointwise/{name}", f"prims.{name}", f(SPECIAL), a=SPECIAL)
    finite = SPECIAL[:7]
    for name, f in dict(sin=torch.sin, cos=torch.cos, tan=torch.tan).items():
        case(f"pointwise/{name}", f"prims.{name}", f(finite), a=finite)
    for name, f in dict(asin=torch.asin, acos=torch.acos, atanh=torch.atanh, erfinv=torch.erfinv).items():
        case(f"pointwise/{name}", f"prims.{name}", f(UNIT), a=UNIT)
    for name, f in dict(acosh=torch.acosh, lgamma=torch.lgamma, digamma=special.digamma).items():
        case(f"pointwise/{name}", f"prims.{name}", f(ABOVE), a=ABOVE)
    a, b = T([1.0, -0.0, 0.0, -7.5, NAN, 3.0, INF, 5.0, -5.0]), T([2.0, 0.0, -0.0, 2.0, 1.0, NAN, -INF, 0.0, -3.0])
    for name, f in dict(add=torch.add, sub=torch.sub, mul=torch.mul, div=torch.div, fmod=torch.fmod, remainder=torch.remainder,
                        atan2=torch.atan2, copysign=torch.copysign, hypot=torch.hypot, nextafter=torch.nextafter, eq=torch.eq, ne=torch.ne, lt=torch.lt, le=torch.le,
                        gt=torch.gt, ge=torch.ge, pow=torch.pow).items():
        case(f"pointwise/{name}", f"prims.{name}", f(a, b), a=a, b=b)
    for name in ["minimum", "maximum", "fmin", "fmax"]:
        case(f"pointwise/{name}", f"prims.{name}", getattr(torch, name)(a[3:], b[3:]), a=a[3:], b=b[3:])
    case("pointwise/minimum_zero", "prims.minimum", T([-0.0]), a=T([-0.0]), b=T([0.0]))
    case("pointwise/maximum_zero", "prims.maximum", T([0.0]), a=T([0.0]), b=T([-0.0]))
    case("pointwise/div_floor", "prims.div_floor", torch.div(a, b, rounding_mode="floor"), a=a, b=b)
    case("pointwise/div_trunc", "prims.div_trunc", torch.div(a, b, rounding_mode="trunc"), a=a, b=b)
    i, j = T([-7, 7, -7, 7, -6, 100, -128], torch.int8), T([3, -3, -3, 3, 3, 100, -1], torch.int8)
    for name, f in dict(add=torch.add, sub=torch.sub, mul=torch.mul, fmod=torch.fmod, remainder=torch.remainder, minimum=torch.minimum,
                        maximum=torch.maximum, bitwise_and=torch.bitwise_and, bitwise_or=torch.bitwise_or, bitwise_xor=torch.bitwise_xor,
                        lt=torch.lt, eq=torch.eq).items():
        case(f"pointwise/{name}_int8", f"prims.{name}", f(i, j), a=i, b=j)
    k, m = T([-7, 7, -7, 7, -6, -2**31], torch.int32), T([3, -3, -3, 3, 3, 1], torch.int32)
    case("pointwise/div_floor_int32", "prims.div_floor", torch.div(k, m, rounding_mode="floor"), a=k, b=m)
    case("pointwise/div_trunc_int32", "prims.div_trunc", torch.div(k, m, rounding_mode="trunc"), a=k, b=m)
    case("pointwise/neg_uint8", "prims.neg", -T([7, 0, 255], torch.uint8), a=T([7, 0, 255], torch.uint8))
    case("pointwise/abs_int8", "prims.abs", torch.abs(T([-128, -5, 5], torch.int8)), a=T([-128, -5, 5], torch.int8))
    case("pointwise/mul_int64", "prims.mul", T([2**62, -3], torch.int64) * T([6, 7], torch.int64), a=T([2**62, -3], torch.int64),
         b=T([6, 7], torch.int64))
    case("pointwise/pow_int64", "prims.pow", T([2, -3, 7], torch.int64) ** T([10, 3, 0], torch.int64), a=T([2, -3, 7], torch.int64),
         b=T([10, 3, 0], torch.int64))
    case("pointwise/shift_left", "prims.shift_left", T([1, -3], torch.int32) << T([4, 1], torch.int32), a=T([1, -3], torch.int32),
         b=T([4, 1], torch.int32))
    case("pointwise/shift_right", "prims.shift_right", T([17, -3], torch.int32) >> T([4, 1], torch.int32), a=T([17, -3], torch.int32),
         b=T([4, 1], torch.int32))
    p, q = T([False, False, True, True], torch.bool), T([False, True, False, True], torch.bool)
    for name in ["lt", "le", "gt", "ge", "eq", "ne", "bitwise_and", "bitwise_or", "bitwise_xor", "minimum", "maximum"]:
        case(f"pointwise/{name}_bool", f"prims.{name}", getattr(torch, name)(p, q), a=p, b=q)
    case("pointwise/where", "prims.where", torch.where(p, T([1, 2, 3, NAN]), T([5, NAN, 7, 8])), condition=p, a=T([1, 2, 3, NAN]),
         b=T([5, NAN, 7, 8]))
    x = T([1.00400625, -2.7, 300.0, 0.0])
    for dtype in [torch.bfloat16, torch.float16, torch.int32, torch.float64, torch.bool]:
        case(f"pointwise/convert_to_{NAMES[dtype]}", "prims.convert_element_type", x.to(dtype), a=x, dtype=dtype, explicit=True)
    case("pointwise/convert_uint8_to_int8", "prims.convert_element_type", T([200, 5], torch.uint8).to(torch.int8),
         a=T([200, 5], torch.uint8), dtype=torch.int8, explicit=False)
    case("pointwise/full", "prims.full", torch.full([2, 3], 1.5), size=[2, 3], value=1.5, dtype=torch.float32)
    case("pointwise/full_int", "prims.full", torch.full([2], -7, dtype=torch.int64), size=[2], value=-7, dtype=torch.int64)
    case("pointwise/full_bool", "prims.full", torch.full([2], True), size=[2], value=True, dtype=torch.bool)
    case("pointwise/iota", "prims.iota", torch.arange(3, 18, 3), size=5, start=3, step=3, dtype=torch.int64)
    case("pointwise/iota_float", "prims.iota", torch.arange(5, dtype=torch.float32), size=5, start=0, step=1, dtype=torch.float32)
    case("pointwise/zero_dimensions", "prims.exp", torch.exp(T(1.0)), a=T(1.0))
    case("pointwise/no_elements", "prims.exp", torch.ones(2, 0), a=torch.ones(2, 0))


def views():
    a = randn(2, 3, 4)
    case("views/broadcast", "prims.broadcast_in_dim", a[:, :1].expand(5, 2, 3, 4), a=a[:, :1], size=[5, 2, 3, 4], dims=[1, 2, 3])
    case("views/broadcast_inner", "prims.broadcast_in_dim", T([1, 2.0])[:, None].expand(2, 3), a=T([1, 2.0]), size=[2, 3], dims=[0])
    case("views/broadcast_scalar", "prims.broadcast_in_dim", T(3.0).expand(2, 2), a=T(3.0), size=[2, 2], dims=[])
    for to in [[6, 4], [2, 12], [24], [4, 6], [8, 3], [2, 1, 3, 2, 2, 1], [3, 8], [1, 24]]:
        case(f"views/reshape_{'_'.join(map(str, to))}", "prims.reshape", a.reshape(to), a=a, size=to)
    case("views/reshape_to_scalar", "prims.reshape", T([[5.0]]).reshape([]), a=T([[5.0]]), size=[])
    case("views/reshape_from_scalar", "prims.reshape", T(5.0).reshape(1, 1), a=T(5.0), size=[1, 1])
    case("views/reshape_empty", "prims.reshape", torch.zeros(0, 6), a=torch.zeros(2, 0, 3), size=[0, 6])
    case("views/permute", "prims.permute", a.permute(2, 0, 1), a=a, dims=[2, 0, 1])
    case("views/slice", "prims.slice", a[:, :, 1:4:2], a=a, dim=2, start=1, end=4, step=2)
    case("views/slice_empty", "prims.slice", a[:, 2:2], a=a, dim=1, start=2, end=2, step=1)
    case("views/flip", "prims.flip", a.flip(0, 2), a=a, dims=[0, 2])
    case("views/as_strided", "prims.as_strided", a.as_strided([3, 2], [5, 1], 2), a=a, size=[3, 2], stride=[5, 1], offset=2)
    case("views/as_strided_overlapping", "prims.as_strided", a.as_strided([4, 3], [1, 1], 0), a=a, size=[4, 3], stride=[1, 1], offset=0)
    case("views/cat", "prims.cat", torch.cat([a, a[:, :1], a[:, :0], a[:, 1:]], 1), tensors=[a, a[:, :1], a[:, :0], a[:, 1:]], dim=1)
    case("views/cat_empty", "prims.cat", torch.zeros(0, 3), tensors=[torch.zeros(0, 3), torch.zeros(0, 3)], dim=0)
    case("views/pad", "prims.pad", F.pad(a, (1, 2, 0, 0, 2, 0), value=-1.5), a=a, low=[2, 0, 1], high=[0, 0, 2], value=-1.5)
    case("views/pad_crop", "prims.pad", F.pad(a, (-1, 2, 1, -1), value=7), a=a, low=[0, 1, -1], high=[0, -1, 2], value=7)
    case("views/pad_nothing", "prims.pad", torch.full([2, 3], 4.0), a=torch.zeros(0, 3), low=[1, 0], high=[1, 0], value=4.0)


def reductions():
    a = randn(3, 4, 5)
    case("reductions/sum", "prims.sum", a.sum((0, 2)), a=a, dims=[0, 2])
    case("reductions/sum_all", "prims.sum", a.sum(), a=a, dims=[0, 1, 2])
    case("reductions/sum_int64", "prims.sum", T([[2**62, 2**62], [1, 2]], torch.int64).sum(1), a=T([[2**62, 2**62], [1, 2]], torch.int64), dims=[1])
    case("reductions/sum_of_nothing", "prims.sum", torch.zeros(0, 3).sum(0), a=torch.zeros(0, 3), dims=[0])
    case("reductions/sum_no_dims", "prims.sum", a[0], a=a[0], dims=[])
    case("reductions/prod", "prims.prod", a.prod(1), a=a, dims=[1])
    case("reductions/prod_of_nothing", "prims.prod", T(1.0), a=torch.zeros(0), dims=[0])
    n = T([[1, NAN, 3], [-INF, 2, INF]])
    case("reductions/amax", "prims.amax", n.amax(1), a=n, dims=[1])
    case("reductions/amin", "prims.amin", n.amin(1), a=n, dims=[1])
    v = T([5, 1, 100, 3, 7, 8, 9, 13, 100, 120, 127, 2, 6, 4, 11, 12, 90, 80], torch.uint8)
    case("reductions/amin_uint8", "prims.amin", v.amin(0), a=v, dims=[0])
    case("reductions/argmin_uint8", "prims.argmin", v.argmin(0), a=v, dim=0)
    case("reductions/argmax_int8", "prims.argmax", (-v.to(torch.int8)).argmax(0), a=-v.to(torch.int8), dim=0)
    p = T([[True, False], [False, False], [True, True]], torch.bool)
    case("reductions/any", "prims.any", p.any(1), a=p, dims=[1])
    case("reductions/all", "prims.all", p.all(1), a=p, dims=[1])
    case("reductions/all_of_nothing", "prims.all", T([True, True], torch.bool), a=torch.zeros(2, 0, dtype=torch.bool), dims=[1])
    for row in [[4, 5.5, NAN, 9], [1, 3, 3, 3], [NAN, NAN, 1, 2], [0, 0, 0, 0], [-INF, -INF, -INF, -INF]]:
        r = T([row])
        for name in ["argmin", "argmax"]:
            case(f"reductions/{name}_{'_'.join(map(str, row))}", f"prims.{name}", getattr(r, name)(1), a=r, dim=1)
    case("reductions/max_with_index", "prims.max_with_index", tuple(a.max(1)), a=a, dim=1)
    case("reductions/min_with_index", "prims.min_with_index", tuple(a.min(0)), a=a, dim=0)
    for correction in [0, 1]:
        case(f"reductions/var_mean_{correction}", "prims.var_mean", torch.var_mean(a, (1, 2), correction=correction), a=a, dims=[1, 2],
             correction=correction)
        one = T([[3.0]])
        case(f"reductions/var_mean_of_one_{correction}", "prims.var_mean", torch.var_mean(one, 1, correction=correction), a=one, dims=[1],
             correction=correction)
    case("reductions/var_mean_of_nothing", "prims.var_mean", (T([NAN]), T([NAN])), a=torch.zeros(1, 0), dims=[1], correction=1)
    s = T([[-INF, -INF, -INF], [1, INF, 2], [1000, 1001, 999], [NAN, 1, 2], [-INF, 0, 1]])
    case("reductions/logsumexp", "prims.logsumexp", s.logsumexp(1), a=s, dims=[1])


def scans():
    a = randn(3, 4)
    case("scans/cumsum", "prims.cumsum", a.cumsum(1), a=a, dim=1)
    case("scans/cumsum_outer", "prims.cumsum", a.cumsum(0), a=a, dim=0)
    case("scans/cumprod", "prims.cumprod", a.cumprod(1), a=a, dim=1)
    case("scans/cumsum_int8", "prims.cumsum", T([-56, 44, -112], torch.int8), a=T([-56, 100, 100], torch.int8), dim=0)
    x = T([1, 3, 3, 2, NAN, NAN, 5])
    case("scans/cummax", "prims.cummax", tuple(x.cummax(0)), a=x, dim=0)
    case("scans/cummin", "prims.cummin", tuple((-x).cummin(0)), a=-x, dim=0)
    s = T([[-INF, -INF, 1], [0, 1000, 999], [1, INF, 2]])
    case("scans/logcumsumexp", "prims.logcumsumexp", s.logcumsumexp(1), a=s, dim=1)
    case("scans/empty", "prims.cumsum", torch.zeros(2, 0), a=torch.zeros(2, 0), dim=1)


def contractions():
    a, b = randn(2, 3, 4), randn(2, 4, 5)
    case("contractions/dot", "tw.dot", a @ b, a=a, b=b, out_dtype=torch.float32)
    h, g = randn(3, 4).bfloat16(), randn(4, 5).bfloat16()
    case("contractions/dot_bfloat16", "tw.dot", (h.float() @ g.float()).bfloat16(), a=h, b=g, out_dtype=torch.bfloat16)
    i, j = torch.randint(-128, 127, (3, 40), dtype=torch.int8), torch.randint(-128, 127, (40, 2), dtype=torch.int8)
    case("contractions/dot_int8", "tw.dot", i.int() @ j.int(), a=i, b=j, out_dtype=torch.int32)
    case("contractions/dot_int64", "tw.dot", i.long() @ j.long(), a=i.long(), b=j.long(), out_dtype=torch.int64)
    case("contractions/dot_of_nothing", "tw.dot", torch.zeros(4, 4), a=torch.ones(4, 0), b=torch.ones(0, 4), out_dtype=torch.float32)
    zero = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    for n, size, weight, s, p, d, groups in [
            (1, (2, 3, 9), (4, 3, 3), 2, 1, 1, 1), (2, (1, 4, 6, 5), (6, 2, 3, 2), 1, 2, 1, 2), (2, (2, 3, 7, 7), (2, 3, 3, 3), 2, 0, 2, 1),
            (2, (1, 3, 5, 5), (6, 1, 3, 3), 1, 1, 1, 3), (2, (1, 3, 8, 8), (4, 3, 4, 4), 4, 0, 1, 1), (3, (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), 1, 1, 1, 1)]:
        x, w = randn(size), randn(weight)
        case(f"contractions/conv{n}d_{s}{p}{d}{groups}", "tw.convolution", zero[n](x, w, None, s, p, d, groups), input=x, weight=w, stride=[s] * n,
             padding=[p] * n, dilation=[d] * n, groups=groups, out_dtype=torch.float32)
    x = randn(1, 2, 7, 7)
    x[0, 0, 3, 3] = NAN
    for k, s, p, d, ceil in [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 2, 1, 1, True), (2, 1, 0, 2, False)]:
        case(f"contractions/pool_max_{k}{s}{p}{d}{ceil}", "tw.pool_max", F.max_pool2d(x, k, s, p, d, ceil, return_indices=True), a=x,
             kernel=[k, k], stride=[s, s], padding=[p, p], dilation=[d, d])
    y = randn(1, 2, 6)
    case("contractions/pool_sum", "tw.pool_sum", F.avg_pool1d(y, 3, 2, 1) * 3, a=y, kernel=[3], stride=[2], padding=[1])


def indexing():
    a = randn(3, 4, 5)
    i, j = T([[2, -1], [0, 1]], torch.int64), T([[3, 0], [-4, 1]], torch.int64)
    case("indexing/gather_nd", "tw.gather_nd", a[i], a=a, indices=[i, None, None], wrap=True)
    case("indexing/gather_nd_adjacent", "tw.gather_nd", a[:, i, j], a=a, indices=[None, i, j], wrap=True)
    case("indexing/gather_nd_apart", "tw.gather_nd", a[i, :, j], a=a, indices=[i, None, j], wrap=True)
    case("indexing/gather_nd_int32", "tw.gather_nd", a[i], a=a, indices=[i.int(), None, None], wrap=True)
    zero = T(-2, torch.int64)
    case("indexing/gather_nd_scalar", "tw.gather_nd", a[:, zero], a=a, indices=[None, zero, None], wrap=True)
    case("indexing/gather_nd_empty", "tw.gather_nd", a[T([], torch.int64)], a=a, indices=[T([], torch.int64), None, None], wrap=True)
    case("indexing/index_put_scalar", "tw.index_put", torch.zeros(3).index_put((zero,), T(5.0)), a=torch.zeros(3), indices=[zero], values=T(5.0),
         accumulate=False, wrap=True)
    bits = T([False, False, False], torch.bool)
    case("indexing/scatter_bool", "tw.scatter", T([False, True, False], torch.bool), a=bits, dim=0, index=T([1], torch.int64), src=T([True], torch.bool),
         reduce="")
    index = torch.randint(0, 4, (3, 2, 5))
    case("indexing/gather", "tw.gather", a.gather(1, index), a=a, dim=1, index=index)
    src = randn(3, 2, 5)
    distinct = T([2, 0], torch.int64)[None, :, None].expand(3, 2, 5).contiguous()
    case("indexing/scatter", "tw.scatter", a.scatter(1, distinct, src), a=a, dim=1, index=distinct, src=src, reduce="")
    repeated = T([1, 1, 0, 1], torch.int64)
    case("indexing/scatter_last_wins", "tw.scatter", T([3.0, 4.0, 0.0]), a=torch.zeros(3), dim=0, index=repeated, src=T([1.0, 2, 3, 4]), reduce="")
    small = index[:2, :, :3]
    for name, reduce in [("add", "sum"), ("prod", "prod"), ("amin", "amin"), ("amax", "amax")]:
        case(f"indexing/scatter_{name}", "tw.scatter", a.scatter_reduce(1, small, src[:2, :, :3].contiguous(), reduce), a=a, dim=1, index=small,
             src=src[:2, :, :3], reduce=name)
    half = torch.zeros(2, dtype=torch.bfloat16)
    case("indexing/scatter_add_bfloat16", "tw.scatter", T([3, 0.5], torch.bfloat16), a=half, dim=0, index=T([0, 1, 0], torch.int64),
         src=T([1, 0.5, 2], torch.bfloat16), reduce="add")
    put = T([5, 5, 5, 7], torch.int64)
    case("indexing/index_put_accumulate", "tw.index_put", torch.zeros(8).index_put((put,), T([1.0, 2, 3, 4]), True), a=torch.zeros(8),
         indices=[put], values=T([1.0, 2, 3, 4]), accumulate=True, wrap=True)
    case("indexing/index_put_last_wins", "tw.index_put", T([0, 0, 0, 0, 0, 3.0, 0, 4]), a=torch.zeros(8), indices=[put],
         values=T([1.0, 2, 3, 4]), accumulate=False, wrap=True)
    rows = T([2, 0], torch.int64)
    case("indexing/index_put_rows", "tw.index_put", a.index_put((rows,), src[:2, :1].expand(2, 4, 5)), a=a, indices=[rows, None, None],
         values=src[:2, :1].expand(2, 4, 5), accumulate=False, wrap=True)
    case("indexing/index_put_inner", "tw.index_put", a.index_put((torch.arange(3)[:, None, None], torch.arange(4)[None, :, None], rows), src[:, :1, :2].expand(3, 4, 2)),
         a=a, indices=[None, None, rows], values=src[:, :1, :2].expand(3, 4, 2), accumulate=False, wrap=True)


def sorts():
    x = T([[3, NAN, 1, 3, -INF], [0.0, -0.0, 5, INF, 5]])
    for descending in [False, True]:
        case(f"sorts/last_{descending}", "tw.sort", tuple(torch.sort(x, dim=1, stable=True, descending=descending)), a=x, dim=1, descending=descending, count=5)
        case(f"sorts/first_{descending}", "tw.sort", tuple(torch.sort(x, dim=0, stable=True, descending=descending)), a=x, dim=0, descending=descending, count=2)
    case("sorts/first_two", "tw.sort", tuple(t[:, :2] for t in torch.sort(x, dim=1, stable=True)), a=x, dim=1, descending=False, count=2)
    k = torch.randint(0, 4, (2, 3, 4), dtype=torch.uint8)
    case("sorts/middle_uint8", "tw.sort", tuple(torch.sort(k, dim=1, stable=True)), a=k, dim=1, descending=False, count=3)
    b = T([True, False, True, False], torch.bool)
    case("sorts/bool", "tw.sort", tuple(torch.sort(b, stable=True)), a=b, dim=0, descending=False, count=4)
    case("sorts/scalar", "tw.sort", (T(2.0), T(0, torch.int64)), a=T(2.0), dim=0, descending=False, count=1)
    case("sorts/empty", "tw.sort", (torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.int64)), a=torch.zeros(2, 0), dim=1, descending=False, count=0)


for family in [pointwise, views, reductions, scans, contractions, indexing, sorts]:
    family()
