"""A plan or artifact with one change is refused, or its results differ."""

import copy
import re
import shutil

import pytest
import torch

from support import artifact, mutants, sealing
from support.host import RuntimeFailure
from support.model import Input, Lookup, Model, Optimizer, Plan, Shard, Table
from support.session import Session

DEVICES = 2


def small_model():
    tables = [Table("users", 12, 8, optimizer=Optimizer("adagrad")),
              Table("items", 12, 8, optimizer=Optimizer("adagrad"))]
    lookups = (Lookup("user_id", "users"), Lookup("item_id", "items"))
    other = (Lookup("seen_id", "items", "mean"),)
    return Model(tables, [Input("ids", ("user_id", "item_id"), lookups),
                          Input("more", ("seen_id",), other)])


def small_plan():
    """Each table in two blocks of rows, so that every shard has the same shape."""
    return Plan(DEVICES, [Shard(table, rows, (0, 8), (device,))
                          for table, first in (("users", 0), ("items", 1))
                          for rows, device in (((0, 6), first), ((6, 12), 1 - first))])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model, plan = small_model(), small_plan()
    folder = tmp_path_factory.mktemp("mutations") / "model"
    return artifact.compile_text(model.text(plan), folder, "--training", "--reference",
                                 "--emit-ir", *artifact.EMULATED), model, plan


def step(session, generator):
    """One compared forward and update; raises AssertionError where results differ."""
    jagged = session.random_batch(20, generator, True)
    before = session.tables()
    results, contexts = session.wait_results(jagged)
    gradients = [torch.randint(-3, 4, result.shape, generator=generator).to(result.dtype)
                 for result in results]
    session.update(jagged, contexts, gradients, 0.125, 1)
    session.check_forward(jagged, results, True)
    session.check_update(before, jagged, gradients, 0.125, 1)


def test_the_unchanged_artifact_passes(compiled, generator):
    folder, model, plan = compiled
    with Session(folder, model, plan) as session:
        session.fill(generator, True)
        session.sync_reference()
        step(session, generator)


# Plans in the IR

def overlapping(shards):
    shards[1] = Shard("users", (5, 11), (0, 8), (1,))


def on_a_missing_device(shards):
    shards[0] = Shard("users", (0, 6), (0, 8), (DEVICES,))


def twice(shards):
    shards.append(Shard("users", (0, 6), (0, 8), (1,)))


def of_swapped_tables(shards):
    shards[0], shards[2] = (Shard("items", *rest(shards[0])), Shard("users", *rest(shards[2])))
    shards[1] = Shard("users", (0, 6), (0, 8), (0,))


def rest(shard):
    return shard.rows, shard.cols, shard.devices


def with_unaligned_columns(shards):
    shards[0] = Shard("users", (0, 6), (0, 3), (0,))
    shards.append(Shard("users", (0, 6), (3, 8), (0,)))


@pytest.mark.parametrize("mutate", [overlapping, on_a_missing_device, twice, of_swapped_tables,
                                    with_unaligned_columns],
                         ids=lambda f: f.__name__)
def test_plan_is_refused(mutate, tmp_path):
    plan = small_plan()
    mutate(plan.shards)
    source = tmp_path / "model.mlir"
    source.write_text(small_model().text(plan))
    code, messages = artifact.run_tool("neuroshard-compile", source, "-o", tmp_path / "artifact")
    assert code == 1, messages
    assert "error:" in messages
    assert not (tmp_path / "artifact").exists()


# Partitioned IR

def swap_shards_of_slots(text):
    """Swaps the first two shards that the programs bind."""
    names = re.findall(r'local_table .*? shards \["(\w+)"', text)
    first, second = names[0], next(name for name in names if name != names[0])
    return re.sub(r'(shards \[)("\w+"(?:, "\w+")*)', lambda m: m[1] + re.sub(
        r"\w+", lambda n: {first: second, second: first}.get(n[0], n[0]), m[2]), text)


def drop_a_lookup_of_a_program(text):
    return re.sub(r"\n *neuroshard.local_lookup .*", "", text, count=1)


def drop_a_slot(text):
    return re.sub(r"\n *neuroshard.local_table .*", "", text, count=1)


