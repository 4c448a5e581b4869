"""neuroshard profile, and calibrate with the statistics of a run: known answers."""

import json

import numpy
import pytest

import neuroshard as ns
from support import matrix
from support.commands import make_runner
from support.planning import small_problem


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return make_runner(capsys, tmp_path)


def save_batch(path, **features):
    """features: lists of samples, each a list of ids."""
    arrays = {}
    for name, samples in features.items():
        lengths = [len(one) for one in samples]
        arrays[f"{name}.ids"] = numpy.array(sum(samples, []), dtype=numpy.int64)
        arrays[f"{name}.offsets"] = numpy.cumsum([0, *lengths])
    numpy.savez(path, **arrays)
    return arrays


def test_pooling_presence_and_p99(run, tmp_path):
    save_batch("a.npz", user_id=[[1], [], [2, 3], [4]], clicked=[[5], [5], [5], [5]])
    save_batch("b.npz", user_id=[[1, 1, 1, 1], [2, 2], [], []], clicked=[[6], [5], [7], [5]])
    done = run("profile", "small.json", "a.npz", "b.npz", "-o", "new.json")
    assert done.code == 0
    # The mean beside p99 is of all samples, too.
    assert "user_id user 2.00 62.5% 1.25 1.50" in [" ".join(line.split()[:6]) for line in done.out.splitlines()]
    made = ns.ShardingProblem.load(tmp_path / "new.json")
    user, clicked, page, _ = made.features
    assert (user.mean_pooling, user.presence, user.p99_pooling) == (2.0, 0.625, 1.5)
    assert (clicked.mean_pooling, clicked.presence) == (1, 1)
    assert page == small_problem().features[2] and made.table("page").access is None


def test_distinct_ids_of_a_devices_part_count_once(run, tmp_path):
    """Two devices with two samples each; pooled features count as without."""
    small_problem(topology="2xCPU@2GiB", features=[
        ns.Feature("a", "user", "none"), ns.Feature("b", "item"), ns.Feature("c", "page"),
        ns.Feature("d", "tag")]).save(tmp_path / "two.json")
    save_batch("a.npz", a=[[1, 1, 2], [2, 1], [], [1, 1, 1]], b=[[5, 5], [5], [5], [5]])
    assert run("profile", "two.json", "a.npz", "--distinct-ids", "-o", "new.json").code == 0
    made = ns.ShardingProblem.load(tmp_path / "new.json")
    a, b, *_ = made.features
    assert (a.mean_pooling, a.presence, a.p99_pooling) == (1, 0.75, 0.75)
    assert (b.mean_pooling, b.presence) == (1.25, 1)
    assert made.table("user").access.reuse[:2] == pytest.approx((0.5, 0.5))
    small_problem(topology=None).save(tmp_path / "none.json")
    done = run("profile", "none.json", "a.npz", "--distinct-ids")
    assert done.code == 1 and "names no devices" in done.err


def test_batches_smaller_than_the_workloads_get_a_remark(run):
    numpy.savez("a.npz", clicked=numpy.zeros((100, 1), dtype=numpy.int64))
    batch = small_problem().batch.global_size
    said = f"Batches of clicked have 100 samples, the workload's {batch}: give global batches"
    done = run("profile", "small.json", "a.npz")
    assert done.out.startswith("1 batch ") and said in done.out
    numpy.savez("b.npz", clicked=numpy.zeros((batch, 1), dtype=numpy.int64))
    assert run("profile", "small.json", "b.npz", "--json").json["remarks"] == []


def test_reuse_bins_are_those_of_the_schema(run, tmp_path):
    counts = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 8: 8, 9: 9, 32768: 32768, 40000: 40000}
    ids = [row for row, count in counts.items() for _ in range(count)]
    numpy.savez("a.npz", clicked=numpy.array(ids)[:, None])
    found = run("profile", "small.json", "a.npz", "--json").json["tables"]
    expected = [0] * 17
    for count, place in {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 8: 3, 9: 4, 32768: 15, 40000: 16}.items():
        expected[place] += 1 / 9
    assert found[0]["table"] == "item" and found[0]["access"]["batch"] == len(ids)
    assert found[0]["access"]["reuse"] == pytest.approx(expected)


