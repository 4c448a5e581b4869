"""Exports as text and as files: names and locations survive, weights stay out."""

import json
import subprocess
import sys

import neuroshard
import pytest
import torch
from export_cases import case
from export_models import DLRM
from export_runs import compare, lookups_in
from safetensors.torch import load_file
from support import artifact, matrix
from torch import nn


def export_case(name, **options):
    model, batch = case(name)
    generator = torch.Generator().manual_seed(5)
    return model, neuroshard.export(model, batch(4, generator), **options), batch, generator


def through_opt(text, folder, *options):
    source, made = folder / "given.mlir", folder / "made.mlir"
    source.write_text(text)
    code, message = artifact.run_tool("neuroshard-opt", source, *options, "-o", made)
    assert code == 0, message
    return made.read_text()


@pytest.mark.parametrize("name", matrix.sample(
    ["dlrm", "deepfm", "two_tower", "torchrec_dlrm", "torchrec_sequence"], 3, "export text"))
def test_names_and_locations_survive(name, tmp_path):
    model, exported, _, _ = export_case(name, optimizer=neuroshard.Optimizer(
        "rowwise_adagrad", eps=1e-6, weight_decay=0.25))
    parameters = {name for name, _ in model.named_parameters()}
    for table in exported.tables:
        assert table.parameter in parameters
        assert f"@{table.name} : {table.rows} x {table.dim} x f32" in exported.mlir
    for one, line in zip(exported.lookups, lookups_in(exported), strict=True):
        assert f'@{one.table}[' in line and f'"{one.feature}"]' in line
        assert "models.py\":" in line
    made = through_opt(exported.mlir, tmp_path, "--mlir-print-debuginfo",
                       "--mlir-print-local-scope", "--neuroshard-outline")
    assert made.count("neuroshard.lookup") == len(exported.lookups)
    for one in exported.lookups:
        assert one.location in made
    assert "weight_decay = 2.500000e-01" in made
    assert f'loc("{exported.tables[0].parameter}")' in made


def test_locations_are_lines_of_the_model():
    _, exported, _, _ = export_case("dlrm")
    (source,) = {one.location.split('"')[3] for one in exported.lookups}
    (line,) = {int(one.location.split(":")[-2]) for one in exported.lookups}
    assert source.endswith("export_models.py")
    with open(sys.modules[DLRM.__module__].__file__, encoding="utf-8") as file:
        assert "table(*one)" in file.read().splitlines()[line - 1]


