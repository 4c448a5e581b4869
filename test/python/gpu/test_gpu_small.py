"""Slots of few rows, which GPU kernels update without a sort: beside slots that are sorted and
without any, in every kind of batch, against numpy bit by bit and against the sorted path."""

import os
import random

import numpy
import pytest
import torch

import gpu_models as models
import gpu_mutations as mutations
from gpu_memory import Memory, unusable
from support import matrix
from support.batch import from_features
from support.model import Table
from support.mutants import is_noticed

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    from gpu_device import OpenDevice, check_unchanged, program_of, random_tables
    from gpu_steps import Step, train_step
    from neuroshard import cuda

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
KINDS = ("ragged", "one", "empty", "equal", "none", "huge", "fixed1", "fixed3", "fixed20")
# Of the rows of models.ROWS all, and some, are few.
ROWS = {"all": "64", "some": "20"}
SORT = ("nsg_ranges", "nsg_partials", "nsg_update")
SMALL = ("nsg_small_order", "nsg_small_sums", "nsg_small_update")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu-small")


def compiled(model, folder, name, rows, *options):
    path = folder / f"{name}-{rows}" / "artifact"
    if path.exists():
        return path
    return models.compile_model(model, models.whole_plan(model), path.parent, "--training",
                                "--small-rows", rows, *options)


ROTATIONS = matrix.sample(range(len(models.OPTIMIZERS) * 3), 1, "gpu small")


@pytest.fixture(scope="module", params=ROTATIONS, ids=lambda r: f"rotation{r}")
def trained_model(request):
    """All dims, or some drawn with the seed; narrow and wide ones."""
    salt = f"gpu small {request.param}"
    dims = models.DIMS if ALL else tuple(matrix.sample(models.DIMS[:10], 2, salt) +
                                         matrix.sample(models.DIMS[10:], 2, salt))
    return request.param, models.training_model(request.param, dims)


@pytest.fixture(scope="module", params=ROWS)
def trained(request, trained_model, folder):
    rotation, model = trained_model
    return model, compiled(model, folder, f"training{rotation}", ROWS[request.param])


def test_kernels_are_those_of_the_slots(trained):
    """If nothing is sorted, no kernel of the sort is there."""
    model, artifact = trained
    program = program_of(artifact, 0)
    limit = int(artifact.parent.name.rpartition("-")[2])
    few = [table.rows <= limit for table in model.tables]
    assert [slot["small_update_variant"] >= 0 for slot in program["slots"]] == few
    assert [slot["update_variant"] >= 0 for slot in program["slots"]] == [not is_few
                                                                          for is_few in few]
    assert any(few) == all(kernel in program["kernels"] for kernel in SMALL)
    assert all(few) == (not any(kernel in program["kernels"] for kernel in SORT))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integers", [True, False], ids=["integers", "reals"])
def test_training(trained, kind, integers, generator):
    model, artifact = trained
    with OpenDevice(artifact, model, random_tables(model, generator, integers)) as opened:
        for number in (1, 2):
            # Once with the ids of features told apart, once not.
            train_step(opened, models.make_batches(model, kind, generator, integers), generator,
                       number, integers=integers, fixed=models.fixed_pooling(kind),
                       known=number == 1)


def trained_tables(model, artifact, batches, steps=2, integers=False, fixed=None):
    tables = random_tables(model, torch.Generator().manual_seed(5), integers)
    with OpenDevice(artifact, model, tables) as opened:
        gradients = torch.Generator().manual_seed(6)
        for number in range(1, steps + 1):
            train_step(opened, batches, gradients, number, integers=integers, fixed=fixed)
        return opened.expected


def test_same_input_same_bits(trained, generator, monkeypatch):
    model, artifact = trained
    batches = models.make_batches(model, "ragged", generator)
    runs = []
    for seed in ("1", "2"):
        monkeypatch.setenv("NEUROSHARD_EMULATOR_SEED", seed)
        runs.append(trained_tables(model, artifact, batches))
    for (weights, states), (again, others) in zip(*runs):
        assert torch.equal(weights, again)
        for state, other in zip(states, others, strict=True):
            assert (state == other).all()


