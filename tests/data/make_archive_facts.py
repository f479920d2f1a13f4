"""Writes archive_facts.txt: what PyTorch finds in the shipped archives.

Each line: archive, operators, weights, user inputs, outputs, CRC-32 of all weights' elements in the order of the inputs.
"""
import pathlib
import sys
import zlib

import torch

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent.parent / "apps/bench"))
from shipped_programs import load_program  # noqa: E402

lines = []
for path in sorted((here.parent.parent / "apps/models").glob("*.pt2")):
    program = load_program(path)
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
