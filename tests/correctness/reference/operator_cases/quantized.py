"""Floats of 8 bits and products of quantised matrices."""
import torch

from .family import INF, NAN, bf16, f16, f32, family, i8, i32, integers, normal, tensor, u8, uniform

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2

f = family("quantized", core=False)
every_byte = torch.arange(256, dtype=torch.uint8)
edges = tensor([0.0, -0.0, INF, -INF, NAN, 448.0, 464.0, 465.0, 479.9, 480.0, 57344.0, 61439.0, 61440.0, 65535.0, 65536.0, 1e30, 2.0**-6, 2.0**-9, 2.0**-10,
                1.01 * 2.0**-10, 2.0**-14, 2.0**-16, 2.0**-17, 1.01 * 2.0**-17, 1e-30, 17.0, 18.0, 19.0, 1.0625, 1.125, 1.1875])
for name, type in (("e4m3", E4M3), ("e5m2", E5M2)):
    f.add(f"{name} to float32", lambda x: x.to(f32), every_byte.view(type))
    f.add(f"{name} to bfloat16", lambda x: x.to(bf16), every_byte.view(type))
    f.add(f"{name} from float32", lambda x, t=type: x.to(t).to(f32), torch.cat([edges, -edges, normal(100), uniform(-0.02, 0.02, 50)]))
    f.add(f"{name} from float16", lambda x, t=type: x.to(t).to(f32), normal(64, dtype=f16))
    f.add(f"{name} moved", lambda x: torch.cat([x.t(), x.t()], 1)[1:].reshape(-1), normal(6, 5).to(type))
a, b = normal(32, 64).to(E4M3), normal(48, 64).to(E4M3)
f.add("scaled_mm one scale each", lambda a, b, s, t: torch._scaled_mm(a, b.t(), s, t, out_dtype=bf16), a, b, tensor(0.5), tensor(0.25))
f.add("scaled_mm bias, float32", lambda a, b, s, t: torch._scaled_mm(a, b.t(), s, t, out_dtype=f32), a, b, tensor(0.5), tensor(0.25))
f.add("int_mm", lambda a, b: torch._int_mm(a, b.t()), integers(-128, 128, 32, 64, dtype=i8), integers(-128, 128, 48, 64, dtype=i8))
f.add("int8 times int8 in int32", lambda a, b: a.to(i32) @ b.to(i32).t(), integers(-128, 128, 20, 64, dtype=i8), integers(-128, 128, 40, 64, dtype=i8))
f.add("uint8 times int8 in int32", lambda a, b: a.to(i32) @ b.to(i32).t(), integers(0, 256, 20, 64, dtype=u8), integers(-128, 128, 40, 64, dtype=i8))


def int4_weight(x, w, scale):
    """Two values of 4 bits a byte, a scale for each 32 terms."""
    q = torch.stack([w & 15, w >> 4], -1).reshape(w.shape[0], -1).to(bf16)
    return x @ ((q.reshape(w.shape[0], -1, 32) - 8) * scale[..., None]).reshape(w.shape[0], -1).t()


f.add("int4 weights", int4_weight, normal(16, 128, dtype=bf16), integers(0, 256, 64, 64, dtype=u8), normal(64, 4, dtype=bf16))
