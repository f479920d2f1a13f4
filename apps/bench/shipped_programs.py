"""Loads the shipped archives with torch alone."""

import pathlib
import re
import zipfile

import torch
from torch.utils import _pytree


def load_program(path):
    """torch.export.load, which wants the classes of the models' outputs: stand-ins for those that the archive names."""
    path = pathlib.Path(path)
    with zipfile.ZipFile(path) as archive:
        text = archive.read(f"{path.stem}/models/model.json").decode()
    for name in set(re.findall(r"transformers\.modeling_outputs\.\w+", text)):
        if name not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            _pytree.register_pytree_node(
                type(name, (dict,), {}),
                lambda value: (list(value.values()), list(value)),
                lambda values, keys: dict(zip(keys, values)),
                serialized_type_name=name,
                to_dumpable_context=list,
                from_dumpable_context=list,
            )
    return torch.export.load(path)
