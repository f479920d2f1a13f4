"""Exports PyTorch's own samples of its operators (OpInfo, which ships inside the torch package) as programs with inputs and expected outputs.

    python tests/correctness/reference/make_opinfo_cases.py OUT [--dtypes float32,int64,bool,bfloat16] [--samples 8] [OPERATOR...]

Writes OUT/OPERATOR.DTYPE.{pt2,io.safetensors,cases} in the layout of make_operator_cases.py, and OUT/skipped.txt: what cannot be a case
(samples that torch.export does not take, results that are no tensors, complex numbers, random operators), with the reason. Not checked in: the
samples are made anew by the torch package that is installed.
"""
import argparse
import os
import sys
import warnings

import torch
import torch.utils._pytree as pytree
from torch.testing._internal.common_methods_invocations import op_db

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_operator_cases import write  # noqa: E402
from operator_cases.family import Case, Family  # noqa: E402

KINDS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)


def case_of(operator, sample, number):
    """A function of the sample's tensors alone."""
    leaves, shape = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i].detach() for i in places]

    def run(*inputs):
        values = list(leaves)
        for place, tensor in zip(places, inputs):
            values[place] = tensor
        given, arguments, named = pytree.tree_unflatten(values, shape)
        result = operator.op(given, *arguments, **named)
        return result if isinstance(result, torch.Tensor) else tuple(pytree.tree_leaves(result))
    return Case(f"sample {number}", run, tuple(tensors))


def problem(case):
    if any(t.dtype not in KINDS or t.layout != torch.strided for t in case.inputs):
        return "has inputs of a type that is not supported"
    if not case.inputs:
        return "has no tensor inputs"
    results = case.function(*[t.clone() for t in case.inputs])
    results = results if isinstance(results, tuple) else (results,)
    if not results or not all(isinstance(t, torch.Tensor) and t.dtype in KINDS and t.layout == torch.strided for t in results):
        return "gives results that are no tensors of a supported type"
    again = case.function(*[t.clone() for t in case.inputs])
    again = again if isinstance(again, tuple) else (again,)
    if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(results, again)):
        return "gives other results each time"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--dtypes", default="float32,int64,bool,bfloat16")
    parser.add_argument("--samples", type=int, default=8)
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    os.makedirs(options.out, exist_ok=True)
    skipped = open(os.path.join(options.out, "skipped.txt"), "a")
    total = 0
    for operator in op_db:
        name = operator.name + ("." + operator.variant_test_name if operator.variant_test_name else "")
        if options.operators and operator.name not in options.operators:
            continue
        for kind in options.dtypes.split(","):
            dtype = getattr(torch, kind)
            if dtype not in operator.supported_dtypes("cpu"):
                continue
            family = Family(f"{name}.{kind}", core=False)
            try:
                torch.manual_seed(0)
                samples = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception as error:
                skipped.write(f"{family.name}: no samples: {str(error).splitlines()[0]}\n")
                continue
            step = max(1, len(samples) // options.samples)
            for number in range(0, len(samples), step):
                try:
                    case = case_of(operator, samples[number], number)
                    reason = problem(case)
                except Exception as error:
                    reason = f"fails: {type(error).__name__}"
                if reason:
                    skipped.write(f"{family.name} sample {number}: {reason}\n")
                else:
                    family.cases.append(case)
            if not family.cases:
                continue
            try:
                write(family, options.out)
                total += len(family.cases)
            except Exception as error:
                # One sample at a time, so that one that cannot be exported does not hide the others.
                for case in family.cases:
                    one = Family(f"{family.name}.{case.name.split()[1]}", core=False, cases=[case])
                    try:
                        write(one, options.out)
                        total += 1
                    except Exception as error:
                        skipped.write(f"{one.name}: torch.export fails: {(str(error).splitlines() or [''])[0][:150]}\n")
    print(f"{total} samples")


if __name__ == "__main__":
    main()
