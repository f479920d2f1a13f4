"""Tilewright for PyTorch: models captured by torch.export, compiled under a schedule that can be read, edited and checked in.

    model = tilewright.load("M.pt2", schedule="M.schedule", target="cuda")
    y = model(x)                       # torch tensors; on a GPU on torch's current stream, capturable in a CUDA graph
    tilewright.autotune("M.pt2", target="cuda", out="M.schedule", budget=60)
"""

from .autotune import autotune
from .errors import TilewrightBug, UserError
from .model import Model, load

__all__ = ["Model", "TilewrightBug", "UserError", "autotune", "load"]
__version__ = "0.1.0"
