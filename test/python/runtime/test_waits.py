"""What waits for what in a step on GPUs.

How often the host waits for the work of GPUs in a step: once for each input of ids, for the
numbers of ids; and where column shards of a table have other ranges of rows, for those they have in
common. And that each wait of a stream for another is needed: the emulator finds a race between
streams without it, or others of the model give the order too."""

import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from support import artifact, matrix
from support.batch import Jagged, from_features, random_values, split
from support.child import environment
from support.host import RuntimeFailure, World, build_folder
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

DEVICES = 3
STEPS = 3
BATCH = 16 * DEVICES


def messages(exchange, *peers):
    """The waits for an exchange. For each message device 0's stream waits until it is sent, and lets
    the sender's wait until it is copied: only then its memory may be used again."""
    return [f"{exchange} of {peer}{done}" for peer in peers for done in ("", " copied")]


# What streams wait for in a step, where device 0 asks for it. A table with norms to exchange is cut
# between devices 0 and 2.
WAITS = {
    "cut": [*messages("ids", 1, 2), *messages("results", 1, 2), *messages("gradients", 1, 2),
            *messages("row sums", 1, 2), "sort begins", "sort ends", *messages("norms", 2),
            *messages("totals", 1, 2)],
    "copies": [*messages("gradients of copies", 1, 2), "sort begins", "sort ends"],
    "sums": [*messages("row sums", 1, 2), *messages("totals", 1, 2)],
}
# Of the waits of these models, what others order too. Gradients are added up by row before those for
# the owners of rows are sent, for which a device waits first; and the totals of device 2 before its
# norms.
ORDERED = {"cut": {"row sums of 1", "row sums of 2", "totals of 2"}, "copies": set(), "sums": set()}


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


def describe_copies(rows):
    """A table with a copy on each device. Results and messages take a few pages, and so the memory of
    the others' in turn. Of few rows the sums of gradients travel."""
    table = Table("copied", rows, 1024, "f32", Optimizer("sgd"))
    model = Model([table], [Input("plain", ("copied",), (Lookup("copied", "copied", "sum"),))])
    return model, Plan(DEVICES, [Shard("copied", (0, rows), (0, 1024), tuple(range(DEVICES)))], "exact")


DESCRIBE = {"cut": describe, "copies": partial(describe_copies, 60),
            "sums": partial(describe_copies, 6)}


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
    """The arguments of some steps, in memory of the devices: (ids, gradients) by step and device. All
    steps need the same memory, since all bags have two ids."""
    world, steps = session.world, []
    lengths = torch.full((BATCH,), 2)
    for _ in range(STEPS):
        jagged = from_features([
            (torch.randint(0, table.rows, (2 * BATCH,), generator=generator), lengths, None)
            for table in session.model.tables], "i64", False)
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
    """Runs all steps from the same tables. The host reads nothing before the end."""
    world = session.world
    for name, (weights, states) in start.items():
        world.write_table(name, weights)
        world.write_states(name, states)
    for number, (ids, gradients) in enumerate(steps, start=1):
        pending = world.invoke("embeddings_start", [[one] for one in ids])
        out = world.invoke("embeddings_wait", world.invoke("embeddings_lookup", pending), keep=True)
        sent = world.invoke("embeddings_gradients", [[part[-1], *given]
                                                     for part, given in zip(out, gradients)])
        world.invoke("embeddings_update", [[*handles, 0.125, number] for handles in sent])
        for part in out:
            for result in part[:-1]:
                result.free()
    session.tables()


def is_needed(model, number):
    """Whether the emulator must find a race without a wait; None if that depends on what memory the
    host gives the next messages, which come after others where there is more than one exchange."""
    wait = WAITS[model][number % len(WAITS[model])]
    if wait.endswith("copied"):
        return True if model == "copies" else None
    return wait not in ORDERED[model]


def try_without(folder, model, number):
    """(number of waits of all steps, the race that the emulator finds without one of them)."""
    emulator, generator = load_emulator(), torch.Generator().manual_seed(matrix.seed())
    with Session(folder, *DESCRIBE[model](), emulated=True) as session:
        session.fill(generator, False)
        start, steps = session.tables(), place_steps(session, generator)
        emulator.nse_skip_stream_wait(-1)
        run_steps(session, steps, start)  # makes the memory that later runs use again
        count = emulator.nse_skip_stream_wait(number)
        try:
            run_steps(session, steps, start)
        except RuntimeFailure as failure:
            return count, str(failure)
    return count, ""


def try_all(folder, model, numbers):
    """try_without for each number, in processes of their own: a race leaves one without GPUs."""
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as processes:
        return processes.map(partial(try_without, folder, model), numbers, chunksize=1)


def in_a_process(*arguments):
    """try_all in a process that has run nothing before, and so can be forked. Streams do their work
    at once: the order does not matter to the emulator."""
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)],
                          capture_output=True, text=True, check=False, timeout=600,
                          env=environment(NEUROSHARD_EMULATOR_STREAMS="at once"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("model", WAITS)
def test_streams_need_their_waits(model, tmp_path):
    folder = artifact.compile_model(*DESCRIBE[model](), tmp_path / "model", *artifact.EMULATED)
    # What the last step's waits protect is used in the step after it.
    numbers = [number for number in range((STEPS - 1) * len(WAITS[model]))
               if is_needed(model, number) is not None]
    numbers = matrix.sample(numbers, 6, f"waits of {model}")
    counts, races = zip(*in_a_process(folder, model, *numbers))
    assert set(counts) == {STEPS * len(WAITS[model])}
    for number, race in zip(numbers, races):
        wait = WAITS[model][number % len(WAITS[model])]
        assert bool(race) == is_needed(model, number), (number, wait)
        assert not race or "nothing orders the two" in race, (number, wait, race)


if __name__ == "__main__":
    print(json.dumps(try_all(Path(sys.argv[1]), sys.argv[2], list(map(int, sys.argv[3:])))))
