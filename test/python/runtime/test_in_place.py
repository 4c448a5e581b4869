"""Steps of one device that checks ids late: it reads them in place, the host waits for nothing, and
a CUDA graph can hold them. On the emulator, whose graphs run what was captured again."""

import ctypes

import pytest
import torch

from support import artifact
from support.batch import Jagged
from support.host import RuntimeFailure, World, build_folder, check, runtime
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table

BATCH = 12


def load_driver():
    """The emulator as the driver of CUDA, with a context for this thread."""
    driver = ctypes.CDLL(str(build_folder() / "lib" / "libneuroshard_emulator.so"))
    driver.nse_waits.restype = ctypes.c_uint64
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    return driver


def describe():
    """Tables cut by columns with norms, small and large ones, means, and an input without pooling."""
    exact = Optimizer("rowwise_adagrad")
    tables = [Table("cut", 40, 12, "f32", exact), Table("adam", 3000, 8, "f32", Optimizer("adam")),
              Table("half", 30, 8, "f16", Optimizer("adagrad"))]
    bags = Input("bags", ("a", "b", "c"), (
        Lookup("a", "cut"), Lookup("b", "adam", "mean"), Lookup("c", "adam"),
        Lookup("c", "half", "mean")))
    rows = Input("rows", ("d",), (Lookup("d", "half", "unpooled"),), "i32")
    weighted = Input("weighted", ("e",), (Lookup("e", "cut", weighted=True),), weighted=True)
    shards = [Shard("cut", (0, 40), (0, 4), (0,)), Shard("cut", (0, 40), (4, 12), (0,)),
              Shard("adam", (0, 3000), (0, 8), (0,)), Shard("half", (0, 30), (0, 8), (0,))]
    return Model(tables, [bags, rows, weighted]), Plan(1, shards, "exact")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return artifact.compile_model(*describe(), tmp_path_factory.mktemp("in_place") / "model",
                                  *artifact.EMULATED)


class Steps:
    """Steps on one device, whose ids lie in memory that later batches are written to."""

    def __init__(self, folder, checks_late):
        self.world = World(folder, emulated=True, checks_late=checks_late)
        [self.device] = self.world.device_handles()
        for table in describe()[0].tables:
            self.world.initialize(table.name, 5)
        self.kept = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.close()

    def write(self, batch):
        """Writes a batch, of as many samples and ids as the one before, over that."""
        ids, gradients = batch
        tensors = [tensor for one in ids for tensor in one.tensors()] + gradients
        if self.kept is None:
            self.kept = [self.world.keep(0, tensor) for tensor in tensors]
        for kept, tensor in zip(self.kept, tensors):
            check(runtime().nsrt_tensor_write(
                self.device, kept.descriptor.allocated, tensor.contiguous().data_ptr(),
                tensor.numel() * tensor.itemsize))
        left = iter(self.kept)
        self.ids = [Jagged(*(next(left) for _ in one.tensors()),
                           *([None] * (3 - len(one.tensors()))), one.features) for one in ids]
        self.gradients = [next(left) for _ in gradients]

    def run(self, number):
        """Results, which stay on the device, of a step that updates the tables."""
        pending = self.world.invoke("embeddings_start", [self.ids], keep=True)
        looked_up = self.world.invoke("embeddings_lookup", pending, keep=True)
        [results] = self.world.invoke("embeddings_wait", looked_up, keep=True)
        lookups = len(self.gradients)
        [[of_weights, *handles]] = self.world.invoke(
            "embeddings_gradients", [[*results[lookups:], *self.gradients]], keep=True)
        self.world.invoke("embeddings_update", [[*handles, 0.1, number]])
        return [*results[:lookups], of_weights]

    def tables(self):
        return [array for table in describe()[0].tables
                for array in (self.world.read_table(table.name),
                              *self.world.read_states(table.name))]


def make_batch(generator):
    """Ids of all inputs, of numbers that are always the same, and gradients of all results."""
    def jagged(rows, dtype=torch.int64, weighted=False):
        lengths = [1 + (3 * bag + 5 * feature) % 4 for feature in range(len(rows))
                   for bag in range(BATCH)]
        offsets = torch.tensor([0, *lengths]).cumsum(0)
        ids = torch.cat([torch.randint(count, (sum(lengths[BATCH * at:BATCH * at + BATCH]),),
                                       generator=generator) for at, count in enumerate(rows)])
        weights = torch.rand(len(ids), generator=generator) if weighted else None
        return Jagged(ids.to(dtype), offsets, weights, len(rows))

    ids = [jagged((40, 3000, 30)), jagged((30,), torch.int32), jagged((40,), weighted=True)]
    rows = {"half": len(ids[1].ids)}
    model = describe()[0]
    dims = {table.name: table.dim for table in model.tables}
    gradients = [torch.randn(rows[one.table] if one.pooling == "unpooled" else BATCH,
                             dims[one.table], generator=generator)
                 for input_ in model.inputs for one in input_.lookups]
    return ids, gradients


