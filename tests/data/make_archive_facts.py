"""Writes archive_facts.txt: what PyTorch finds in the shipped archives.

Each line: archive, operators, weights, user inputs, outputs, CRC-32 of all weights' elements in the order of the inputs.
"""
import pathlib
import re
import zipfile
import zlib

import torch
from torch.utils import _pytree


def register_output_classes(path):
    """The archives name the classes of their models' outputs, which only loading needs to know."""
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


here = pathlib.Path(__file__).parent
lines = []
for path in sorted((here.parent.parent / "apps/models").glob("*.pt2")):
    register_output_classes(path)
    program = torch.export.load(path)
    operators = 0
    for node in program.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            operators += isinstance(node.meta.get("val"), torch.SymInt) == 0
    signature = program.graph_signature
    crc, weights, inputs = 0, 0, 0
    for spec in signature.input_specs:
        if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT:
            inputs += 1
            continue
        weights += 1
        value = program.state_dict.get(spec.target)
        value = program.constants[spec.target] if value is None else value
        crc = zlib.crc32(value.detach().contiguous().view(torch.uint8).numpy().tobytes(), crc)
    lines.append(f"{path.name} {operators} {weights} {inputs} {len(signature.output_specs)} {crc}\n")
(here / "archive_facts.txt").write_text("".join(lines))