def test_row_mass_of_the_hottest_rows(run):
    # 50,000 rows: the hottest 5 (1e-4) get half of the lookups, 500 (1e-2) get all.
    hot, cold = numpy.repeat(numpy.arange(5), 99), numpy.arange(5, 500)
    numpy.savez("a.npz", clicked=numpy.concatenate([hot, cold])[:, None])
    access = run("profile", "small.json", "a.npz", "--json").json["tables"][0]["access"]
    points = {one["row_share"]: one["lookup_share"] for one in access["row_mass"]}
    assert points == {1e-4: 0.5, 1e-3: round((495 + 45) / 990, 6), 1e-2: 1.0}


def test_rows_in_the_order_of_their_use(run):
    """Of 50,000 rows ids fall on 2,000 by Zipf's law: the first ones, in turn, or drawn anywhere."""
    random = numpy.random.default_rng(1)
    ids = numpy.minimum(random.zipf(1.3, 20_000) - 1, 1_999)
    places = random.permutation(50_000)
    for rows, by_use in ((ids, True), (ids ^ 3, True), (places[ids], False)):
        numpy.savez("a.npz", clicked=rows[:, None])
        done = run("profile", "small.json", "a.npz", "--json", "-o", "made.json")
        access = done.json["tables"][0]["access"]
        assert access["rows_by_use"] is by_use
        assert ns.ShardingProblem.load("made.json").table("item").access.rows_by_use is by_use
        if by_use:  # what the first rows get, not the hottest
            for point in access["row_mass"]:
                first = (rows < round(point["row_share"] * 50_000)).mean()
                assert point["lookup_share"] == pytest.approx(first, abs=1e-6)
    small_problem().replace(tables=[table.replace(hashed=True) for table in small_problem().tables]).save("hashed.json")
    numpy.savez("a.npz", clicked=ids[:, None])
    assert not run("profile", "hashed.json", "a.npz", "--json").json["tables"][0]["access"]["rows_by_use"]


def test_reorder_writes_the_row_of_each_id(run):
    from safetensors.numpy import load_file

    ids = numpy.array([7] * 5 + [49_999] * 5 + [3] * 9 + [20] * 2)
    numpy.savez("a.npz", clicked=ids[:, None])
    done = run("profile", "small.json", "a.npz", "--json", "--reorder", "order.safetensors", "-o", "made.json")
    assert done.code == 0
    order = load_file("order.safetensors")
    assert list(order) == ["item"] and sorted(order["item"]) == list(range(50_000))
    assert order["item"][[3, 7, 49_999, 20]].tolist() == [0, 1, 2, 3]
    assert order["item"][[0, 1, 2, 4, 49_998]].tolist() == [4, 5, 6, 7, 49_999]
    access = ns.ShardingProblem.load("made.json").table("item").access
    assert access.rows_by_use and [one.lookup_share for one in access.row_mass] == [1.0]
    # The batch with the rows in place of ids says the same.
    numpy.savez("b.npz", clicked=order["item"][ids][:, None])
    assert run("profile", "small.json", "b.npz", "--json").json["tables"][0]["access"]["row_mass"] == [
        {"row_share": 1e-4, "lookup_share": 1.0}]
    assert run("profile", "small.json", "a.npz", "--reorder", "order.npz").code == 2
    small_problem().replace(tables=[table.replace(hashed=True) for table in small_problem().tables]).save("hashed.json")
    done = run("profile", "hashed.json", "a.npz", "--reorder", "none.safetensors")
    assert done.code == 1 and "hashed or dynamic" in done.err.replace("\n", " ")


def test_a_table_of_two_features_counts_them_together(run, tmp_path):
    small_problem(features=[ns.Feature("a", "user"), ns.Feature("b", "user"),
                            ns.Feature("c", "item"), ns.Feature("d", "page"),
                            ns.Feature("e", "tag")]).save(tmp_path / "shared.json")
    save_batch("a.npz", a=[[1], [2]], b=[[1], [3]])
    found = run("profile", "shared.json", "a.npz", "--json").json["tables"]
    assert found[0]["access"]["batch"] == 2
    assert found[0]["access"]["reuse"][:2] == pytest.approx([2 / 3, 1 / 3])


def test_files_and_functions_say_the_same(run, tmp_path):
    from safetensors.numpy import save_file

    arrays = save_batch("a.npz", user_id=[[1], [], [2, 3]], clicked=[[9], [9], [8]])
    save_file(arrays, "a.safetensors")
    (tmp_path / "data.py").write_text(
        "import torch\nfrom torchrec import KeyedJaggedTensor\n"
        "def keyed():\n"
        "    yield KeyedJaggedTensor(['user_id', 'clicked'], torch.tensor([1, 2, 3, 9, 9, 8]),\n"
        "                            lengths=torch.tensor([1, 0, 2, 1, 1, 1]))\n"
        "def dicts():\n"
        "    return [{'user_id': (torch.tensor([1, 2, 3]), torch.tensor([0, 1, 1, 3])),\n"
        "             'clicked': torch.tensor([[9], [9], [8]])}]\n")
    answers = [run("profile", "small.json", source, "--json").json for source in
               ("a.npz", "a.safetensors", "data.py:keyed", "data.py:dicts")]
    assert answers.count(answers[0]) == 4


@pytest.mark.parametrize(("form", "keys"), [
    ("{'bags': bags, 'rows': rows, 'dense': torch.zeros(2, 3), 'label': torch.ones(2)}", ()), ("Batch(torch.zeros(2, 3), bags, rows)", ()),
    ("(torch.zeros(2, 3), bags, rows)", ("--map", "bags/f=1/f", "--map", "rows/f=2/f"))])
def test_batches_of_several_collections_with_equal_keys(run, tmp_path, form, keys):
    pytest.importorskip("torchrec")
    small_problem(features=[ns.Feature("bags/f", "user"), ns.Feature("bags/g", "item"), ns.Feature("rows/f", "page"),
                            ns.Feature("t", "tag")]).save(tmp_path / "several.json")
    (tmp_path / "data.py").write_text(
        "import torch, dataclasses\nfrom torchrec import KeyedJaggedTensor\n"
        "@dataclasses.dataclass\nclass Batch:\n    dense: object\n    bags: object\n    rows: object\n"
        "def make():\n"
        "    bags = KeyedJaggedTensor(['f', 'g'], torch.tensor([1, 2, 3, 9, 9, 8]), lengths=torch.tensor([1, 2, 3, 0]))\n"
        "    rows = KeyedJaggedTensor(['f'], torch.tensor([4, 4]), lengths=torch.tensor([2, 0]))\n"
        f"    yield {form}\n")
    found = run("profile", "several.json", "data.py:make", *keys, "--json").json
    assert {one["feature"]: (one["mean_pooling"], one["presence"]) for one in found["features"]} == {
        "bags/f": (1.5, 1), "bags/g": (3, 0.5), "rows/f": (2, 0.5)}
    assert found["ignored"] == []


def test_a_field_that_is_not_set_is_left_out(run, tmp_path):
    pytest.importorskip("torchrec")
    (tmp_path / "data.py").write_text(
        "import torch, dataclasses\nfrom torchrec import KeyedJaggedTensor\n"
        "@dataclasses.dataclass(slots=True)\n"
        "class Batch:\n    ids: object\n    label: object = dataclasses.field(init=False)\n"
        "def make():\n"
        "    yield Batch(KeyedJaggedTensor(['clicked'], torch.tensor([1, 2, 3]), lengths=torch.tensor([1, 2])))\n")
    found = run("profile", "small.json", "data.py:make", "--json").json
    assert [(one["feature"], one["mean_pooling"]) for one in found["features"]] == [("clicked", 1.5)]


