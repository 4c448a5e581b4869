"""Removing a barrier, a bounds check, a guard or a mask from the GPU kernels makes a comparison
fail, or the emulator: what each is there for is tested. And the module that is emulated is the
one that PTX and machine code are made of."""

import hashlib
import json
import os
import random

import pytest
import torch

import gpu_models as models
import gpu_mutations as mutations
from gpu_memory import Memory, unusable
from support import artifact, matrix
from support.batch import Jagged
from support.model import Plan, Shard, Table
from support.mutants import is_noticed

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    from gpu_device import OpenDevice, check_unchanged, random_tables
    from gpu_shards import train_shards
    from gpu_steps import Step, train_step
    from neuroshard import cuda

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
ROWS = {"t64": 11, "t5": 12, "t8": 11, "t128": 13}  # what is read later has more


def small_model():
    """Groups of 1, 16 and 32 lanes, row-wise sums and gradients of sample weights."""
    tables = [Table("t64", ROWS["t64"], 64, "f32", models.OPTIMIZERS[2]),
              Table("t5", ROWS["t5"], 5, "f32", models.OPTIMIZERS[0]),
              Table("t8", ROWS["t8"], 8, "bf16", models.OPTIMIZERS[2]),
              Table("t128", ROWS["t128"], 128, "f32", models.OPTIMIZERS[2])]
    return models.make_model(tables, [
        ("l", "a", "t64", "sum", False), ("l", "b", "t5", "sum", False),
        ("l", "f", "t128", "unpooled", False), ("i", "c", "t8", "mean", False),
        ("wl", "d", "t64", "sum", True), ("wl", "e", "t128", "sum", True)])


def halved_model():
    """Row-wise sums of tables that are cut in two by columns: groups of 2 and 16 lanes."""
    tables = [Table("t128", 11, 128, "f32", models.OPTIMIZERS[2]),
              Table("t16", 11, 16, "bf16", models.OPTIMIZERS[2])]
    return models.make_model(tables, [("l", "a", "t128", "sum", False),
                                      ("wl", "b", "t16", "sum", True)])