class Odd(nn.Module):
    """Names that need quotes."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleDict({"käse-1": nn.EmbeddingBag(9, 4, mode="sum")})

    def forward(self, ids):
        return self.tables["käse-1"](ids)


def test_odd_names(tmp_path):
    model = Odd().eval()
    exported = neuroshard.export(model, (torch.tensor([[1, 2], [3, 4]]),))
    (table,) = exported.tables
    assert table.name == "tables.käse-1"
    assert '@"tables.k\\C3\\A4se-1"' in through_opt(exported.mlir, tmp_path)
    with exported.open(devices=2) as program, torch.no_grad():
        ids = torch.tensor([[8, 0], [1, 1], [5, 2]])
        torch.testing.assert_close(program(ids), model(ids))


class Taken(nn.Module):
    """Names that clash with other symbols and values of the IR; results that are arguments."""

    def __init__(self):
        super().__init__()
        self.dense, self.plan = nn.Embedding(9, 4), nn.EmbeddingBag(9, 4, mode="sum")

    def forward(self, results, ids):
        rows = self.plan(ids)
        return self.dense(ids).sum(1) * results, rows, rows, results, results


@pytest.mark.parametrize("dense", ["external", "torch-mlir"])
def test_taken_names(dense, generator):
    def batch(size):
        return (torch.randn(size, 4, generator=generator),
                torch.randint(0, 9, (size, 2), generator=generator))

    model = Taken().eval()
    exported = neuroshard.export(model, batch(3), dense=dense)
    assert [table.name for table in exported.tables] == ["table.plan", "table.dense"]
    compare(model, exported, [batch(5)], devices=2)


def test_two_tables_of_one_name():
    model = nn.ModuleDict({"dense": nn.Embedding(9, 4), "table": nn.ModuleDict({
        "dense": nn.Embedding(9, 4)})})
    model.forward = lambda ids: model["dense"](ids) + model["table"]["dense"](ids)
    with pytest.raises(neuroshard.export.ExportError, match='"dense.weight" and "table.dense.wei'):
        neuroshard.export(model, (torch.tensor([1, 2]),))


def test_weights_are_never_in_the_ir(tmp_path):
    model, exported, _, _ = export_case("dlrm", dense="torch-mlir")
    assert "dense_resource" not in exported.mlir and "dense<\"0x" not in exported.mlir
    for name, values in model.named_parameters():
        assert f'loc("{name}")' in exported.mlir
        assert f"{values.flatten()[0].item():.5e}" not in exported.mlir
    # The bottom MLP runs while ids are on their way.
    made = through_opt(exported.mlir, tmp_path, "--inline", "--neuroshard-outline")
    between = made[made.index("call @embeddings_start"):made.index("call @embeddings_wait")]
    assert between.count("linalg.matmul") == 2


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["deepfm", "torchrec_two_tower"])
def test_saved_files(name, weights, tmp_path):
    model, exported, batch, generator = export_case(name)
    written = exported.save(tmp_path / "model", weights=weights)
    endings = ["mlir", "ids.pt2", "dense.pt2"] + ["safetensors"] * weights + ["json"]
    assert [path.name for path in written] == [f"model.{ending}" for ending in endings]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    assert (tmp_path / "model.mlir").read_text() == exported.mlir
    if weights:
        saved, state = load_file(tmp_path / "model.safetensors"), model.state_dict()
        assert set(saved) == set(state)
        assert all(torch.equal(saved[key], state[key]) for key in state)
    check_programs(tmp_path, exported, batch(7, generator))


def save_again(exported, path, weights=False):
    with pytest.raises(neuroshard.export.ExportError, match=r"path whose last part|cannot write "):
        exported.save(path, weights=weights)


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    _, exported, _, _ = export_case("dcn")
    for path in ("", ".", "/", "..", tmp_path / "missing" / "model"):
        save_again(exported, path)
    exported.save(tmp_path / "model")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "model.safetensors").mkdir()
    save_again(exported, tmp_path / "model", weights=True)
    (tmp_path / "model.safetensors").rmdir()
    monkeypatch.setattr(torch.export, "save", refuse)  # as on a full disk
    save_again(exported, tmp_path / "model")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def refuse(*_):
    raise OSError(28, "No space left on device")


def check_programs(folder, exported, arguments):
    """The saved programs of torch compute the same as those in memory, with arguments in the order
    of path.json."""
    for name in ("ids", "dense"):
        program = torch.export.load(folder / f"model.{name}.pt2")
        assert not program.state_dict and program.example_inputs is None  # no weights
    said = json.loads((folder / "model.json").read_text())
    values = exported.flatten(arguments, {})
    ids = torch.export.load(folder / "model.ids.pt2").module()
    given = [values[name] for name in said["ids"]["arguments"]]
    for one, other in zip(ids(*given), exported.ids.module(*given), strict=True):
        assert torch.equal(one, other)
    rows = [torch.randn(7, one.dim) for one in exported.lookups]
    dense = torch.export.load(folder / "model.dense.pt2").module()
    made = dense(*rows, *(values[one["name"]] for one in said["dense"]["arguments"]),
                 *(exported.state[one["parameter"]] for one in said["dense"]["parameters"]))
    for one, other in zip(made, exported.run_dense(rows, values), strict=True):
        torch.testing.assert_close(one, other)
    assert len(rows) == said["dense"]["rows"]


def test_artifact_that_trains(tmp_path):
    _, exported, _, _ = export_case("deepfm", optimizer="adagrad")
    place = exported.compile(tmp_path / "artifact", devices=2, training=True)
    done = subprocess.run([artifact.tool("neuroshard-run"), place, "--batch", "9", "--train"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    functions = json.loads((place / "manifest.json").read_text())["functions"]
    assert {"embeddings_start", "embeddings_wait", "embeddings_update"} <= set(functions)


class Large(nn.Module):
    """Tables too large for one machine."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(400_000_000, 128, mode="sum", device="meta")
                                    for _ in range(2))
        self.head = nn.Linear(128, 1)

    def forward(self, dense, ids):
        return self.head(self.tables[0](ids) + self.tables[1](ids) + dense)


def test_tables_on_the_meta_device():
    model = Large().eval()
    exported = neuroshard.export(model, (torch.ones(3, 128), torch.tensor([[1, 2]] * 3)),
                                 optimizer="rowwise_adagrad", batch=65536)
    assert all(table.weight.is_meta for table in model.tables)
    problem = exported.problem("8xH200")
    assert [(one.rows, one.dim) for one in problem.tables] == [(400_000_000, 128)] * 2
    assert problem.features[0].mean_pooling == 2
    neuroshard.plan(problem, evaluation_budget=100).plan.verify(problem)


def test_weights_of_the_meta_device(tmp_path):
    model = Large().eval()
    exported = neuroshard.export(model, (torch.ones(3, 128), torch.tensor([[1, 2]] * 3)))
    with pytest.raises(neuroshard.export.ExportError, match='"tables.0" is on the meta device'):
        exported.save(tmp_path / "model", weights=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("path", "message"), [
    ("a\udcff", "a text that UTF-8 can hold"), (None, "a path, as a text"), (3, "a path, as a text")])
def test_paths_that_are_none(path, message, tmp_path, monkeypatch):
    """torch ends the process after it has failed on a name that is no UTF-8."""
    monkeypatch.chdir(tmp_path)
    model, batch = case("dlrm")
    exported = neuroshard.export(model, batch(4, torch.Generator().manual_seed(5)))
    with pytest.raises((TypeError, ValueError), match=f"save: expected {message}"):
        exported.save(path)
    with pytest.raises((TypeError, ValueError), match=f"load_export: expected {message}"):
        neuroshard.load_export(path)
    assert not list(tmp_path.iterdir())


def test_import_is_lazy():
    code = ("import sys, neuroshard, neuroshard.export as package\n"
            "assert neuroshard.export is package and callable(package)\n"
            "assert 'torch' not in sys.modules\n"
            "package.ExportError\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr
