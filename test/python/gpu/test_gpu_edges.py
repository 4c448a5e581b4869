"""GPU kernels at their edges, in the emulator: no, one and very many tables, a bag of 100,000 ids,
ids out of range, rows and results beyond 2^31 elements."""

import mmap
import os

import numpy
import pytest
import torch

import gpu_models as models
from gpu_memory import Memory, unusable
from support.artifact import EMULATED, compile_text
from support.batch import from_features
from support.model import Plan, Shard, Table

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    import gpu_reference as reference
    from gpu_device import OpenDevice, assert_same, check_unchanged, random_tables
    from gpu_steps import Step, train_step
    from neuroshard import cuda

BAD_ROWS = 11
MANY_TABLES = 500 if os.environ.get("NEUROSHARD_ALL") else 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu-edges")


def compiled(model, folder, name, *options):
    return models.compile_model(model, models.whole_plan(model), folder / name, *options)


@pytest.mark.parametrize("kind", ["ragged", "one", "none"])
@pytest.mark.parametrize("count", [1, MANY_TABLES])
def test_numbers_of_tables(count, kind, folder, generator):
    model = models.one_table() if count == 1 else models.many_tables(count)
    path = folder / f"tables{count}"
    artifact = path / "artifact"
    if not path.exists():
        compiled(model, folder, path.name, "--training")
    with OpenDevice(artifact, model, random_tables(model, generator, False)) as opened:
        assert len(opened.slots) == count
        train_step(opened, models.make_batches(model, kind, generator), generator, 1,
                   integers=False)


# One bag of 100,000 ids


def huge_model():
    """Narrow and wide rows, groups of one lane and of a warp; a bag that all lanes share."""
    tables = [Table("t3", 50, 3, "f32", models.OPTIMIZERS[1]),
              Table("t64", 40, 64, "bf16", models.OPTIMIZERS[2]),
              Table("t128", 30, 128, "f32", models.OPTIMIZERS[3])]
    return models.make_model(tables, [
        ("l", "a", "t3", "sum", False), ("i", "b", "t64", "mean", False),
        ("wl", "c", "t128", "sum", True)])


def huge_batches(model, generator, equal):
    batches = []
    for input_ in model.inputs:
        lengths = torch.tensor([3, 100_000, 0, 1])
        count = int(lengths.sum())
        ids = torch.randint(0, 30, (count,), generator=generator)
        if equal:
            ids[:] = 7
        weights = torch.randint(-1, 2, (count,), generator=generator).float()
        batches.append(from_features([(ids, lengths, weights)], input_.id_type, input_.weighted))
    return batches


@pytest.mark.parametrize("equal", [False, True], ids=["mixed", "equal"])
def test_bag_of_100000_ids(equal, folder, generator):
    model = huge_model()
    path = folder / "huge"
    artifact = path / "artifact" if path.exists() else compiled(model, folder, "huge", "--training")
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        train_step(opened, huge_batches(model, generator, equal), generator, 1, integers=False)


# Ids that are none


def bad_model():
    tables = [Table("narrow", BAD_ROWS, 5, "f32", models.OPTIMIZERS[1]),
              Table("wide", BAD_ROWS, 64, "f16", models.OPTIMIZERS[2]),
              Table("odd", BAD_ROWS, 20, "bf16", models.OPTIMIZERS[0])]
    readers = []
    for key, (_, weighted) in models.INPUTS.items():
        for table in tables:
            readers.append((key, f"{table.name}_id", table.name, "sum", weighted))
            if not weighted:
                readers += [(key, f"{table.name}_id", table.name, pooling, False)
                            for pooling in ("mean", "unpooled")]
    return models.make_model(tables, readers)


@pytest.fixture(scope="module")
def bad_artifact(folder):
    model = bad_model()
    return model, compiled(model, folder, "bad", "--training")


def lengths_with_places():
    """Lengths of 6 bags, and positions in the middle, in the rest and at the end of a bag that
    is read several ids at a time, and in the shortest one."""
    lengths = torch.tensor([2, 0, 1, 1003, 3, 1])
    return lengths, (0, 1, 2, 3, 500, 3 + 1001, 3 + 1002, 3 + 1003, int(lengths.sum()) - 1)


BAD_IDS = {"i64": (BAD_ROWS, -1, 2**31, 2**32, 2**32 + 3, 2**63 - 1, -2**63, -2**32),
           "i32": (BAD_ROWS, -1, 2**31 - 1, -2**31)}
PLACES = len(lengths_with_places()[1])


def bad_batch(model, input_, generator, feature, place, bad):
    """A good batch with one bad id, and its position in the whole input."""
    lengths, places = lengths_with_places()
    features = []
    for name in input_.features:
        count = int(lengths.sum())
        ids = torch.randint(0, BAD_ROWS, (count,), generator=generator)
        # Row 0 stands in for bad ids, so that nothing may happen to it.
        ids = ids.clamp_min(1)
        if name == feature:
            ids[places[place]] = bad
        weights = torch.randint(-1, 2, (count,), generator=generator).float()
        features.append((ids, lengths, weights))
    position = input_.features.index(feature) * int(lengths.sum()) + places[place]
    return from_features(features, input_.id_type, input_.weighted), position


def good_batch(model, input_, generator):
    """A batch without bad ids, and without lookups of row 0."""
    batch = models.make_batch(model, input_, "ragged", generator, integers=True)
    batch.ids.clamp_(min=1)
    return batch


def first_lookup(opened, exchange, feature):
    """The lookup that the error names: the first part with the id."""
    return next(number for number, facts in enumerate(opened.lookups)
                if (facts.exchange, facts.feature.decode()) == (exchange, feature))


def check_bad_step(model, artifact, generator, key, feature, place, bad):
    """A training step with one bad id in one feature: it is reported, its result is that of row 0,
    and tables do not change because of it."""
    with (OpenDevice(artifact, model, random_tables(model, generator, True)) as opened,
          Memory() as memory):
        number = next(i for i, input_ in enumerate(model.inputs) if input_.name == key)
        input_ = model.inputs[number]
        batches = [good_batch(model, other, generator) for other in model.inputs]
        batches[number], position = bad_batch(model, input_, generator, feature, place, bad)
        step = Step(opened, batches, memory)
        step.make_gradients(generator, integers=True)
        parts = step.parts()
        opened.device.forward(parts, cuda.TRAINING)
        with pytest.raises(cuda.BadId) as caught:
            opened.device.check()
        lookup = first_lookup(opened, number, feature)
        table = opened.slots[opened.lookups[lookup].slot].table.decode()
        where = f'input "{", ".join(input_.features)}": ' if len(model.inputs) > 1 else ""
        assert str(caught.value) == (
            f'device 0: {where}id {bad} at position {position} of the ids of lookup {lookup} (table '
            f'"{table}", feature "{feature}"), part {lookup}: expected '
            f"rows from 0 to {BAD_ROWS - 1}")
        opened.device.check()  # Reported once.
        step.check_results()
        opened.device.set_step(0.125, 1)
        step.backward()
        opened.device.check()
        step.check_weight_gradients()
        for slot, (_, touched) in enumerate(step.slot_gradients()):
            assert not touched[0], f"slot {slot}"
        step.check_update(0.125, 1)


@pytest.mark.parametrize("place", range(PLACES))
@pytest.mark.parametrize("key", list(models.INPUTS))
def test_bad_id(bad_artifact, key, place, generator):
    model, artifact = bad_artifact
    id_type = models.INPUTS[key][0]
    bad = BAD_IDS[id_type][(place + list(models.INPUTS).index(key)) % len(BAD_IDS[id_type])]
    feature = ("narrow_id", "wide_id", "odd_id")[place % 3]
    check_bad_step(model, artifact, generator, key, feature, place, bad)


@pytest.mark.parametrize("key,bad", [(key, bad) for key in ("l", "i")
                                     for bad in BAD_IDS[models.INPUTS[key][0]]])
def test_kinds_of_bad_ids(bad_artifact, key, bad, generator):
    model, artifact = bad_artifact
    check_bad_step(model, artifact, generator, key, "wide_id", 4, bad)


def test_bad_ids_of_fixed_pooling_and_the_first_of_many(bad_artifact, generator):
    model, artifact = bad_artifact
    with (OpenDevice(artifact, model, random_tables(model, generator, True)) as opened,
          Memory() as memory):
        batches = models.make_batches(model, "fixed20", generator, integers=True)
        batches[1].ids[[70, 200, 300, 301]] = torch.tensor([-5, 99, 98, 97], dtype=torch.int32)
        batches[2].ids[3] = -6
        step = Step(opened, batches, memory, fixed=20)
        opened.device.forward(step.parts())
        with pytest.raises(cuda.BadId, match=r'id -5 at position 70 .* feature "narrow_id"'):
            opened.device.check()
        step.check_results()
        check_unchanged(opened)


def test_rows_of_another_shard_are_bad(folder, generator):
    """Row shards get ids of the whole table and refuse those of other shards."""
    model = models.make_model([Table("cut", 12, 8, "f32", models.OPTIMIZERS[0])],
                              [("i", "f", "cut", "sum", False)])
    plan = Plan(2, [Shard("cut", (0, 5), (0, 8), (0,)), Shard("cut", (5, 12), (0, 8), (1,))])
    artifact = models.compile_model(model, plan, folder / "cut", "--training")
    for rank, bad, rows in ((0, 5, "0 to 4"), (1, 4, "5 to 11"), (1, 12, "5 to 11")):
        with (OpenDevice(artifact, model, random_tables(model, generator, True), rank,
                         splits_rows={"cut"}) as opened, Memory() as memory):
            batches = models.make_batches(model, "ragged", generator, integers=True)
            step = Step(opened, batches, memory)
            parts = step.parts()
            good = step.works[0].ids.copy()
            assert len(good) > 3
            step.works[0].ids[2] = bad - opened.slots[0].row_begin
            parts = step.parts()
            opened.device.forward(parts)
            with pytest.raises(cuda.BadId, match=f"id {bad} at position 2 .* rows from {rows}$"):
                opened.device.check()
            step.check_results()
            check_unchanged(opened)


