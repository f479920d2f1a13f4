"""CUDA graphs and the time of their replay with a cold L2 cache."""

import functools
import statistics

import torch


def capture(fn, warm_ups=3):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm_ups):
            fn()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph


@functools.cache
def flushed():
    """Larger than the L2 cache: reading it leaves nothing else there."""
    return torch.zeros(1 << 26, device="cuda", dtype=torch.int32)


def replay_times(graphs, rounds=25):
    """The median for each, in microseconds; the graphs take turns."""
    taken = [[] for _ in graphs]
    for _ in range(rounds):
        for graph, into in zip(graphs, taken):
            flushed().max()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            into.append(start.elapsed_time(end) * 1e3)
    return [statistics.median(t) for t in taken]


def replay_time(graph, rounds=25):
    return replay_times([graph], rounds)[0]