def halved_plan(model):
    return Plan(2, [Shard(table.name, (0, table.rows), columns, (device,))
                    for table in model.tables
                    for device, columns in enumerate(((0, table.dim // 2),
                                                      (table.dim // 2, table.dim)))], "exact")


def mutants_of(model, plan, folder):
    path = models.compile_model(model, plan, folder / "model", "--training", "--emit-ir")
    assert not (path / "program1.gpu.json").exists(), "mutants are of the only program"
    return model, mutations.Mutants(path, folder)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model = small_model()
    return mutants_of(model, models.whole_plan(model), tmp_path_factory.mktemp("gpu-mutations"))


@pytest.fixture(scope="module")
def halved(tmp_path_factory):
    model = halved_model()
    return mutants_of(model, halved_plan(model), tmp_path_factory.mktemp("gpu-halves"))


# What finds mutants


def with_ids(model, batches, offset):
    """The batches with one id in each feature: `offset` behind the last row of its table."""
    changed = []
    for input_, batch in zip(model.inputs, batches):
        rows = [next(model.table(lookup.table).rows for lookup in input_.lookups
                     if lookup.feature == name) for name in input_.features]
        bags = (len(batch.offsets) - 1) // len(rows)
        counts = torch.diff(batch.offsets[::bags])
        ids = torch.repeat_interleave(torch.tensor(rows) + offset, counts).to(batch.ids.dtype)
        changed.append(Jagged(ids, batch.offsets, batch.weights, batch.features))
    return changed


def check_training(model, path, kind, integers, last_rows=False):
    generator = torch.Generator().manual_seed(matrix.seed())
    with OpenDevice(path, model, random_tables(model, generator, integers)) as opened:
        batches = models.make_batches(model, kind, generator, integers)
        if last_rows:
            batches = with_ids(model, batches, -1)
        train_step(opened, batches, generator, 1, integers=integers,
                   fixed=models.fixed_pooling(kind))


def check_only_bad_ids(model, path, kind):
    """Each id is the first behind its table: it is reported, reads row 0, and updates nothing."""
    generator = torch.Generator().manual_seed(matrix.seed())
    with (OpenDevice(path, model, random_tables(model, generator, True)) as opened,
          Memory() as memory):
        batches = with_ids(model, models.make_batches(model, kind, generator, True), 0)
        step = Step(opened, batches, memory, models.fixed_pooling(kind))
        step.make_gradients(generator, True)
        opened.device.forward(step.parts(), cuda.TRAINING)
        with pytest.raises(cuda.BadId, match=f"id {ROWS['t64']} at position 0 .*, part 0: "):
            opened.device.check()
        step.check_results()
        opened.device.set_step(0.125, 1)
        step.backward()
        opened.device.check()
        if step.fixed is None:
            step.check_weight_gradients()
        check_unchanged(opened)


def check_all(model, path):
    """Runs all checks; raises the error of the first that notices something."""
    for kind in ("ragged", "fixed3", "hot", "once"):
        check_training(model, path, kind, integers=True)
    check_training(model, path, "ragged", integers=False)
    # Ids that are read behind a bag are those of another table.
    for kind in ("last", "fixed1"):
        check_training(model, path, kind, integers=True, last_rows=True)
    for kind in ("ragged", "fixed7", "many"):
        check_only_bad_ids(model, path, kind)


def check_halves(model, path):
    """As check_all, for optimizers in two phases."""
    for kind, integers in (("ragged", True), ("hot", True), ("once", True), ("ragged", False)):
        generator = torch.Generator().manual_seed(matrix.seed())
        train_shards(model, halved_plan(model), path, kind, generator, integers)


@pytest.fixture(autouse=True)
def with_races(monkeypatch):
    monkeypatch.setenv("NEUROSHARD_EMULATOR_RACES", "1")
    monkeypatch.setenv("NEUROSHARD_CUDA_UNCHECKED", "1")  # mutants have other hashes


def test_a_module_without_changes_passes(compiled):
    model, mutants = compiled
    check_all(model, mutants.make("-none", []))


MUTATIONS = [(kernel, name) for name, kernels in {
    "remove_warp_sync": ("nsg_update",),
    "remove_guard": ("nsg_expand", "nsg_ranges", "nsg_partials", "nsg_update"),
    "remove_bound": ("nsg_lookup", "nsg_weight_gradient"),
    "add_behind_the_end": ("nsg_lookup", "nsg_update"),
    "remove_bounds_select": ("nsg_lookup", "nsg_weight_gradient", "nsg_expand"),
    "let_all_lanes_store": ("nsg_update", "nsg_weight_gradient"),
    "add_itself": ("nsg_update", "nsg_weight_gradient"),
    "add_itself_in_warp": ("nsg_update", "nsg_weight_gradient"),
    "ask_all_lanes": ("nsg_update", "nsg_weight_gradient"),
    "ask_one_lane": ("nsg_update", "nsg_weight_gradient"),
    "swap_variants": ("nsg_lookup", "nsg_weight_gradient", "nsg_partials"),
}.items() for kernel in kernels]


# Of optimizers in two phases.
HALVED_MUTATIONS = [(kernel, name) for name, kernels in {
    "remove_warp_sync": ("nsg_apply",),
    "remove_guard": ("nsg_reduce", "nsg_apply"),
    "let_all_lanes_store": ("nsg_reduce", "nsg_apply"),
    "add_itself": ("nsg_reduce",),
    "ask_all_lanes": ("nsg_reduce",),
    "ask_one_lane": ("nsg_reduce",),
    "swap_variants": ("nsg_partials",),
}.items() for kernel in kernels]


MUTATIONS = matrix.sample(MUTATIONS, 9, "mutations")
HALVED_MUTATIONS = matrix.sample(HALVED_MUTATIONS, 4, "mutations of halves")


def check_mutants(mutants, kernel, name, check):
    """The check raises for one place of the kernel, drawn with the seed, or for each."""
    sites = mutants.sites(kernel, getattr(mutations, name))
    assert sites, "the mutation found nothing to change"
    chooser = random.Random(f"{matrix.seed()} {kernel} {name}")
    unnoticed = []
    for number in range(len(sites)) if ALL else [chooser.randrange(len(sites))]:
        path = mutants.make(f"-{kernel}-{name}-{number}", [sites[number]])
        cuda.Device(path, 0, seed=None).close()  # that it does not load is no notice
        if not is_noticed(check, path, (AssertionError, cuda.CudaError)):
            unnoticed.append(mutants.text.count("\n", 0, sites[number][0]) + 1)
    assert not unnoticed, f"nothing notices the change at lines {unnoticed} of the module"


@pytest.mark.parametrize("kernel,name", MUTATIONS)
def test_mutant_is_noticed(compiled, kernel, name):
    model, mutants = compiled
    check_mutants(mutants, kernel, name, lambda path: check_all(model, path))


def test_halves_without_changes_pass(halved):
    model, mutants = halved
    check_halves(model, mutants.make("-none", []))


@pytest.mark.parametrize("kernel,name", HALVED_MUTATIONS)
def test_halved_mutant_is_noticed(halved, kernel, name):
    model, mutants = halved
    check_mutants(mutants, kernel, name, lambda path: check_halves(model, path))


def test_bad_ids_that_are_not_reported_are_noticed(compiled):
    model, mutants = compiled
    sites = mutants.sites("nsg_lookup", mutations.remove_report)
    assert sites
    path = mutants.make("-report", sites)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_all(model, path)


# One module for all


def hash_of_text(folder):
    """SHA-1 of the gpu.module as it is printed by itself."""
    lines = (folder / "ir" / f"{mutations.PROGRAM}-gpu.mlir").read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("  gpu.module "))
    end = lines.index("  }", begin)
    text = "\n".join(line.removeprefix("  ") for line in lines[begin:end + 1])
    return hashlib.sha1(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def module_hashes(tmp_path_factory):
    """The hash in gpu.json and that of the text, by options of the compiler."""
    model, found = models.one_table(), {}
    for name, options in {"emulated": ["--emulate"], "ptx": ["--gpu", "sm_90"],
                          "both": ["--emulate", "--gpu", "sm_80,sm_90"],
                          "f16": ["--emulate", "--gpu-output", "f16"]}.items():
        path = artifact.compile_text(model.text(models.whole_plan(model)),
                                     tmp_path_factory.mktemp("gpu-hash") / name, "--training",
                                     "--emit-ir", "-O", "0", *options)
        described = json.loads((path / f"{mutations.PROGRAM}.gpu.json").read_text())
        found[name] = described, hash_of_text(path)
    return found


def test_the_hash_is_that_of_the_module(module_hashes):
    for described, text in module_hashes.values():
        assert described["module"] == text


def test_one_module_for_the_emulator_and_for_ptx(module_hashes):
    texts = {name: text for name, (_, text) in module_hashes.items()}
    assert texts["emulated"] == texts["ptx"] == texts["both"] != texts["f16"]
    assert module_hashes["emulated"][0]["images"] == []
    assert "emulated" not in module_hashes["ptx"][0]
    assert [image["arch"] for image in module_hashes["both"][0]["images"]] == [
        "sm_80", "sm_90", "ptx"]
