"""Models as callables on torch tensors."""

import ctypes
import json
import os
import threading

import torch
from torch.utils import _pytree

from .errors import UserError
from .library import MAX_RANK, Output, Tensor, lib, raise_error

_DTYPE_NUMBERS = {}
_LEGACY_STREAM = 1  # CU_STREAM_LEGACY: torch's default stream has the handle 0, which to the library means "no stream"


def _dtype_number(dtype):
    number = _DTYPE_NUMBERS.get(dtype)
    if number is None:
        number = _DTYPE_NUMBERS[dtype] = lib.tilewright_dtype(str(dtype).removeprefix("torch.").encode())
    return number


def _dtype_of(number):
    for dtype in vars(torch).values():
        if isinstance(dtype, torch.dtype) and _dtype_number(dtype) == number:
            return dtype
    raise UserError(f"this torch has no dtype number {number}")


class _Outputs:
    """How the outputs for inputs of certain sizes look."""

    def __init__(self, described):
        self.places = []
        for output in described:
            rank = output.tensor.rank
            self.places.append(
                (output.is_input, output.is_output, tuple(output.tensor.sizes[:rank]), tuple(output.tensor.strides[:rank]), _dtype_of(output.tensor.dtype))
            )

    def allocate(self, inputs, device):
        outputs = []
        for is_input, is_output, sizes, strides, dtype in self.places:
            if is_input >= 0:
                outputs.append(inputs[is_input])
            elif is_output >= 0:
                outputs.append(outputs[is_output])
            else:
                outputs.append(torch.empty_strided(sizes, strides, dtype=dtype, device=device))
        return outputs


def _plain(tensor, label):
    """The tensor as memory holds it: no gradient, and values that torch negates or conjugates when they are read made real."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        kind = "quantized" if tensor.is_quantized else "nested" if tensor.is_nested else tensor.layout
        raise UserError(f"{label()} is {kind}; give a dense tensor: x.dequantize(), x.to_dense() or x.to_padded_tensor(0)")
    if tensor.dim() > MAX_RANK:
        raise UserError(f"{label()} has {tensor.dim()} dimensions; at most {MAX_RANK} are possible")
    return tensor.detach().resolve_conj().resolve_neg()


def _tensors_of(given):
    """The tensors in arguments, in order. None stands for what the export has fixed."""
    tensors = []
    for leaf in _pytree.tree_leaves(given):
        if isinstance(leaf, torch.Tensor):
            tensors.append(leaf)
        elif leaf is not None:
            raise UserError(f"an argument is a {type(leaf).__name__}; give a tensor, or None in place of what the export has fixed")
    return tensors


def _fill(into, tensor):
    into.dtype = _dtype_number(tensor.dtype)
    into.rank = tensor.dim()
    for i, size in enumerate(tensor.shape):
        into.sizes[i] = size
    for i, stride in enumerate(tensor.stride()):
        into.strides[i] = stride
    into.data = tensor.data_ptr()


class Model:
    """A loaded model. Takes and returns torch tensors, in the structure and order of the captured signature.

    On a GPU nothing is copied: inputs are read where they lie, outputs are torch's own memory, the work runs on torch's current stream.
    An index out of range raises here; in a captured graph it raises at the next call outside of it.
    A captured graph runs the model's kernels on its weights: keep the model as long as the graph.
    """

    def __init__(self, archive, options):
        self._handle = None
        path = os.fsencode(archive)
        if b"\0" in path:
            raise UserError(f"{archive!r} is no path; give the path of an archive that torch.export.save wrote")
        self._handle = lib.tilewright_load(path, json.dumps(options).encode())
        if not self._handle:
            raise_error()
        self.target = lib.tilewright_target(self._handle).decode()
        ordinal = lib.tilewright_device(self._handle)
        self.device = torch.device("cpu") if self.target == "cpu" else torch.device("cuda", ordinal)
        self._inputs = lib.tilewright_input_count(self._handle)
        self._outputs = lib.tilewright_output_count(self._handle)
        self._names = [lib.tilewright_input_name(self._handle, i).decode() for i in range(self._inputs)]
        self._known = {}
        self._lock = threading.Lock()

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.tilewright_free(self._handle)

    def __copy__(self):
        return self  # calls change nothing in it

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise UserError("a loaded model cannot be pickled; load its archive in the other process")

    def __call__(self, *args, **kwargs):
        tensors = _tensors_of((args, self._in_order(kwargs)))
        if len(tensors) != self._inputs:
            raise UserError(f"{len(tensors)} tensors given, the model takes {self._inputs}")
        for i, tensor in enumerate(tensors):
            if tensor.device != self.device:
                raise UserError(f"{self._label(i)} is on {tensor.device}, the model runs on {self.device}; move it there")
            tensors[i] = _plain(tensor, lambda: self._label(i))
        given = (Tensor * max(len(tensors), 1))()
        for into, tensor in zip(given, tensors):
            _fill(into, tensor)
        outputs = self._describe(given, tensors).allocate(tensors, self.device)
        places = (Tensor * max(len(outputs), 1))()
        for into, tensor in zip(places, outputs):
            _fill(into, tensor)
        stream = None
        if self.target == "cuda":
            stream = torch.cuda.current_stream(self.device).cuda_stream or _LEGACY_STREAM
        if lib.tilewright_run(self._handle, given, len(tensors), places, stream) != 0:
            raise_error()
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _in_order(self, kwargs):
        """Values of keyword arguments, in the order in which the program takes its inputs."""
        places = {}
        for key, value in kwargs.items():
            found = [i for i, name in enumerate(self._names) if name == key] or [i for i, name in enumerate(self._names) if name.startswith(key + "_")]
            if found:
                places[key] = found[0]
            elif value is not None:
                raise UserError(f"the model has no input {key!r}, its inputs are {', '.join(self._names)}; leave {key} out (what is no tensor was fixed by the export)")
        return [kwargs[key] for key in sorted(places, key=places.get)]

    def _label(self, i):
        return lib.tilewright_input_label(self._handle, i).decode()

    def _describe(self, given, tensors):
        key = tuple((tensor.dtype, tensor.shape, tensor.stride()) for tensor in tensors)
        found = self._known.get(key)
        if found is None:
            described = (Output * max(self._outputs, 1))()
            if lib.tilewright_describe(self._handle, given, len(tensors), described) != 0:
                raise_error()
            with self._lock:
                if len(self._known) >= 1024:
                    self._known.clear()
                found = self._known[key] = _Outputs(described[: self._outputs])
        return found


def load(archive, schedule=None, target=None, **options):
    """Loads an archive that torch.export.save wrote and compiles it, or takes it from the cache.

    schedule: a schedule file; without one every kernel has its default schedule.
    target:   "cuda" or "cpu"; by default cuda where a GPU answers.
    Further options: engines ("all", "none", or a list), fusion, strict, deterministic, jobs, cache, architecture.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    if schedule is not None:
        chosen["schedule"] = os.fspath(schedule)
    if target is not None:
        chosen["target"] = target
    if target != "cpu" and torch.cuda.is_available():
        torch.cuda.init()  # the library then uses torch's device and context
        torch.cuda.current_stream()
    return Model(archive, chosen)