def test_nothing_races(trained, generator, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_EMULATOR_RACES", "1")
    model, artifact = trained
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        train_step(opened, models.make_batches(model, "ragged", generator), generator, 1,
                   integers=False)


@pytest.mark.parametrize("kind", ["ragged", "huge"])
def test_as_with_a_sort(trained_model, folder, kind, generator):
    """Sums of the same gradients in another order: equal except for rounding."""
    rotation, model = trained_model
    batches = models.make_batches(model, kind, generator)
    few, sorted_ = (trained_tables(model, compiled(model, folder, f"training{rotation}", rows),
                                   batches, steps=1) for rows in ("64", "0"))
    for table, (weights, states), (others, theirs) in zip(model.tables, few, sorted_):
        tolerance = 2e-4 if table.dtype == "f32" else 2e-2
        torch.testing.assert_close(weights.float(), others.float(), rtol=tolerance,
                                   atol=tolerance, msg=lambda text, t=table: f"{t}: {text}")
        for state, other in zip(states, theirs, strict=True):
            numpy.testing.assert_allclose(state, other, rtol=2e-4, atol=2e-4)


# Many ids of few rows


def crowded_model():
    """One row, two, and as many as there may be by default; several features of one table."""
    tables = [Table("one", 1, 4, "f32", models.OPTIMIZERS[0]),
              Table("two", 2, 20, "f32", models.OPTIMIZERS[1]),
              Table("most", 64, 32, "bf16", models.OPTIMIZERS[2])]
    return models.make_model(tables, [
        ("l", "a", "one", "sum", False), ("i", "b", "two", "mean", False),
        ("i", "c", "two", "sum", False), ("wl", "d", "most", "sum", True),
        ("wl", "e", "most", "sum", False)])


def crowded_batches(model, generator, equal, count):
    batches = []
    for input_ in model.inputs:
        features = []
        for feature in input_.features:
            rows = next(model.table(lookup.table).rows for lookup in input_.lookups
                        if lookup.feature == feature)
            lengths = torch.tensor([5, count, 0, 2])
            ids = torch.randint(0, rows, (int(lengths.sum()),), generator=generator)
            ids = torch.full_like(ids, rows - 1) if equal else ids
            weights = torch.randint(-1, 2, (len(ids),), generator=generator).float()
            features.append((ids, lengths, weights))
        batches.append(from_features(features, input_.id_type, input_.weighted))
    return batches


CROWDS = [(250, False), (35_000, True), (140_000, False)]
if ALL:
    CROWDS = [(count, equal) for count, _ in CROWDS for equal in (False, True)]


@pytest.mark.parametrize("count,equal", CROWDS)
def test_pieces_and_sums(folder, equal, count, generator):
    """So many ids that sums are of one, some and many pieces: 128 sums are the most of 64 rows,
    and 512 those of one."""
    model = crowded_model()
    if count == 140_000:
        model = models.make_model(model.tables[:1], [("l", "a", "one", "sum", False)])
    artifact = compiled(model, folder, f"crowded{len(model.tables)}", "64")
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        batches = crowded_batches(model, generator, equal, count)
        for known in (True, False) if ALL or count < 1000 else (True,):
            train_step(opened, batches, generator, 1, integers=False, known=known)


def test_many_slots(folder, generator):
    """One launch of each kernel for all of them."""
    model = models.many_tables(500 if ALL else 30)
    artifact = compiled(model, folder, "many", "4")
    assert 0 < sum(table.rows <= 4 for table in model.tables) < len(model.tables)
    with OpenDevice(artifact, model, random_tables(model, generator, False)) as opened:
        train_step(opened, models.make_batches(model, "ragged", generator), generator, 1,
                   integers=False)


# Shards


@pytest.fixture(scope="module", params=["per_shard", "exact"] if ALL else ["per_shard"])
def sharded(request, folder):
    """Shards of rows, of columns and of both; some of few rows."""
    model = models.sharded_model()
    plan = models.sharded_plan(model, request.param)
    artifact = models.compile_model(model, plan, folder / request.param, "--training",
                                    "--small-rows", "14")
    return model, plan, artifact


def test_slots_of_two_phases_are_sorted(sharded):
    _, plan, artifact = sharded
    slots = [slot for rank in range(plan.devices) for slot in program_of(artifact, rank)["slots"]]
    kinds = {(slot["two_phase"], slot["small_update_variant"] >= 0) for slot in slots}
    # Programs are shared, but hardly here.
    assert kinds == {(False, False), (False, True)} | (
        {(True, False)} if plan.semantics == "exact" else set())


@pytest.mark.parametrize("kind", ["ragged", "one", "equal", "none"])
def test_shards(sharded, kind, generator):
    model, plan, artifact = sharded
    splits = {table.name for table in model.tables if plan.splits_rows(table.name)}
    tables = random_tables(model, generator, True)
    for rank in range(plan.devices):
        with (OpenDevice(artifact, model, tables, rank, splits_rows=splits) as opened,
              Memory() as memory):
            step = Step(opened, models.make_batches(model, kind, generator, True), memory)
            step.make_gradients(generator, True)
            step.forward(cuda.TRAINING)
            opened.device.set_step(0.125, 1)
            step.backward()
            opened.device.check()
            # What waits for norms is compared elsewhere.
            ready = [slot for slot, facts in enumerate(opened.slots) if not facts.two_phase]
            step.check_update(0.125, 1, slots=ready)


# Ids that are none


BAD_ROWS = 11


def bad_model():
    tables = [Table("narrow", BAD_ROWS, 5, "f32", models.OPTIMIZERS[3]),
              Table("wide", BAD_ROWS, 64, "f16", models.OPTIMIZERS[2])]
    return models.make_model(tables, [
        (key, f"{table.name}_id", table.name, pooling, False)
        for key in ("l", "i") for table in tables for pooling in ("sum", "mean")])


@pytest.mark.parametrize("bad", [BAD_ROWS, -1, 2**31 - 1, -2**31])
def test_bad_ids_update_nothing(folder, bad, generator):
    """Ids before the rows, behind them and far away; among good ids, and alone."""
    model = bad_model()
    artifact = compiled(model, folder, "bad", "64")
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        for alone in (False, True):
            with Memory() as memory:
                batches = models.make_batches(model, "ragged", generator, True)
                for batch in batches:
                    batch.ids[:] = bad if alone else torch.where(
                        torch.rand(len(batch.ids), generator=generator) < 0.3, bad, batch.ids)
                step = Step(opened, batches, memory)
                step.make_gradients(generator, True)
                opened.device.forward(step.parts(), cuda.TRAINING)
                with pytest.raises(cuda.BadId):
                    opened.device.check()
                opened.device.set_step(0.125, 1)
                step.backward()
                if alone:
                    check_unchanged(opened)
                else:
                    step.check_update(0.125, 1)


# What is removed is missed


def mutated_model():
    """Groups of 1, 8 and 32 lanes; rows without ids that moments or decay would change; and each
    body has a slot with pieces of another behind its own."""
    tables = [Table("t5", 64, 5, "f32", models.OPTIMIZERS[3]),
              Table("t64", 64, 64, "f16", models.OPTIMIZERS[6]),
              Table("t128", 64, 128, "f32", models.OPTIMIZERS[6]),
              Table("last", 3, 5, "f32", models.OPTIMIZERS[3])]
    return models.make_model(tables, [
        ("l", "a", "t5", "unpooled", False), ("i", "b", "t64", "mean", False),
        ("wl", "c", "t128", "sum", True), ("wl", "d", "t5", "sum", False),
        ("i", "e", "last", "sum", False)])


@pytest.fixture(scope="module")
def mutants(folder):
    model = mutated_model()
    artifact = compiled(model, folder, "mutated", "64", "--emit-ir")
    return model, mutations.Mutants(artifact, folder)


def check_all(model, path):
    """Raises what the first check that notices something raises. Most look for races."""
    os.environ["NEUROSHARD_EMULATOR_RACES"] = "1"
    generator = torch.Generator().manual_seed(matrix.seed())
    for kind in ("ragged", "fixed3", "huge"):
        with OpenDevice(path, model, random_tables(model, generator, True)) as opened:
            # The second step must not take what the first has left for its own.
            for number, batch in ((1, kind), (2, "one")):
                train_step(opened, models.make_batches(model, batch, generator, True), generator,
                           number, integers=True, fixed=models.fixed_pooling(batch))
    # Slow enough without it.
    os.environ.pop("NEUROSHARD_EMULATOR_RACES")
    with OpenDevice(path, model, random_tables(model, generator, True)) as opened:
        # 131 or 262 pieces, two or three to one of 128 sums at most: the last has fewer.
        train_step(opened, crowded_batches(model, generator, False, 33_400), generator, 1,
                   integers=True)


@pytest.fixture
def unchecked(monkeypatch):
    monkeypatch.setenv("NEUROSHARD_EMULATOR_RACES", "")  # and back, whatever check_all leaves
    monkeypatch.setenv("NEUROSHARD_CUDA_UNCHECKED", "1")  # mutants have other hashes


def test_a_module_without_changes_passes(mutants, unchecked):
    model, made = mutants
    check_all(model, made.make("-none", []))


def in_bodies(mutation):
    """Sites in the bodies, not before the switch in which a kernel finds its slot."""
    return lambda text: [change for change in mutation(text)
                         if change[0] > text.find("scf.index_switch")]


V = mutations.VALUE
SMALL_MUTATIONS = {
    # A sum's last piece, a piece's last id, the last sum of a row.
    "remove_minimum": in_bodies(mutations.replacing(rf"arith\.minui {V}, {V} : index",
                                                    r"arith.minui \1, \1 : index")),
    "update_all_rows": mutations.replacing(rf"{V} = arith\.cmpf ogt, {V}, {V} : f32\n",
                                           r"\1 = arith.constant true\n"),
    "take_all_ids": mutations.replacing(rf"{V} = arith\.cmpi (?:eq|ult), {V}, {V} : i64\n",
                                        r"\1 = arith.constant true\n"),
    "write_keys": mutations.replacing(rf"arith\.andi {V}, %c32_i32(?:_\d+)? : i32",
                                      r"arith.xori \1, \1 : i32"),
}
MUTATIONS = [(kernel, name) for name, kernels in {
    "remove_guard": SMALL,
    "remove_minimum": SMALL,
    "take_all_ids": ("nsg_small_order",),
    "write_keys": ("nsg_expand",),
    "update_all_rows": ("nsg_small_update",),
    "remove_warp_sync": ("nsg_small_update",),
    "let_all_lanes_store": ("nsg_small_sums", "nsg_small_update"),
    "add_itself": ("nsg_small_update",),
    "ask_all_lanes": ("nsg_small_update",),
    "ask_one_lane": ("nsg_small_update",),
    "swap_variants": ("nsg_small_sums", "nsg_small_update"),
}.items() for kernel in kernels]


@pytest.mark.parametrize("kernel,name", matrix.sample(MUTATIONS, 4, "gpu small mutations"))
def test_mutant_is_noticed(mutants, unchecked, kernel, name):
    """One place of the kernel, drawn with the seed; or each of them."""
    model, made = mutants
    mutation = SMALL_MUTATIONS.get(name) or getattr(mutations, name)
    sites = made.sites(kernel, mutation)
    assert sites, "the mutation found nothing to change"
    chooser = random.Random(f"{matrix.seed()} {kernel} {name}")
    for number in range(len(sites)) if ALL else [chooser.randrange(len(sites))]:
        path = made.make(f"-{kernel}-{name}-{number}", [sites[number]])
        line = made.text.count("\n", 0, sites[number][0]) + 1
        assert is_noticed(lambda path: check_all(model, path), path,
                                    (AssertionError, cuda.CudaError)), (
            f"nothing notices number {number}, from line {line} of the module on")
