"""The shipped models in CUDA-graph replay: ours against PyTorch eager.   model_times.py MODELS RESULTS"""

import glob
import json
import os
import sys

import torch
from torch.export.passes import move_to_device_pass

import tilewright
from graph_times import capture, replay_time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from shipped_programs import load_program  # noqa: E402


def inputs_of(path):
    from safetensors.torch import load_file

    if not os.path.exists(path):  # gpt2_dynamic: tokens
        return [torch.randint(0, 100, (2, 64), device="cuda")]
    tensors = load_file(path)
    return [tensors[f"in{i}"].cuda() for i in range(len(tensors)) if f"in{i}" in tensors]


def main():
    models, results = sys.argv[1:3]
    rows, slower = {}, 0
    for archive in sorted(glob.glob(models + "/*.pt2")):
        name = os.path.basename(archive).removesuffix(".pt2")
        schedule = f"{results}/{name}.schedule"
        inputs = inputs_of(f"{models}/{name}.io.safetensors")
        row = rows[name] = {}
        try:
            ours = tilewright.load(archive, schedule=schedule if os.path.exists(schedule) else None, target="cuda")
            row["ours"] = replay_time(capture(lambda: ours(*inputs)))
            eager = move_to_device_pass(load_program(archive), "cuda").module()
            with torch.no_grad():
                row["eager"] = replay_time(capture(lambda: eager(*inputs)))
            slower += row["ours"] > row["eager"]
        except Exception as problem:
            row["failed"] = repr(problem)[:300]
        print(f"{name:16s} ours {row.get('ours', float('nan')):9.1f} us   eager {row.get('eager', float('nan')):9.1f} us   {row.get('failed', '')}")
    json.dump(rows, open(f"{results}/model_times.json", "w"), indent=1)
    sys.exit(slower + sum("ours" not in row for row in rows.values()))


if __name__ == "__main__":
    main()
