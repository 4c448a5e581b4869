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
from support.model import Table

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    from gpu_device import OpenDevice, check_unchanged, random_tables
    from gpu_steps import Step, train_step
    from neuroshard import cuda

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
ROWS = 11


def small_model():
    """Groups of 1, 2, 16 and 32 lanes, row-wise sums and gradients of sample weights."""
    tables = [Table("t64", ROWS, 64, "f32", models.OPTIMIZERS[2]),
              Table("t5", ROWS, 5, "f32", models.OPTIMIZERS[0]),
              Table("t8", ROWS, 8, "bf16", models.OPTIMIZERS[2]),
              Table("t128", ROWS, 128, "f32", models.OPTIMIZERS[2])]
    return models.make_model(tables, [
        ("l", "a", "t64", "sum", False), ("l", "b", "t5", "unpooled", False),
        ("i", "c", "t8", "mean", False), ("wl", "d", "t64", "sum", True),
        ("wl", "e", "t128", "sum", True)])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model = small_model()
    folder = tmp_path_factory.mktemp("gpu-mutations")
    path = models.compile_model(model, models.whole_plan(model), folder / "model", "--training",
                                "--emit-ir")
    return model, mutations.Mutants(path, folder)


# What finds mutants


def check_training(model, path, kind, integers):
    generator = torch.Generator().manual_seed(matrix.seed())
    with OpenDevice(path, model, random_tables(model, generator, integers)) as opened:
        train_step(opened, models.make_batches(model, kind, generator, integers), generator, 1,
                   integers=integers, fixed=models.fixed_pooling(kind))


def check_only_bad_ids(model, path, kind):
    """Each id is the first behind its table: reported, row 0 in its place, no update."""
    generator = torch.Generator().manual_seed(matrix.seed())
    with (OpenDevice(path, model, random_tables(model, generator, True)) as opened,
          Memory() as memory):
        batches = [Jagged(torch.full_like(batch.ids, ROWS), batch.offsets, batch.weights,
                          batch.features)
                   for batch in models.make_batches(model, kind, generator, True)]
        step = Step(opened, batches, memory, models.fixed_pooling(kind))
        step.make_gradients(generator, True)
        opened.device.forward(step.parts(), cuda.TRAINING)
        with pytest.raises(cuda.BadId, match=f"id {ROWS} at position 0 .*, part 0: "):
            opened.device.check()
        step.check_results()
        opened.device.set_step(0.125, 1)
        step.backward()
        opened.device.check()
        if step.fixed is None:
            step.check_weight_gradients()
        check_unchanged(opened)


def check_all(model, path):
    """Raises what the first check that notices something raises."""
    for kind in ("ragged", "fixed3", "huge"):
        check_training(model, path, kind, integers=True)
    check_training(model, path, "ragged", integers=False)
    for kind in ("ragged", "fixed7"):
        check_only_bad_ids(model, path, kind)


@pytest.fixture(autouse=True)
def with_races(monkeypatch):
    monkeypatch.setenv("NEUROSHARD_EMULATOR_RACES", "1")
    monkeypatch.setenv("NEUROSHARD_CUDA_UNCHECKED", "1")  # mutants have other hashes


def test_a_module_without_changes_passes(compiled):
    model, mutants = compiled
    check_all(model, mutants.make("-none", []))


MUTATIONS = [(kernel, name) for name, kernels in {
    "remove_warp_sync": ("nsg_update",),
    "remove_guard": ("nsg_lookup", "nsg_weight_gradient", "nsg_expand", "nsg_ranges",
                     "nsg_update"),
    "remove_bounds_select": ("nsg_lookup", "nsg_weight_gradient", "nsg_expand"),
    "let_all_lanes_store": ("nsg_update", "nsg_weight_gradient"),
    "add_itself": ("nsg_update", "nsg_weight_gradient"),
    "ask_all_lanes": ("nsg_update", "nsg_weight_gradient"),
    "ask_one_lane": ("nsg_update", "nsg_weight_gradient"),
    "swap_variants": ("nsg_lookup", "nsg_weight_gradient", "nsg_update"),
}.items() for kernel in kernels]


@pytest.mark.parametrize("kernel,name", MUTATIONS)
def test_mutant_is_noticed(compiled, kernel, name):
    """One place of the kernel, drawn with the seed; or each of them."""
    model, mutants = compiled
    sites = mutants.sites(kernel, getattr(mutations, name))
    assert sites, "the mutation found nothing to change"
    chooser = random.Random(f"{matrix.seed()} {kernel} {name}")
    for number in range(len(sites)) if ALL else [chooser.randrange(len(sites))]:
        path = mutants.make(f"-{kernel}-{name}-{number}", [sites[number]])
        try:
            check_all(model, path)
        except (AssertionError, cuda.CudaError):
            continue
        line = mutants.text.count("\n", 0, sites[number][0]) + 1
        pytest.fail(f"nothing notices number {number}, from line {line} of the module on")


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
    """What gpu.json says and what the text has, by options of the compiler."""
    model, found = models.one_table(), {}
    for name, options in {"emulated": ["--emulate"], "ptx": ["--gpu", "sm_90"],
                          "both": ["--emulate", "--gpu", "sm_80,sm_90"],
                          "f16": ["--emulate", "--gpu-output", "f16"]}.items():
        path = artifact.compile_text(model.text(models.whole_plan(model)),
                                     tmp_path_factory.mktemp("gpu-hash") / name, "--training",
                                     "--emit-ir", *options)
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