def test_a_key_of_two_features_is_refused(run, tmp_path):
    pytest.importorskip("torchrec")
    (tmp_path / "data.py").write_text(
        "import torch\nfrom torchrec import KeyedJaggedTensor\n"
        "def make():\n"
        "    yield KeyedJaggedTensor(['clicked', 'clicked'], torch.tensor([1, 2]), lengths=torch.tensor([1, 1]))\n")
    done = run("profile", "small.json", "data.py:make")
    assert done.code == 1 and "data.py:make: batch 0: expected each key once, got: 'clicked' 2 times" in done.err


def test_features_of_a_batch_of_their_own_have_other_samples(run, tmp_path):
    small_problem(features=[ns.Feature("user_id", "user"), ns.Feature("clicked", "item", batch=2),
                            ns.Feature("page_id", "page"), ns.Feature("tag_id", "tag")]).save(tmp_path / "own.json")
    save_batch("a.npz", user_id=[[1], [2], [3], [4]], page_id=[[1], [1], [1], []], clicked=[[5], [5, 6]])
    found = run("profile", "own.json", "a.npz", "--json").json
    assert {one["feature"]: (one["mean_pooling"], one["presence"]) for one in found["features"]} == {
        "user_id": (1, 1), "clicked": (1.5, 1), "page_id": (1, 0.75)}


def test_keys_of_batches_are_found_by_the_names_of_features(run, tmp_path):
    """A problem of a whole model has paths in its names, which batches have not."""
    def problem(*features):
        return ns.ShardingProblem(tables=[ns.Table("bags.t", 100, 8), ns.Table("rows.t", 100, 8)],
                                  features=features, batch=2, topology="2xCPU")

    problem(ns.Feature("bags/f@bags.t", "bags.t"), ns.Feature("bags/g", "bags.t"),
            ns.Feature("rows.t/f", "rows.t")).save(tmp_path / "paths.json")
    save_batch("a.npz", f=[[1, 2], [3, 4]], g=[[1], []], other=[[1], [1]])
    found = run("profile", "paths.json", "a.npz", "--json").json
    assert {one["feature"]: one["mean_pooling"] for one in found["features"]} == {
        "bags/f@bags.t": 2, "bags/g": 1, "rows.t/f": 2}
    assert found["ignored"] == ["other"]
    mapped = run("profile", "paths.json", "a.npz", "--json", "--map", "rows.t/f=other").json
    assert {one["feature"]: one["mean_pooling"] for one in mapped["features"]} == {
        "bags/f@bags.t": 2, "bags/g": 1, "rows.t/f": 1}
    assert mapped["ignored"] == []
    done = run("profile", "paths.json", "a.npz", "--map", "bags/g=none")
    assert done.code == 1 and "no batch has the key 'none' of feature 'bags/g'; batches have f, g, other" in done.err
    done = run("profile", "paths.json", "a.npz", "--map", "bags/g=f", "--map", "bags/g=g")
    assert done.code == 2 and "a feature is given twice" in done.err
    done = run("profile", "paths.json", "a.npz", "--map", "f=g")
    assert done.code == 1 and "there is no feature 'f' in the workload" in done.err
    done = run("profile", "paths.json", "a.npz", "--map", "f")
    assert done.code == 2 and "expected FEATURE=KEY, got: f" in done.err


def test_a_snapshot_is_added(run, tmp_path):
    save_batch("a.npz", user_id=[[1], [2, 3]])
    run("profile", "small.json", "a.npz", "--snapshot", "night", "--weight", 2, "-o", "new.json")
    made = ns.ShardingProblem.load(tmp_path / "new.json")
    assert made.features == small_problem().features
    assert [(one.name, one.weight) for one in made.snapshots] == [("night", 2)]
    assert made.snapshots[0].features[0].mean_pooling == 1.5
    assert run("plan", "new.json", "--json").json["breakdown"]["snapshots"][0]["name"] == "night"


