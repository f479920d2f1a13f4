"""PyTorch's own samples of its operators (OpInfo, which ships inside the torch package), as cases of tensors alone."""
import torch
import torch.utils._pytree as pytree
from torch.testing._internal.common_methods_invocations import op_db

from operator_cases.family import Case

KINDS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)

# ATen operators whose OpInfo has another name.
OTHER_NAMES = {
    "__and__": ["bitwise_and"],
    "_embedding_bag": ["nn.functional.embedding_bag"],
    "_native_batch_norm_legit_no_training": ["nn.functional.batch_norm", "_native_batch_norm_legit"],
    "_softmax": ["softmax"],
    "_to_copy": ["to"],
    "alias": ["alias_copy"],
    "convolution": ["nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d", "nn.functional.conv_transpose2d"],
    "im2col": ["nn.functional.unfold"],
    "index": ["__getitem__"],
    "linalg_vector_norm": ["linalg.vector_norm"],
    "max_pool2d_with_indices": ["nn.functional.max_pool2d"],
    "native_group_norm": ["nn.functional.group_norm"],
    "upsample_bicubic2d": ["nn.functional.interpolate.bicubic"],
    "upsample_bilinear2d": ["nn.functional.interpolate.bilinear"],
    "upsample_nearest2d": ["nn.functional.interpolate.nearest"],
}

WITHOUT_VALUES = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
# Which of equal elements comes first is not said; where the dimension stands among the arguments.
WITHOUT_ORDER = {"sort": 0, "topk": 1}


def label(operator):
    return operator.name + ("." + operator.variant_test_name if operator.variant_test_name else "")


def operators_of(path):
    """The OpInfos of the ATen operators in a table, each once with whether its in-place form is wanted as well; and those that have none."""
    wanted, without = {}, []
    with open(path) as file:
        targets = [line.split("\t")[0] for line in file if line.startswith("aten.")]
    for target in targets:
        name = target.split(".")[1]
        in_place = name.endswith("_") and not name.endswith("__")
        plain = name.rstrip("_") if in_place else name
        names = OTHER_NAMES.get(plain, [plain, "nn.functional." + plain])
        found = [o for o in op_db if o.name in names or label(o) in names]
        if not found:
            without.append(target)
        for operator in found:
            wanted[label(operator)] = (operator, in_place or wanted.get(label(operator), (None, False))[1])
    return list(wanted.values()), without


def picking(function, dim_place):
    """The operator with indices replaced by what they pick, which is the same whichever of equal elements comes first."""

    def run(given, *arguments, **named):
        values, indices = function(given, *arguments, **named)
        if named.get("stable"):
            return values, indices
        dim = named.get("dim", arguments[dim_place] if len(arguments) > dim_place else -1)
        return values, torch.gather(given, dim, indices)

    return run


def case_of(function, sample, name):
    """A function of the sample's tensors alone."""
    leaves, shape = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i].detach() for i in places]

    def run(*inputs):
        values = list(leaves)
        for place, tensor in zip(places, inputs):
            values[place] = tensor
        given, arguments, named = pytree.tree_unflatten(values, shape)
        result = function(given, *arguments, **named)
        return result if isinstance(result, torch.Tensor) else tuple(pytree.tree_leaves(result))

    return Case(name, run, tuple(tensors))


def on_a_copy(function):
    return lambda given, *arguments, **named: function(given.clone(), *arguments, **named)


def why_not(case):
    """Why a sample is no case of this compiler; empty where it is one."""
    if any(t.dtype not in KINDS or t.layout != torch.strided for t in case.inputs):
        return "its inputs have a type or layout that is not supported"
    results = [case.function(*[t.clone() for t in case.inputs]) for _ in range(2)]
    results = [r if isinstance(r, tuple) else (r,) for r in results]
    if not results[0] or not all(isinstance(t, torch.Tensor) and t.dtype in KINDS and t.layout == torch.strided for t in results[0]):
        return "its results are no tensors of a supported type"
    if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*results)):
        return "PyTorch gives other results each time"
    return ""


def cases_of(operator, in_place, dtype, limit):
    """Up to `limit` samples spread over all, as cases, and the reasons of those that cannot be."""
    if operator.name in WITHOUT_VALUES:
        return [], ["its values are not defined"]
    torch.manual_seed(0)
    samples = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
    chosen = samples[:: max(1, -(-len(samples) // limit))]
    function = picking(operator.op, WITHOUT_ORDER[operator.name]) if operator.name in WITHOUT_ORDER else operator.op
    functions = [("", function)]
    if in_place and operator.inplace_variant is not None:
        functions.append((" in place", on_a_copy(operator.inplace_variant)))
    cases, reasons = [], []
    for form, function in functions:
        for number, sample in enumerate(chosen):
            try:
                case = case_of(function, sample, f"sample {number}{form}")
                reason = why_not(case)
            except Exception as error:
                if form:  # what cannot be written in place is counted once
                    continue
                reason = f"PyTorch itself refuses it: {(str(error).splitlines() or [''])[0][:100]}"
            if reason:
                reasons.append(reason)
            else:
                cases.append(case)
    return cases, reasons