# Beyond 2^31 elements


class Sparse:
    """A range of memory in which only touched pages exist."""

    def __init__(self, size):
        no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
        self.map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
        self.bytes = numpy.frombuffer(self.map, numpy.uint8)
        self.address = self.bytes.ctypes.data

    def tensor(self, dtype):
        return torch.frombuffer(self.map, dtype=dtype)


FAR_DIM, FAR_ROWS = 512, 8_400_000
# Around 2^31 and 2^32 elements, where 32 bits would wrap around.
FAR_IDS = [0, 1, 2**22 - 1, 2**22, 2**22 + 1, 2**23 - 1, 2**23, 2**23 + 1, FAR_ROWS - 1]


@pytest.fixture(scope="module")
def far_artifact(folder):
    table = Table("far", FAR_ROWS, FAR_DIM, "f32", models.OPTIMIZERS[1])
    model = models.make_model([table], [("l", "f", "far", "sum", False),
                                        ("l", "f", "far", "unpooled", False)])
    text = model.text(models.whole_plan(model)).replace('"CPU"', '"H200"')  # has the room
    return model, compile_text(text, folder / "far", "--training", *EMULATED)


def test_rows_and_gradients_beyond_32_bits(far_artifact, generator):
    """Weights and state of 17 GB each, gradients and results 2^32 elements apart, all sparse."""
    _, artifact = far_artifact
    weights, state = Sparse(FAR_ROWS * FAR_DIM * 4), Sparse(FAR_ROWS * FAR_DIM * 4)
    rows = weights.tensor(torch.float32).view(FAR_ROWS, FAR_DIM)
    sums = state.tensor(torch.float32).view(FAR_ROWS, FAR_DIM)
    ids = torch.tensor(FAR_IDS + FAR_IDS[::2])
    near = torch.tensor(sorted(FAR_IDS))
    rows[near] = torch.randn((len(near), FAR_DIM), generator=generator)
    sums[near] = 0.5
    stride, items = 2**30, len(ids)
    # Two bags, and each id by itself.
    offsets = torch.tensor([0, 4, items])
    results, gradients = Sparse((items + 2) * stride * 4), Sparse((items + 2) * stride * 4)
    out = results.tensor(torch.float32).as_strided((items + 2, FAR_DIM), (stride, 1))
    gradient = gradients.tensor(torch.float32).as_strided((items + 2, FAR_DIM), (stride, 1))
    gradient.copy_(torch.randn(gradient.shape, generator=generator))
    old, old_sums = rows[near].numpy(), sums[near].numpy()
    with (cuda.Device(artifact, seed=None, memory=[(weights.address, state.address, None)]) as
          device, Memory() as memory):
        place = memory.copy(ids)
        parts = cuda.parts_of([
            cuda.part(0, place, memory.copy(offsets), results.address, stride, bags=2),
            cuda.part(1, place, None, results.address + 2 * stride * 4, stride)])
        device.forward(parts, cuda.TRAINING)
        device.check()
        table = {int(row): old[i] for i, row in enumerate(near)}
        taken = numpy.stack([table[int(row)] for row in ids])
        expected = numpy.concatenate([reference.sum_segments(taken, offsets.numpy()), taken])
        assert_same(out, torch.from_numpy(expected), "results")
        device.set_step(0.125)
        device.backward([(gradients.address, stride),
                         (gradients.address + 2 * stride * 4, stride)])
        device.check()
    check_far_update(near, ids, offsets, gradient, (old, old_sums), (rows, sums))


def check_far_update(near, ids, offsets, gradient, old, arrays):
    own = numpy.searchsorted(near.numpy(), ids.numpy())
    values = gradient.numpy()
    total, touched = reference.table_gradient(
        [reference.Terms(own, reference.spread(own, offsets.numpy(), None, "sum", values[:2])),
         reference.Terms(own, values[2:])], len(near), FAR_DIM, None)
    assert touched.all()
    optimizer = models.OPTIMIZERS[1]
    new = reference.update(optimizer, torch.from_numpy(old[0]), [old[1]], total,
                           reference.step_size(optimizer, 0.125, 1))
    for array, bounded in zip(arrays, new):
        assert_same(array[near], torch.from_numpy(bounded.value), "updated rows")
