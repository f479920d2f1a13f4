"""The Python module on a GPU: outputs, streams, captures, threads, mutation, and the words of its errors."""

import os
import tempfile
import threading

import torch

import tilewright

FOLDER = tempfile.mkdtemp()


def export(fn, args, name):
    class Function(torch.nn.Module):
        def forward(self, *inputs):
            return fn(*inputs)

    path = os.path.join(FOLDER, name + ".pt2")
    torch.export.save(torch.export.export(Function(), args), path)
    return path


def expect_error(words, call):
    try:
        call()
    except tilewright.UserError as error:
        assert words in str(error), f"expected '{words}' in: {error}"
        return
    raise AssertionError(f"no error with '{words}'")


def main():
    x = torch.randn(300, 517, device="cuda", dtype=torch.bfloat16)
    path = export(lambda a: torch.softmax(a.float() * 2, -1).to(a.dtype), (x,), "softmax")
    model = tilewright.load(path, target="cuda")
    expected = torch.softmax(x.float() * 2, -1).to(x.dtype)
    torch.testing.assert_close(model(x), expected)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        on_stream = model(x)
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(on_stream, expected)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = model(x)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(captured, torch.softmax(x.float() * 2, -1).to(x.dtype))
    del graph

    def worker(results, i):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                y = model(x)
            torch.cuda.current_stream().synchronize()
            results[i] = y

    results = [None] * 4
    torch.cuda.synchronize()
    threads = [threading.Thread(target=worker, args=(results, i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        torch.testing.assert_close(result, torch.softmax(x.float() * 2, -1).to(x.dtype))

    expect_error("2 tensors given, the model takes 1", lambda: model(x, x))
    expect_error("is on cpu, the model runs on cuda:0", lambda: model(x.cpu()))
    expect_error("input 0", lambda: model(x.float()))
    expect_error("input 0", lambda: model(x[:10]))
    expect_error("has strides", lambda: model(x.t().contiguous().t()))

    def update(a, b):
        a.mul_(2).add_(b)
        return a.sum()

    a, b = torch.arange(12.0, device="cuda").reshape(3, 4), torch.ones(3, 4, device="cuda")
    mutating = tilewright.load(export(update, (a.clone(), b), "update"), target="cuda")
    total = mutating(a, b)
    torch.testing.assert_close(a, torch.arange(12.0, device="cuda").reshape(3, 4) * 2 + 1)
    torch.testing.assert_close(total, a.sum())

    table, index = torch.randn(5, 2, device="cuda"), torch.tensor([2, -6], device="cuda")
    pick = tilewright.load(export(lambda t, i: t[i], (table, torch.tensor([1, 2], device="cuda")), "pick"), target="cuda")
    expect_error("index -6 is out of range for size 5", lambda: pick(table, index))
    torch.testing.assert_close(pick(table, index.clamp(-5)), table[index.clamp(-5)])
    expect_error("", lambda: tilewright.load(os.path.join(FOLDER, "missing.pt2"), target="cuda"))
    print("all right")


main()
