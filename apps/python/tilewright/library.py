"""libtilewright.so through ctypes: its types, its functions, and its errors as exceptions."""

import ctypes
import os

from .errors import TilewrightBug, UserError

MAX_RANK = 16


class Tensor(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("data", ctypes.c_void_p),
    ]


class Output(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("is_input", ctypes.c_int32), ("is_output", ctypes.c_int32)]


_SIGNATURES = {
    "tilewright_error": (ctypes.c_char_p, [ctypes.POINTER(ctypes.c_int32)]),
    "tilewright_dtype": (ctypes.c_int32, [ctypes.c_char_p]),
    "tilewright_load": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]),
    "tilewright_free": (None, [ctypes.c_void_p]),
    "tilewright_target": (ctypes.c_char_p, [ctypes.c_void_p]),
    "tilewright_device": (ctypes.c_int32, [ctypes.c_void_p]),
    "tilewright_input_count": (ctypes.c_int32, [ctypes.c_void_p]),
    "tilewright_output_count": (ctypes.c_int32, [ctypes.c_void_p]),
    "tilewright_input_label": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int32]),
    "tilewright_input_name": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int32]),
    "tilewright_describe": (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_int32, ctypes.POINTER(Output)]),
    "tilewright_run": (
        ctypes.c_int32,
        [ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_int32, ctypes.POINTER(Tensor), ctypes.c_void_p],
    ),
}


def _find():
    """The library beside this file, or in `lib` beside the folder that holds this package."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "..", "..", "lib")):
        path = os.path.join(folder, "libtilewright.so")
        if os.path.exists(path):
            return path
    raise ImportError(f"libtilewright.so is not beside {__file__}; build the target python_package and put its folder in PYTHONPATH")


def _open():
    library = ctypes.CDLL(_find())
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _open()


def raise_error():
    """Raises what the library's last failure in this thread was."""
    mistake = ctypes.c_int32()
    message = lib.tilewright_error(ctypes.byref(mistake)).decode(errors="replace")
    raise (UserError if mistake.value else TilewrightBug)(message)
