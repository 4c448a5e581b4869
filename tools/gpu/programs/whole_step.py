#!/usr/bin/env python3
"""Training steps of the tables of one artifact on one GPU, one by one and in a CUDA graph: the same
bits, and how long they take. The host waits for nothing in either. Prints a JSON record. A dry run has no
graphs: it compares steps in the emulator with those that check ids before they use them.
usage: whole_step.py ARTIFACTS [--dry-run]"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import processes  # noqa: E402

processes.die_with_parent()

import torch  # noqa: E402

import exchange_cases  # noqa: E402
from neuroshard.distributed import EmbeddingTables  # noqa: E402

STEPS, WARM_UP, TIMED = 4, 3, 50
SAMPLES, DRY_SAMPLES = 8192, 6
POOLING = 8


class Steps:
    """Steps on ids that are copied into the same tensors each time, as graphs need them."""

    def __init__(self, folder, device, model, samples, check_every):
        self.tables = EmbeddingTables(folder, device=device, learning_rate=0.1,
                                      seed=exchange_cases.SEED, check_every=check_every)
        self.model, self.samples, self.place = model, samples, self.tables.device
        [input_] = model.inputs
        features = len(input_.features)
        self.offsets = torch.arange(features * samples + 1, device=self.place) * POOLING
        self.ids = torch.empty(features * samples * POOLING, dtype=torch.int64, device=self.place)

    def load(self, number):
        generator = torch.Generator().manual_seed(exchange_cases.SEED + number)
        rows = [self.model.table(lookup.table).rows for _, lookup in self.model.lookups()]
        self.ids.copy_(torch.cat([torch.randint(count, (self.samples * POOLING,),
                                                generator=generator) for count in rows]))

    def run(self):
        results = self.tables((self.ids, self.offsets))
        sum(one.square().sum() for one in results.values()).backward()
        return results

    def state(self):
        self.tables.check()
        return {name: value.cpu() for name, value in self.tables.state_dict().items()
                if isinstance(value, torch.Tensor)}


def assert_same(one, other):
    for name, value in one.items():
        assert torch.equal(value, other[name]), f"{name} differs"


def train(steps):
    """The tables after some steps, and the results of the last one."""
    for number in range(STEPS):
        steps.load(number)
        results = steps.run()
    return {**steps.state(), **{name: one.detach().cpu() for name, one in results.items()}}


def train_by_graph(steps):
    """The same, with all steps but the first replayed; and what replays."""
    steps.load(0)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        steps.run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = {name: one.detach() for name, one in steps.run().items()}
    for number in range(1, STEPS):
        steps.load(number)
        steps.tables.before_replay()
        graph.replay()
    after = {**steps.state(), **{name: one.cpu() for name, one in results.items()}}

    def replay():
        steps.tables.before_replay()
        graph.replay()
    return after, replay


def milliseconds(call):
    for _ in range(WARM_UP):
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(TIMED):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / TIMED


def main():
    dry = "--dry-run" in sys.argv[2:]
    folder = Path(sys.argv[1]) / exchange_cases.place("pooled", 1)
    model = exchange_cases.models()["pooled"]
    device, samples = ("emulator", DRY_SAMPLES) if dry else ("cuda", SAMPLES)
    late, early = (Steps(folder, device, model, samples, every) for every in (0, 1))
    expected = train(early)
    assert_same(train(late), expected)
    record = {"passed": True, "samples": samples}
    if not dry:
        captured = Steps(folder, device, model, samples, 0)
        found, replay = train_by_graph(captured)
        assert_same(found, expected)
        record |= {"waiting_ms": milliseconds(early.run), "eager_ms": milliseconds(late.run),
                   "graph_ms": milliseconds(replay)}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