def test_options_of_a_snapshot_need_one(run, tmp_path):
    save_batch("a.npz", user_id=[[1], [2, 3]])
    done = run("profile", "small.json", "a.npz", "--weight", 2, "-o", "new.json")
    assert done.code == 2 and "--weight needs --snapshot" in done.err
    done = run("profile", "small.json", "a.npz", "--snapshot", "a", "--weight", "nan")
    assert done.code == 2 and "--weight': expected a finite number, got: nan" in done.err
    done = run("profile", "small.json", "a.npz", "--snapshot", "", "-o", "new.json")
    assert done.code == 1 and done.err.startswith("error: snapshots[0].name: "), done.err
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("arrays, said", [
    ({"clicked.ids": [1, 2]}, "expected clicked.offsets"),
    ({"clicked.offsets": [0, 1]}, "expected clicked.ids"),
    ({"clicked.ids": [1, 2], "clicked.offsets": [0, 1]}, "from 0 to 2"),
    ({"clicked.ids": [1, 2], "clicked.offsets": [0, 3, 2]}, "offsets from 0 to 2"),
    ({"clicked.ids": list(range(10)), "clicked.offsets": numpy.array([0, 5, 3, 10], numpy.uint64)},
     "got: 5 and then 3"),
    ({"clicked.ids": [1] * 10, "clicked.lengths": [2**62] * 4 + [10]}, "lengths from 0 to 10"),
    ({"clicked.ids": [1, 2], "clicked.lengths": [1, 2]}, "add up to 2"),
    ({"clicked.ids": [1.5], "clicked.offsets": [0, 1]}, "expected whole numbers"),
    ({"clicked": [1, 2]}, "[batch, ids per sample]"),
    ({"clicked": numpy.zeros((2**40, 0), numpy.int64)}, "[batch, ids per sample]"),
    ({"clicked": [[-1]]}, "id -1 is out of range for table 'item'"),
    ({"clicked": [[50_000]]}, "with 50000 rows"),
    ({"user_id": [[1], [2]], "clicked": [[1]]},
     "expected as many samples of every feature, got: 2 of user_id and 1 of clicked"),
    ({"clicked": numpy.zeros((0, 1), numpy.int64)}, "clicked: expected at least one sample in a batch, got: 0"),
    ({"user_id": numpy.zeros((0, 1), numpy.int64), "clicked": [[1]]}, "user_id: expected at least one sample"),
    ({"else": [[1]]}, "none of the workload's features"),
])
def test_wrong_batches_are_named(run, arrays, said):
    numpy.savez("a.npz", **{name: numpy.array(value) for name, value in arrays.items()})
    done = run("profile", "small.json", "a.npz")
    assert done.code == 1 and done.err.startswith("error: a.npz: ") and said in done.err


def test_a_file_that_is_no_batch(run, tmp_path):
    for name in ("a.npz", "a.safetensors", "a.csv"):
        (tmp_path / name).write_bytes(b"nothing")
        done = run("profile", "small.json", name)
        assert done.code == 1 and f"error: {name}: " in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("given, said", [
    ("[]", "batches.py:batches: no batch in it"),
    ("[{0: [[1]]}]", "batch 0: expected names of features as keys, got: 0"),
    ("[{'clicked': [[1, 2], [3], [4], [5]]}]", "batch 0: clicked: expected whole numbers"),
    ("[{'clicked': torch.ones(2, 1, dtype=torch.bfloat16)}]", "batch 0: clicked: expected whole"),
    ("[{'clicked': torch.ones(2, 1, device='meta')}]", "batch 0: clicked: expected whole"),
])
def test_wrong_batches_of_a_function_are_named(run, tmp_path, given, said):
    (tmp_path / "batches.py").write_text(f"import torch\n\ndef batches():\n    return {given}\n")
    done = run("profile", "small.json", "batches.py:batches", "-o", "new.json")
    assert done.code == 1 and done.err.startswith("error: batches.py:batches: "), done.err
    assert said in done.err and not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("kind", ["BF16", "F8_E5M2"])
