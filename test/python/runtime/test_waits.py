"""What waits for what in a step on GPUs.

How often the host waits for the work of GPUs in a step: once for each input of ids, for the
numbers of ids; and where column shards of a table have other ranges of rows, for those they have in
common."""

import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch

from support import artifact, matrix
from support.batch import Jagged, random_values, split
from support.host import RuntimeFailure, World, build_folder
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

DEVICES = 3
STEPS = 3
# Of the streams of device 0 for others in a step: those for the first peer of each exchange, and
# those around the sort. Without one for the second peer, or for gradients of copies, which come after
# others, steps may find what they need: an earlier one has waited for it.
WAITS = {"ids": 0, "results": 2, "gradients": 4, "sort begins": 8, "sort ends": 9, "norms": 10}
WAITS_OF_STEP = 11
# Work is put off by chance.
TRIES = 25


def load_emulator():
    library = ctypes.CDLL(str(build_folder() / "lib" / "libneuroshard_emulator.so"))
    library.nse_waits.restype = ctypes.c_uint64
    library.nse_skip_stream_wait.argtypes = [ctypes.c_int64]
    library.nse_skip_stream_wait.restype = ctypes.c_int64
    return library


@pytest.fixture
def waits(monkeypatch):
    """The waits in calls of each function of a world."""
    counts, emulator = {}, load_emulator()
    runtime_invoke = World.invoke_all

    def invoke_all(world, name, arrays):
        before = emulator.nse_waits()
        status = runtime_invoke(world, name, arrays)
        counts[name] = emulator.nse_waits() - before
        return status

    monkeypatch.setattr(World, "invoke_all", invoke_all)
    return counts


def describe(ragged=False, weights=False):
    """Tables cut in each way, one of them with norms to exchange. ragged: whether its column shards
    have other ranges of rows. weights: whether a second input has sample weights."""
    exact = Optimizer("rowwise_adagrad")
    tables = [Table("whole", 30, 8, "f32", Optimizer("adagrad")),
              Table("rows", 30, 8, "f32", exact), Table("columns", 30, 12, "f32", exact),
              Table("copied", 6, 4, "f32", Optimizer("sgd"))]
    names = [table.name for table in tables]
    plain = Input("plain", tuple(names), tuple(
        Lookup(name, name, pooling) for name, pooling in zip(names, ("sum", "mean") * 2)))
    weighted = Input("weighted", ("rows",), (Lookup("rows", "rows", "sum", weighted=True),),
                     weighted=True)
    halves = [(0, 30)] if not ragged else [(0, 13), (13, 30)]
    shards = [Shard("whole", (0, 30), (0, 8), (0,)),
              *(Shard("rows", (10 * at, 10 * at + 10), (0, 8), (at,)) for at in range(DEVICES)),
              *(Shard("columns", rows, (0, 4), (at,)) for at, rows in enumerate(halves)),
              Shard("columns", (0, 30), (4, 12), (2,)),
              Shard("copied", (0, 6), (0, 4), tuple(range(DEVICES)))]
    inputs = [plain, weighted] if weights else [plain]
    return Model(tables, inputs), Plan(DEVICES, shards, "exact")


@pytest.mark.parametrize("ragged", [False, True], ids=["aligned", "ragged"])
def test_a_step_waits_for_the_numbers_of_ids(ragged, waits, tmp_path, generator):
    model, plan = describe(ragged, weights=True)
    folder = artifact.compile_model(model, plan, tmp_path / "model", *artifact.EMULATED)
    with Session(folder, model, plan, emulated=True) as session:
        session.fill(generator, False)
        jagged = session.random_batch(24, generator, False)
        for step in (1, 2):  # the first one uploads what all need
            results, contexts = session.wait_results(jagged)
            gradients = [random_values(result.shape, generator, False, result.dtype)
                         for result in results]
            session.update(jagged, contexts, gradients, 0.1, step)
    assert waits["embeddings_start"] == DEVICES * len(model.inputs)
    assert waits["embeddings_lookup"] == waits["embeddings_wait"] == 0
    assert waits["embeddings_gradients"] == 0
    assert (waits["embeddings_update"] > 0) == ragged


def place_steps(session, generator):
    """The arguments of some steps, in memory of the devices: (ids, gradients) by step and device."""
    world, steps = session.world, []
    for _ in range(STEPS):
        [jagged] = session.random_batch(40, generator, False)
        ids, gradients = [], []
        for rank, part in enumerate(split(jagged, DEVICES)):
            placed = [world.keep(rank, tensor) for tensor in (part.ids, part.offsets)]
            ids.append(Jagged(*placed, None, part.features))
            gradients.append([world.keep(rank, torch.randn(part.batch, table.dim,
                                                           generator=generator))
                              for table in session.model.tables])
        steps.append((ids, gradients))
    return steps


def run_steps(session, steps, start):
    """The results of all steps, and the tables after them. The host reads nothing before the end."""
    world, kept = session.world, []
    for name, (weights, states) in start.items():
        world.write_table(name, weights)
        world.write_states(name, states)
    for number, (ids, gradients) in enumerate(steps, start=1):
        pending = world.invoke("embeddings_start", [[one] for one in ids])
        out = world.invoke("embeddings_wait", world.invoke("embeddings_lookup", pending), keep=True)
        kept += [result for part in out for result in part[:-1]]
        sent = world.invoke("embeddings_gradients", [[part[-1], *given]
                                                     for part, given in zip(out, gradients)])
        world.invoke("embeddings_update", [[*handles, 0.125, number] for handles in sent])
    results = [one.read() for one in kept]
    for one in kept:
        one.free()
    tables = session.tables().values()
    return [*results, *(array for weights, states in tables for array in (weights, *states))]


def try_without(folder, own):
    """(number of waits of streams of device 0, whether steps go wrong without number `own` of
    them). To be called in a process of its own, which a failed kernel leaves without GPUs."""
    emulator, generator = load_emulator(), torch.Generator().manual_seed(matrix.seed())
    with Session(folder, *describe(), emulated=True) as session:
        session.fill(generator, False)
        start = session.tables()
        steps, others = (place_steps(session, generator) for _ in range(2))
        run_steps(session, steps, start)  # waits for new memory, too
        emulator.nse_skip_stream_wait(-1)
        expected = run_steps(session, steps, start)
        count = emulator.nse_skip_stream_wait(-1)
        for _ in range(TRIES):
            emulator.nse_skip_stream_wait(-1)
            run_steps(session, others, start)  # buffers then have other values
            emulator.nse_skip_stream_wait(own)
            try:
                if not all(map(torch.equal, run_steps(session, steps, start), expected)):
                    return count, True
            except RuntimeFailure:
                return count, True
    return count, False


def in_a_process(folder, own):
    done = subprocess.run([sys.executable, __file__, folder, str(own)],
                          capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_streams_need_their_waits(tmp_path):
    folder = artifact.compile_model(*describe(), tmp_path / "model", *artifact.EMULATED)
    chosen = matrix.sample(sorted(WAITS), 3, "waits")
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        counts, noticed = zip(*threads.map(partial(in_a_process, folder),
                                           [WAITS[one] for one in chosen]))
    assert set(counts) == {STEPS * WAITS_OF_STEP}
    assert all(noticed), [wait for wait, is_noticed in zip(chosen, noticed) if not is_noticed]


if __name__ == "__main__":
    print(json.dumps(try_without(Path(sys.argv[1]), int(sys.argv[2]))))
