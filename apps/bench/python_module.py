"""The Python module on the CPU or a GPU: outputs, layouts, mutation, threads, streams, captures, tuning, and the words of its errors.

    python apps/bench/python_module.py [cpu|cuda]     by default cuda where there is one; needs torch, and the package in PYTHONPATH
"""

import copy
import os
import pickle
import sys
import tempfile
import threading

import torch

import tilewright

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"
FOLDER = tempfile.mkdtemp()


def export(fn, args, name, dynamic_shapes=None):
    class Function(torch.nn.Module):
        def forward(self, *inputs):
            return fn(*inputs)

    path = os.path.join(FOLDER, name + ".pt2")
    torch.export.save(torch.export.export(Function(), args, dynamic_shapes=dynamic_shapes), path)
    return path


def load(fn, args, name, **more):
    return tilewright.load(export(fn, args, name, **more), target=DEVICE)


def expect_error(words, call):
    try:
        call()
    except tilewright.UserError as error:
        assert words in str(error), f"expected '{words}' in: {error}"
        assert "\n" not in str(error), f"more than a line: {error}"
        return
    raise AssertionError(f"no error with '{words}'")


def softmax(a):
    return torch.softmax(a.float() * 2, -1).to(a.dtype)


def outputs_and_errors(x, model):
    torch.testing.assert_close(model(x), softmax(x))
    x[1, 2], x[3] = float("nan"), float("inf")
    torch.testing.assert_close(model(x), softmax(x), equal_nan=True)
    x.normal_()
    expect_error("2 tensors given, the model takes 1", lambda: model(x, x))
    expect_error("0 tensors given, the model takes 1", lambda: model())
    expect_error("an argument is a float", lambda: model(x, 2.0))
    expect_error("is nested", lambda: model(torch.nested.nested_tensor([x[0], x[1]])))
    assert copy.deepcopy(model) is model
    expect_error("cannot be pickled", lambda: pickle.dumps(model))
    torch.testing.assert_close(model(x, None), softmax(x))
    expect_error("input 0", lambda: model(x.float()))
    expect_error("input 0", lambda: model(x[:10]))
    expect_error("input 0", lambda: model(x[0]))
    for strided in (x.t().contiguous().t(), x.repeat_interleave(2, 1)[:, ::2], x[0].expand(300, 517)):
        if DEVICE == "cuda":
            expect_error("has strides", lambda: model(strided))
        else:  # is copied
            torch.testing.assert_close(model(strided), softmax(strided))
    expect_error(f"is on meta, the model runs on {model.device}", lambda: model(x.to("meta")))
    if DEVICE == "cuda":
        expect_error("is on cpu, the model runs on cuda:0", lambda: model(x.cpu()))