def test_types_that_numpy_lacks(run, tmp_path, kind):
    header = json.dumps({"clicked": {"dtype": kind, "shape": [0, 1], "data_offsets": [0, 0]}})
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header.encode())
    done = run("profile", "small.json", "a.safetensors")
    assert done.code == 1 and done.err.startswith("error: a.safetensors: not a .safetensors file")


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_a_damaged_archive_is_named(run, tmp_path, save):
    save("a.npz", **{"user_id.ids": numpy.arange(500), "user_id.offsets": numpy.array([0, 500])})
    whole, random = (tmp_path / "a.npz").read_bytes(), numpy.random.default_rng(matrix.seed())
    for _ in range(60):
        damaged = bytearray(whole[:random.integers(1, len(whole) + 1)])
        damaged[random.integers(len(damaged))] ^= random.integers(1, 256)
        (tmp_path / "a.npz").write_bytes(damaged)
        done = run("profile", "small.json", "a.npz")
        # Of some bytes nothing depends.
        assert done.code == 0 or done.err.startswith("error: a.npz: "), done.err


MIB = 2**20
OF_RUN = ("--workload", "small.json", "--plan", "plan.json", "-o", "machine.json")


def tables_bytes(device):
    return device.peak_bytes - device.reserved_bytes


def save_statistics(tmp_path, used=True):
    """Of two ranks that took 100 and 101 MiB beside tables, and 30 and 29 that the allocator held."""
    devices = ns.inspect(small_problem(), ns.Plan.load("plan.json")).memory.devices
    ranks = []
    for rank, device in enumerate(devices):
        allocated = tables_bytes(device) + (100 + rank) * MIB
        ranks.append({"allocated_bytes.all.peak": allocated,
                      "reserved_bytes.all.peak": allocated + (30 - rank) * MIB}
                     | ({"device_used_bytes": allocated + 80 * MIB} if used else {}))
    (tmp_path / "run.json").write_text(json.dumps(ranks))
    return devices


def test_reserves_are_what_the_run_needed(run, tmp_path):
    run("plan", "small.json", "-o", "plan.json")
    devices = save_statistics(tmp_path)
    done = run("calibrate", "run.json", *OF_RUN)
    assert done.code == 0, done.err
    topology = ns.Topology.load("machine.json")
    assert {device.reserves for device in topology.devices} == {
        ns.Reserves(dense_bytes=101 * MIB, fragmentation_bytes=30 * MIB,
                    communicator_bytes=51 * MIB)}
    # With them the plan's prediction is what the run used, or the most of all ranks beyond it.
    measured = small_problem().replace(topology="machine.json")
    peaks = [one.peak_bytes for one in ns.inspect(
        measured, ns.Plan.load("plan.json"), cost_model="machine.json").memory.devices]
    assert peaks == [tables_bytes(one) + (101 + 30 + 51) * MIB for one in devices]
    shown = run("plan", "small.json", "--topology", "machine.json", "--json").json
    assert shown["memory"]["devices"][0]["communicator_bytes"] == 51 * MIB
    # They are part of the problem, and so of its file.
    measured.save("measured.json")
    assert ns.ShardingProblem.load("measured.json") == measured
    assert topology.with_devices(4).devices[3].reserves == topology.devices[0].reserves


def test_a_machine_file_keeps_all_but_the_reserves(run, tmp_path):
    run("plan", "small.json", "-o", "plan.json")
    save_statistics(tmp_path)
    run("calibrate", "run.json", *OF_RUN)
    plain = json.loads((tmp_path / "machine.json").read_text())
    plain["terms"]["forward"]["scale"] = 2.0
    (tmp_path / "machine.json").write_text(json.dumps(plain))
    save_statistics(tmp_path, used=False)
    done = run("calibrate", "run.json", *OF_RUN)
    assert done.code == 0 and "communicator reserve: as it was" in done.out
    assert json.loads((tmp_path / "machine.json").read_text()) == plain
    done = run("calibrate", "run.json", *OF_RUN[:-1], "plan2.json", "--topology", "2xCPU@7GiB")
    assert done.code == 0, done.err
    device = ns.Topology.load("plan2.json").devices[1]
    assert device.memory_bytes == 7 * 2**30 and device.reserves.communicator_bytes is None


