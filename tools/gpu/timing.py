"""Times what runs on a GPU: by events around replays of CUDA graphs, the contenders in turn."""

import time

import torch

LEAST_SAMPLES, MOST_SAMPLES = 7, 40


def capture(runs, warm_up=2):
    """One CUDA graph with all `runs` after each other; gives a function that replays it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm_up):
            for run in runs:
                run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # relaxed: a library that allocates or copies while a graph is captured may do so.
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        for run in runs:
            run()
    return graph.replay


def together(runs):
    """The same without a graph, for what cannot be captured."""
    def call():
        for run in runs:
            run()
    call()
    torch.cuda.synchronize()
    return call


def time_once(call, count):
    """Milliseconds of one of the `count` runs in a call."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def time_in_turn(calls, count, budget_s):
    """Samples of each of `calls` (name -> function), which take turns so that all meet the
    same clocks. `count` runs are in a call."""
    samples = {name: [] for name in calls}
    for call in calls.values():
        call()
    torch.cuda.synchronize()
    begin = time.monotonic()
    while calls:
        for name, call in calls.items():
            samples[name].append(time_once(call, count))
        rounds = len(samples[name])
        if rounds >= MOST_SAMPLES or (rounds >= LEAST_SAMPLES
                                      and time.monotonic() - begin > budget_s):
            break
    return samples


def copy_bandwidth(most_bytes=4 << 30):
    """Bytes per second, read and written, of device-to-device copies: all samples."""
    size = min(most_bytes, torch.cuda.mem_get_info()[0] // 3)
    source = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    samples = time_in_turn({"copy": lambda: target.copy_(source)}, 1, 0.2)["copy"]
    return [2 * size / (ms / 1e3) for ms in samples]