def threads(x, model):
    def worker(results, i):
        with torch.cuda.stream(torch.cuda.Stream()) if DEVICE == "cuda" else torch.no_grad():
            for _ in range(20):
                y = model(x)
            if DEVICE == "cuda":
                torch.cuda.current_stream().synchronize()
            results[i] = y

    results = [None] * 4
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    started = [threading.Thread(target=worker, args=(results, i)) for i in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    for result in results:
        torch.testing.assert_close(result, softmax(x))


def streams_and_captures(x, model):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        on_stream = model(x)
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(on_stream, softmax(x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = model(x)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(captured, softmax(x))


def mutation():
    def update(a, b):
        a.mul_(2).add_(b)
        return a.sum()

    start = torch.arange(12.0, device=DEVICE).reshape(3, 4)
    a, b = start.clone(), torch.ones(3, 4, device=DEVICE)
    total = load(update, (a.clone(), b), "update")(a, b)
    torch.testing.assert_close(a, start * 2 + 1)
    torch.testing.assert_close(total, a.sum())


def indices():
    table, index = torch.randn(5, 2, device=DEVICE), torch.tensor([2, -6], device=DEVICE)
    pick = load(lambda t, i: t[i], (table, torch.tensor([1, 2], device=DEVICE)), "pick")
    expect_error("index -6 is out of range for size 5", lambda: pick(table, index))
    torch.testing.assert_close(pick(table, index.clamp(-5)), table[index.clamp(-5)])


def sizes_and_layouts():
    x = torch.randn(6, 8, device=DEVICE)
    rows = torch.export.Dim("rows", min=2, max=64)
    dynamic = load(lambda a: (a.sum(0), a.t() * 2), (x,), "dynamic", dynamic_shapes=(({0: rows},),))
    for count in (2, 17, 64):
        y = torch.randn(count, 8, device=DEVICE)
        for actual, expected in zip(dynamic(y), (y.sum(0), y.t() * 2)):
            torch.testing.assert_close(actual, expected)
            assert actual.stride() == expected.stride(), (actual.stride(), expected.stride())
    expect_error("input 0", lambda: dynamic(torch.randn(65, 8, device=DEVICE)))
    empty = torch.zeros(0, 8, device=DEVICE)
    torch.testing.assert_close(load(lambda a: (a.sum(0), a * 2), (empty,), "empty")(empty), (empty.sum(0), empty * 2))
    turned = x.t()
    torch.testing.assert_close(load(lambda a: a.cumsum(0) + 1, (turned,), "turned")(turned), turned.cumsum(0) + 1)


def keywords():
    def scale(a, factor, offset=None):
        return a * factor if offset is None else a * factor + offset

    class Scale(torch.nn.Module):
        def forward(self, a, factor, offset=None):
            return scale(a, factor, offset)

    a, factor, offset = (torch.randn(4, 8, device=DEVICE) for _ in range(3))
    path = os.path.join(FOLDER, "keywords.pt2")
    torch.export.save(torch.export.export(Scale(), (a,), {"factor": factor, "offset": offset}), path)
    model = tilewright.load(path, target=DEVICE)
    torch.testing.assert_close(model(a, offset=offset, factor=factor), scale(a, factor, offset))
    expect_error("has no input 'soup'", lambda: model(a, factor=factor, offset=offset, soup=3))
    expect_error("2 tensors given, the model takes 3", lambda: model(a, factor=factor, nothing=None))


def tuning():
    path = export(lambda a: (a * 2).sum(-1), (torch.randn(64, 300, device=DEVICE),), "tuned")
    out = tilewright.autotune(path, target=DEVICE, out=os.path.join(FOLDER, "tuned.schedule"), budget=2, quiet=True, records=os.path.join(FOLDER, "r.sqlite"))
    x = torch.randn(64, 300, device=DEVICE)
    torch.testing.assert_close(tilewright.load(path, schedule=out, target=DEVICE)(x), (x * 2).sum(-1), rtol=1e-5, atol=1e-5)
    beside = tilewright.autotune(path, target=DEVICE, budget=1, quiet=True, records=os.path.join(FOLDER, "r.sqlite"))
    assert os.path.exists(beside) and beside.startswith(os.path.splitext(path)[0] + "."), beside
    expect_error("soup", lambda: tilewright.autotune(path, target="soup", quiet=True))
    expect_error("nothing", lambda: tilewright.autotune(path, nothing=1, quiet=True))
    expect_error("missing.pt2", lambda: tilewright.load(os.path.join(FOLDER, "missing.pt2"), target=DEVICE))
    expect_error("soup: there is no such target", lambda: tilewright.load(path, target="soup"))
    expect_error("has no option", lambda: tilewright.load(path, soup=True))
    expect_error("wrong type", lambda: tilewright.load(path, strict="yes"))


def main():
    x = torch.randn(300, 517, device=DEVICE, dtype=torch.bfloat16)
    model = load(softmax, (x.clone(),), "softmax")
    outputs_and_errors(x, model)
    if DEVICE == "cuda":
        streams_and_captures(x, model)
    threads(x, model)
    mutation()
    indices()
    sizes_and_layouts()
    keywords()
    tuning()
    print(f"all right on {DEVICE}")


main()