def read(results):
    values = [one.read() for one in results]
    for one in results:
        one.free()
    return values


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_steps_are_the_same_and_nobody_waits(folder, generator):
    driver, found = load_driver(), []
    batches = [make_batch(generator) for _ in range(4)]
    for late in (False, True):
        with Steps(folder, late) as steps:
            results, waits = [], []
            for number, batch in enumerate(batches, start=1):
                steps.write(batch)
                before = driver.nse_waits()
                kept = steps.run(number)
                waits.append(driver.nse_waits() - before)
                results += read(kept)
            check(runtime().nsrt_device_settle(steps.device))
            found.append([*results, *steps.tables()])
            # The first step makes memory; early checks wait for the numbers of ids of each input.
            assert waits[1:] == [0 if late else 3] * 3
    assert_same(*found)


def test_graphs_of_steps(folder, generator):
    """A graph of a whole step, replayed on other ids, does what steps do."""
    driver = load_driver()
    batches = [make_batch(generator) for _ in range(4)]
    with Steps(folder, True) as steps:
        expected = []
        for number, batch in enumerate(batches, start=1):
            steps.write(batch)
            expected.append(read(steps.run(number)))
        expected_tables = steps.tables()
    with Steps(folder, True) as steps:
        steps.write(batches[0])
        found = [read(steps.run(1))]
        stream, graph, executable = (ctypes.c_void_p() for _ in range(3))
        assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
        check(runtime().nsrt_device_use_stream(steps.device, stream))
        steps.write(batches[1])
        assert driver.cuStreamBeginCapture_v2(stream, 0) == 0
        check(runtime().nsrt_device_use_stream(steps.device, stream))
        results = steps.run(77)  # step sizes are those of each replay
        assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
        assert driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0) == 0
        check(runtime().nsrt_device_use_stream(steps.device, stream))
        for number, batch in enumerate(batches[1:], start=2):
            steps.write(batch)
            check(runtime().nsrt_device_set_step(steps.device, 0.1, number))
            assert driver.cuGraphLaunch(executable, stream) == 0
            found.append([one.read() for one in results])
        check(runtime().nsrt_device_settle(steps.device))
        assert_same(steps.tables(), expected_tables)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        # Eager steps between replays share the buffers of graphs.
        read(steps.run(9))
        check(runtime().nsrt_device_settle(steps.device))


def test_counting_ids_cannot_be_captured(folder, generator):
    driver = load_driver()
    with Steps(folder, False) as steps:
        steps.write(make_batch(generator))
        stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert driver.cuStreamBeginCapture_v2(stream, 0) == 0
        check(runtime().nsrt_device_use_stream(steps.device, stream))
        with pytest.raises(RuntimeFailure, match="no CUDA graph can tell it"):
            steps.run(1)
        assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0


def spoil(ids, what):
    if what == "an id":
        ids[0].ids[3] = 41
    elif what == "an offset":
        ids[0].offsets[4] = 10**12
    else:
        ids[0].offsets[-1] -= 1


@pytest.mark.parametrize("what, message", [
    ("an id", r"id 41 at position 3 .*table \"cut\", feature \"a\".*expected rows from 0 to 39"),
    ("an offset", "offsets must not decrease and bags hold less than 2.31 ids: bag 3 is wrong"),
    ("the end", "offsets must go from 0 to the number of ids")])
def test_wrong_ids_are_told_late(what, message, folder, generator):
    with Steps(folder, True) as steps:
        batch = make_batch(generator)
        spoil(batch[0], what)
        steps.write(batch)
        results = read(steps.run(1))
        if what != "an id":  # bags are empty
            assert not any(one.any() for one in results[:4])
        with pytest.raises(RuntimeFailure, match=message):
            check(runtime().nsrt_device_settle(steps.device))
        check(runtime().nsrt_device_settle(steps.device))  # told once
        steps.write(make_batch(generator))
        assert all(one.any() for one in read(steps.run(2))[:4])
        check(runtime().nsrt_device_settle(steps.device))
