"""What a case is, and makers of inputs."""
import math
from dataclasses import dataclass, field

import torch

FAMILIES = []
INF, NAN = math.inf, math.nan
f16, bf16, f32, f64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
i8, u8, i16, i32, i64, b8 = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool


@dataclass
class Case:
    name: str
    function: object
    inputs: tuple
    float64: bool = False  # the right values are those of float64, because eager's are not exact enough


@dataclass
class Family:
    name: str
    core: bool = True  # also exported after run_decompositions()
    cases: list = field(default_factory=list)
    sizes: list = None  # of dynamic families: (batch, length) of the export, and of the recorded values

    def add(self, name, function, *inputs, float64=False):
        self.cases.append(Case(name, function, inputs, float64))


def family(name, core=True):
    torch.manual_seed(sum(map(ord, name)))
    made = Family(name, core)
    FAMILIES.append(made)
    return made


def normal(*size, dtype=f32):
    return torch.randn(size).to(dtype)


def uniform(low, high, *size, dtype=f32):
    return (torch.rand(size) * (high - low) + low).to(dtype)


def integers(low, high, *size, dtype=i64):
    return torch.randint(low, high, size).to(dtype)


def booleans(*size):
    return torch.rand(size) > 0.5


def tensor(values, dtype=f32):
    return torch.tensor(values, dtype=dtype)


def special(dtype=f32):
    """Signed zeros, infinities, NaN, denormals and ordinary values."""
    return torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.0e-41, 100.0, -100.0, INF, -INF, NAN], dtype=f32).to(dtype)