def drop_an_exchange(text):
    return re.sub(r"\n *neuroshard.exchange .*", "", text, count=1)


def drop_a_lookup_of_an_exchange(text):
    return re.sub(r"(neuroshard.exchange .* lookups \[).*?>, ", r"\1", text, count=1)


def shift_the_rows_of_a_shard(text):
    return text.replace("rows [6, 12)", "rows [5, 11)", 1)


def forget_a_device(text):
    return re.sub(r"(device_program @\w+ for \[)\d+(?:, \d+)*", r"\g<1>0", text)


@pytest.mark.parametrize("mutate", [
    swap_shards_of_slots, drop_a_lookup_of_a_program, drop_a_slot, drop_an_exchange,
    drop_a_lookup_of_an_exchange, shift_the_rows_of_a_shard, forget_a_device],
    ids=lambda f: f.__name__)
def test_partitioned_ir_is_noticed(mutate, compiled, tmp_path, generator):
    folder, model, plan = compiled
    text = (folder / "ir" / "4-partitioned.mlir").read_text()
    mutated = mutate(text)
    assert mutated != text, "the mutation found nothing to change"
    source = tmp_path / "partitioned.mlir"
    source.write_text(mutated)
    broken = tmp_path / "artifact"
    code, messages = artifact.run_tool("neuroshard-compile", source, "-o", broken)
    if code == 0:
        must_be_noticed(broken, folder, model, plan, generator)
    else:
        assert code == 1 and "error:" in messages


def must_be_noticed(broken, folder, model, plan, generator):
    """The artifact cannot be opened, fails, or gives other results than `folder`'s reference
    program."""
    shutil.copy(folder / "reference.so", broken)
    reference = sealing.read_manifest(folder)["reference"]
    manifest = sealing.read_manifest(broken)
    sealing.write_manifest(broken, {**manifest, "reference": reference})
    with pytest.raises((RuntimeFailure, AssertionError)):
        with Session(broken, model, plan) as session:
            session.fill(generator, True)
            session.sync_reference()
            step(session, generator)


# The schedule of a step

SCHEDULE = {
    "results are not sent": (r"\n.*call .* @nsrt_results_start\(.*", ""),
    "results are not waited for": (r"\n.*call .* @nsrt_results_wait\(.*", ""),
    "a result is not written": (r"(@nsrt_results_wait\(.*, i64 )2,", r"\g<1>1,"),
    "a result of another size": (r"= .*call i64 @nsrt_result_rows\(.*", "= add i64 0, 1"),
    "another exchange": (r"(@nsrt_route\(ptr [^,]+, i64 )0,", r"\g<1>1,"),
    "gradients are not sent": (r"\n.*call .* @nsrt_gradients_start\(.*", ""),
    "a gradient is not sent": (r"(@nsrt_gradients_pack\(.*, i64 )2,", r"\g<1>1,"),
    "rows of gradients at another distance": (
        r"store i64 %[^,]+,(.*\n.* @nsrt_gradients_pack)", r"store i64 0,\g<1>"),
    "a tensor of another type": (r"store i32 0,", "store i32 2,"),
    "no update": (r"\n.*call .* @nsrt_update\(.*", ""),
    "an exchange without update": (r"(@nsrt_update\(ptr [^,]+, i64 )2,", r"\g<1>1,"),
}


def broken_schedules(name, compiled, folder):
    """Artifacts with one change in the functions that a step calls, one for each place."""
    pattern, new = SCHEDULE[name]
    text = (compiled / "ir" / "program0-native.ll").read_text()
    begin = re.search(r"define .*@embeddings_start", text).start()  # behind the entry
    places = list(re.finditer(pattern, text[begin:]))
    assert places, "the mutation found nothing to change"
    for number, place in enumerate(places):
        target = folder / str(number)
        shutil.copytree(compiled, target, ignore=shutil.ignore_patterns("ir"))
        source, code = folder / f"{number}.ll", folder / f"{number}.o"
        source.write_text(text[:begin + place.start()] + place.expand(new)
                          + text[begin + place.end():])
        mutants.run(mutants.llvm_tool("llc"), "-O1", "-filetype=obj", "-relocation-model=pic",
                    source, "-o", code)
        mutants.run(mutants.llvm_tool("ld.lld"), "-shared", "-z", "now", "-z", "noexecstack",
                    "-o", target / "program0.so", code)
        sealing.seal(target)
        yield target


