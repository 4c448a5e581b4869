"""Files that save() did not write, and missing types and operators, raise one ExportError before
anything is read or run; values that no file can hold raise it when they are saved."""

import copy
import dataclasses
import json
import os
import random
import shutil
import typing

import neuroshard
import pytest
import torch
from neuroshard.export._files import checksums, loading
from safetensors.torch import load_file, save_file
from support import matrix
from torch import nn
from torch.utils import _pytree as pytree

ROWS, DIM = 20, 4
IDS = torch.arange(8)
ENDINGS = ("mlir", "ids.pt2", "dense.pt2", "safetensors", "json")


class Of(nn.Module):
    """A module whose forward is the given function of module and arguments."""

    def __init__(self, function=lambda m, ids: m.head(m.table(ids))):
        super().__init__()
        self.table, self.head, self.function = nn.Embedding(ROWS, DIM), nn.Linear(DIM, 1), function

    def forward(self, *arguments):
        return self.function(self, *arguments)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    model = Of(lambda m, ids, *by: {"x": m.head(m.table(ids)) * by[0], "y": None, "z": by[0]})
    for name in ("model", "other"):
        neuroshard.export(model.eval(), (IDS, 2), optimizer="adagrad").save(folder / name,
                                                                            weights=True)
        nn.init.normal_(model.table.weight)
        model.function = lambda m, ids, *by: m.head(m.table(ids + 1)) * by[0]
    return folder


@pytest.fixture
def model(saved, tmp_path):
    """A copy of a saved export, to damage."""
    for ending in ENDINGS:
        shutil.copy(saved / f"model.{ending}", tmp_path)
    return tmp_path / "model"


def refuses(path, expected):
    with pytest.raises(neuroshard.export.ExportError, match=expected) as caught:
        neuroshard.load_export(path)
    return str(caught.value)


def nothing_is_read(monkeypatch):
    def fail(*_):
        raise AssertionError("a damaged file was read")

    monkeypatch.setattr(loading, "read_program", fail)


def test_whole(model):
    assert neuroshard.load_export(model).flatten((IDS, 2), {})


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_files(ending, model, saved, monkeypatch):
    nothing_is_read(monkeypatch)
    place = checksums.place_of(model, ending)
    whole, chooser = place.read_bytes(), random.Random(f"{matrix.seed()} {ending}")
    expected = f"{place.name}\" (is damaged|is not what)|cannot read \".*{place.name}|found 'None'"
    for _ in range(12):
        kind, at = chooser.randrange(3), chooser.randrange(len(whole))
        if kind == 0:
            damaged = whole[:at]
        elif kind == 1:
            damaged = whole[:at] + bytes([whole[at] ^ 1 << chooser.randrange(8)]) + whole[at + 1:]
        else:
            damaged = whole[:at] + bytes([64]) * chooser.randrange(1, 99) + whole[at:]
        place.write_bytes(damaged)
        same = ending == "json" and _json(damaged) == _json(whole)
        if not same:
            refuses(model, expected + "|expected a file of the version")
    place.unlink()
    refuses(model, "there is no \".*model.json\"; expected the path that save" if ending == "json"
            else f"cannot read \".*{place.name}\", which \"model.json\" names: No such file")
    place.mkdir()
    refuses(model, "cannot read ")
    place.rmdir()
    if ending != "json":
        shutil.copy(saved / f"other.{ending}", place)
        same = place.read_bytes() == whole
        assert same or refuses(model, f"{place.name}\" is damaged, or of another export than "
                                      "\"model.json\"")


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.mark.parametrize("path", ["", ".", "/", "..", "missing/model", "model.json"])
def test_paths(path, model, monkeypatch):
    monkeypatch.chdir(model.parent)
    refuses(path, "a path whose last part names the files|there is no .*without an ending")


@pytest.mark.parametrize("schema", ["neuroshard.export.v1", "neuroshard.export.v3", None, 2])
def test_other_versions(schema, model):
    rewrite(model, lambda record: record.update(schema=schema))
    refuses(model, f"model.json\": expected a file of the version \"neuroshard.export.v2\", found "
                   f"'{schema}'; save the model again")


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, "\"x\"", "{\"schema\": {}}"],
                         ids=range(7))
def test_no_records(text, model):
    checksums.place_of(model, "json").write_text(text)
    refuses(model, "cannot read .*model.json|expected a file of the version")


def rewrite(model, change):
    """path.json with changed contents and a matching checksum."""
    place = checksums.place_of(model, "json")
    record = json.loads(place.read_text())
    del record["checksum"]
    change(record)
    place.write_text(checksums.record_text(record, {}))


def paths_in(value, path=()):
    """The places of all values in a record."""
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, one in items:
        yield (*path, key)
        yield from paths_in(one, (*path, key))


def change_at(record, path, chooser):
    *way, last = path
    for key in way:
        record = record[key]
    if chooser.random() < 0.3:
        del record[last]
    else:
        others = [None, -1, 10**6, "x", [], {}, [["x"]], True, 0.5, "[1, {}]"]
        record[last] = chooser.choice([one for one in others if one != record[last]])


def test_records_that_say_something_else(model):
    """A changed record raises an ExportError or loads; nothing else happens."""
    place = checksums.place_of(model, "json")
    record = json.loads(place.read_text())
    del record["checksum"]
    places = list(paths_in(record))
    chooser = random.Random(f"records {matrix.seed()}")
    count, refused = 1000 if os.environ.get("NEUROSHARD_ALL") else 40, 0
    for _ in range(count):
        changed = copy.deepcopy(record)
        change_at(changed, chooser.choice(places), chooser)
        place.write_text(checksums.record_text(changed, {}))
        try:
            loaded = neuroshard.load_export(model)
        except neuroshard.export.ExportError:
            refused += 1
            continue
        try:
            loaded.flatten((IDS, 2), {})
        except neuroshard.export.ExportError:
            pass
    assert refused > count / 2


@pytest.mark.parametrize("count", [2**53, 3, -1, "x", None])
def test_other_numbers_of_results(count, model):
    rewrite(model, lambda record: record["ids"].update(results=count))
    with pytest.raises(neuroshard.export.ExportError, match="results|not iterable") as caught:
        neuroshard.load_export(model)
    assert not isinstance(caught.value.__cause__, MemoryError)


@pytest.mark.parametrize("change, expected", [
    (lambda state: state.update({"head.bias": torch.ones(2)}),
     r'model.safetensors": expected "head.bias" as \(1,\) of torch.float32, found \(2,\)'),
    (lambda state: state.update({"table.weight": torch.ones(ROWS, DIM).half()}),
     r'expected "table.weight" as \(20, 4\) of torch.float32, found \(20, 4\) of torch.float16'),
    (lambda state: state.pop("head.bias"), 'expected the tensors .*; "head.bias" is in one'),
    (lambda state: state.update(more=torch.ones(2)), '"more" is in one of them alone')],
    ids=["shape", "type", "missing", "more"])
def test_other_weights(change, expected, model):
    place = checksums.place_of(model, "safetensors")
    state = load_file(place)
    change(state)
    save_file(state, place)
    rewrite(model, lambda record: record["files"].update(safetensors=checksums.digest(place)))
    refuses(model, expected)


def test_an_older_file_of_weights_is_not_read(model):
    neuroshard.load_export(model).save(model)
    assert checksums.place_of(model, "safetensors").exists()
    assert all(one.is_meta for one in neuroshard.load_export(model).state.values())


def test_operators_that_nothing_defines(model):
    rewrite(model, lambda record: record.update(operators=["nowhere.twice.default"]))
    refuses(model, "the model calls nowhere.twice.default, which nothing here defines; import the")
    rewrite(model, lambda record: record.update(operators=["fbgemm.nothing.default"]))
    refuses(model, "the model calls fbgemm.nothing.default, which nothing here defines")


class Unnamed(typing.NamedTuple):
    ids: torch.Tensor


class Named(typing.NamedTuple):
    ids: torch.Tensor


@dataclasses.dataclass
class Plain:
    ids: torch.Tensor


torch.export.register_dataclass(Plain)
pytree._register_namedtuple(Named, serialized_type_name="test_export_load_errors.Named")


@pytest.mark.parametrize("function, arguments, expected", [
    (lambda m, a: m.table(a.ids), (Unnamed(IDS),), "arguments cannot be .*Unnamed.*; expected tup"),
    (lambda m, a: m.table(a.ids), (Plain(IDS),), "arguments cannot be .*Plain.*; expected tuples"),
    (lambda m, a: Unnamed(m.table(a)), (IDS,), "results cannot .*Unnamed.*registered under a name"),
    (lambda m, a: {("a", 1): m.table(a)}, (IDS,), r"results cannot .*would be read as .*\['a', 1"),
], ids=["namedtuple", "dataclass", "result", "key"])
def test_types_that_no_file_can_hold(function, arguments, expected, tmp_path):
    exported = neuroshard.export(Of(function).eval(), arguments)
    with pytest.raises(neuroshard.export.ExportError, match=f"the {expected}"):
        exported.save(tmp_path / "model", weights=True)
    assert not list(tmp_path.iterdir())


def test_types_that_are_not_here(tmp_path, monkeypatch):
    neuroshard.export(Of(lambda m, a: m.table(a.ids)).eval(), (Named(IDS),)).save(tmp_path / "m")
    monkeypatch.delitem(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE, "test_export_load_errors.Named")
    pytree.treespec_loads.cache_clear()
    refuses(tmp_path / "m", "arguments cannot be made here: .*test_export_load_errors.Named.*; "
                            "register their dataclasses and namedtuples under the names")