@pytest.mark.parametrize("content, said", [
    ("{", "machine.json: expected a machine file, whose reserves are replaced, or no file"),
    ('{"schema": "neuroshard.workload.v1"}', "machine.json: expected a machine file"),
    ('{"schema": "neuroshard.machine.v1", "topology": "3xCPU"}',
     "machine.json: a machine file for 3 devices, but the plan is for 2"),
    ('{"schema": "neuroshard.machine.v1"}', "machine.json: expected a file with a topology")])
def test_other_files_are_not_overwritten(run, tmp_path, content, said):
    run("plan", "small.json", "-o", "plan.json")
    save_statistics(tmp_path)
    (tmp_path / "machine.json").write_text(content)
    done = run("calibrate", "run.json", *OF_RUN)
    assert done.code == 1 and done.err.startswith(f"error: {said}"), done.err
    assert (tmp_path / "machine.json").read_text() == content


def test_a_file_for_each_rank_and_no_device_totals(run, tmp_path):
    run("plan", "small.json", "-o", "plan.json")
    devices = ns.inspect(small_problem(), ns.Plan.load("plan.json")).memory.devices
    for rank, device in enumerate(devices):
        bytes_ = tables_bytes(device) - rank * MIB
        nested = {"allocated_bytes": {"all": {"peak": bytes_}},
                  "reserved_bytes": {"all": {"peak": bytes_ + MIB}}}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(nested))
    found = run("calibrate", "rank0.json", "rank1.json", *OF_RUN, "--json").json
    assert found["reserves"] == {"dense_bytes": 0, "fragmentation_bytes": MIB,
                                 "communicator_bytes": None}
    assert any("rank 1 allocated less" in one for one in found["remarks"])
    assert any("device_used_bytes" in one for one in found["remarks"])


@pytest.mark.parametrize("content, said", [
    ("[]", "run.json: statistics of 0 ranks, but the plan is for 2 devices"),
    ('[{"allocated_bytes.all.peak": 1' + "0" * 40 + '}, {}]', "rank 0: allocated_bytes.all.peak"), ("{", "run.json: not JSON"), ("[1, 2]", "memory_stats()"),
    ("[" * 100_000, "run.json: not JSON"),
    ('[{"allocated_bytes.all.peak": -1}, {}]', "rank 0: allocated_bytes.all.peak"),
    ('[{"allocated_bytes.all.peak": 2, "reserved_bytes.all.peak": 1}, {}]', "<="),
])
def test_wrong_memory_statistics_are_named(run, tmp_path, content, said):
    run("plan", "small.json", "-o", "plan.json")
    (tmp_path / "run.json").write_text(content)
    done = run("calibrate", "run.json", *OF_RUN)
    assert done.code == 1 and said in done.err and "Traceback" not in done.err
    assert not (tmp_path / "machine.json").exists()


def test_memory_statistics_that_cannot_be_read(run):
    run("plan", "small.json", "-o", "plan.json")
    done = run("calibrate", "/proc/self/mem", *OF_RUN)
    assert done.code == 1 and done.err == (
        "error: /proc/self/mem: cannot be read: Input/output error\n")


@pytest.mark.parametrize("arguments, said", [
    (("run.json",), "STATISTICS, --workload and --plan go together"),
    (("--plan", "plan.json"), "STATISTICS, --workload and --plan go together"),
    (("run.json", *OF_RUN[:4], "--minutes", "2"), "--minutes has no effect"),
    (("--json",), "--json goes with STATISTICS")])
def test_a_run_and_a_measurement_do_not_mix(run, arguments, said):
    done = run("calibrate", *arguments, "-o", "machine.json")
    assert done.code == 2 and said in done.err, done.err