@pytest.mark.parametrize("emulated", [False, True], ids=["devices", "GPUs"])
@pytest.mark.parametrize("name", SCHEDULE)
def test_schedule_is_noticed(name, emulated, compiled, tmp_path, generator):
    folder, model, plan = compiled

    def check(path):
        with Session(path, model, plan, emulated=emulated) as session:
            session.fill(generator, True)
            session.sync_reference()
            step(session, generator)

    check(folder)
    for broken in broken_schedules(name, folder, tmp_path):
        assert mutants.is_noticed(check, broken,
                                  (RuntimeFailure, AssertionError, RuntimeError)), broken


# Manifests

def swap_bound_shards(manifest):
    bindings = manifest["bindings"]
    bindings[0]["slots"], bindings[1]["slots"] = bindings[1]["slots"], bindings[0]["slots"]


def swap_bound_lookups(manifest):
    """Swaps two lookups of one device."""
    lookups = manifest["bindings"][0]["lookups"]
    (first, *_), (second, *_) = lookups[0][1:], lookups[1][1:]
    lookups[0][1], lookups[1][1] = second, first


def drop_manifest_exchange(manifest):
    del manifest["exchanges"][-1]


def drop_manifest_lookup(manifest):
    del manifest["exchanges"][0]["lookups"][-1]


def shift_manifest_rows(manifest):
    manifest["shards"][1]["rows"] = [bound - 1 for bound in manifest["shards"][1]["rows"]]


def swap_programs_slots(manifest):
    slots = manifest["bindings"][0]["slots"]
    slots[0], slots[1] = slots[1], slots[0]


@pytest.mark.parametrize("mutate", [
    swap_bound_shards, swap_bound_lookups, drop_manifest_exchange, drop_manifest_lookup,
    shift_manifest_rows, swap_programs_slots], ids=lambda f: f.__name__)
def test_manifest_is_noticed(mutate, compiled, tmp_path, generator):
    folder, model, plan = compiled
    broken = tmp_path / "artifact"
    shutil.copytree(folder, broken)
    manifest = sealing.read_manifest(folder)
    changed = copy.deepcopy(manifest)
    mutate(changed)
    assert changed != manifest
    sealing.write_manifest(broken, changed)
    must_be_noticed(broken, folder, model, plan, generator)


# What the comparison itself sees

def swap_two_shards(table):
    table[:6], table[6:] = table[6:].clone(), table[:6].clone()


def shift_a_row_offset(table):
    table[6:] = table[6:].roll(1, 0)


def lose_one_element(table):
    table[3, 5] += 1


@pytest.mark.parametrize("mutate", [swap_two_shards, shift_a_row_offset, lose_one_element],
                         ids=lambda f: f.__name__)
def test_misplaced_rows_are_seen(mutate, compiled, generator):
    folder, model, plan = compiled
    with Session(folder, model, plan) as session:
        session.fill(generator, True)
        session.sync_reference()
        table = session.world.read_table("items")
        mutate(table)
        session.world.write_table("items", table)
        jagged = session.random_batch(60, generator, True)
        results, contexts = session.wait_results(jagged)
        session.update(jagged, contexts, [r.new_zeros(r.shape) for r in results], 0.0, 1)
        with pytest.raises(AssertionError, match="differ"):
            session.check_forward(jagged, results, True)


def test_a_lost_exchange_is_seen(compiled, generator):
    folder, model, plan = compiled
    with Session(folder, model, plan) as session:
        session.fill(generator, True)
        session.sync_reference()
        jagged = session.random_batch(60, generator, True)
        before = session.tables()
        results, contexts = session.wait_results(jagged)
        gradients = [torch.randint(-3, 4, result.shape, generator=generator).to(result.dtype)
                 for result in results]
        session.update(jagged, contexts, gradients[:2] + [gradients[2] * 0], 0.125, 1)
        results[2] = results[2] * 0
        with pytest.raises(AssertionError, match="differ"):
            session.check_forward(jagged, results, True)
        with pytest.raises(AssertionError, match="differ"):
            session.check_update(before, jagged, gradients, 0.125, 1)
