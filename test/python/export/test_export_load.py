"""A saved and loaded export gives the same bits as before: in a process without the model's code,
and for every form of a model, program by program."""

import os
import pathlib
import subprocess
import sys

import neuroshard
import pytest
import test_export_forms
import test_export_sizes
import test_export_torchrec
import test_export_traces
import torch
from export_cases import case
from export_runs import assert_equal, assert_same_bits, assert_same_parts, hand_made_plan
from support import matrix
from test_export import LINALG, NAMES
from torch.utils import _pytree as pytree

WORKER = pathlib.Path(__file__).with_name("export_load_worker.py")
PACKAGE = pathlib.Path(neuroshard.__file__).parents[1]
CASES = matrix.sample([*((name, "external") for name in NAMES),
                       *((name, "torch-mlir") for name in LINALG)], 2, "export load")


def write_calls(number, folder):
    """Saves an export with arguments for another process, and the results here and in eager
    mode."""
    name, dense = CASES[number]
    generator = torch.Generator().manual_seed(matrix.seed() * 100 + number)
    model, batch = case(name)
    exported = neuroshard.export(model, batch(4, generator), dense=dense,
                                 optimizer="rowwise_adagrad")
    weights = bool((number + matrix.seed()) % 2)
    exported.save(folder / "model", weights=weights)
    plan = hand_made_plan(exported, 1 + (number + matrix.seed()) % 3, f"load {name}")
    plan.save(str(folder / "plan.json"))
    batches = [batch(size, generator) for size in (8, 5, 1)]
    flat = [pytree.tree_flatten(one) for one in batches]
    torch.save({"state": None if weights else dict(model.state_dict()),
                "calls": [(pytree.treespec_dumps(spec), leaves) for leaves, spec in flat]},
               folder / "calls.pt")
    with exported.open(plan=plan) as program, torch.no_grad():
        return exported, [program(*one) for one in batches], [model(*one) for one in batches]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The results of each case here; its folder has the results of the other process."""
    folders = [tmp_path_factory.mktemp(f"case{number}") for number in range(len(CASES))]
    here = [write_calls(number, folder) for number, folder in enumerate(folders)]
    done = subprocess.run([sys.executable, WORKER, *folders], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert done.returncode == 0, done.stderr
    return list(zip(folders, here))


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: "-".join(CASES[number]))
def test_in_another_process(number, elsewhere):
    folder, (exported, results, eager) = elsewhere[number]
    exported.problem("2xCPU", batch=64).save(str(folder / "expected.json"))
    assert (folder / "problem.json").read_text() == (folder / "expected.json").read_text()
    made = torch.load(folder / "made.pt", weights_only=True)
    for (tree, leaves), expected, by_torch in zip(made, results, eager, strict=True):
        got = pytree.tree_unflatten(leaves, pytree.treespec_loads(tree))
        assert_same_bits(got, expected)
        assert_equal(got, by_torch)


def forms():
    """label: (model, batch function, options) for every form that other tests export."""
    made = {}
    for name, (rows, table, batch, _) in test_export_forms.FORMS.items():
        made[f"form {name}"] = test_export_forms.Form(rows, table), batch, {}
    for name, (function, example, calls) in test_export_sizes.CASES.items():
        made[f"size {name}"] = test_export_sizes.Of(function), [example, *calls], {}
    for function in test_export_traces.WRITES:
        made[function.__name__] = test_export_traces.Of(function), test_export_traces.ids, {}
    for function in (test_export_traces.asserted_ids, test_export_traces.checked_rows):
        made[function.__name__] = test_export_traces.Of(function), [
            (torch.arange(8),), (torch.arange(12),)], {}
    for kind, (batch, *_) in test_export_torchrec.CASES.items():
        made[f"torchrec {kind.__name__}"] = kind(), batch, {}
    made["dense table"] = (test_export_forms.Positions(), test_export_forms.rows_of_ids,
                           {"dense_tables": ["places"]})
    made["static"] = (test_export_forms.Shared(), test_export_forms.rows_of_ids,
                      {"dynamic_batch": False})
    for dtype in (torch.float16, torch.bfloat16):
        made[str(dtype)] = (test_export_forms.Form(
            lambda table, *ids: table(*ids).float(), test_export_forms.bag(mode="sum").to(dtype)),
            test_export_forms.rows_of_ids, {})
    return made


FORMS = forms()


@pytest.mark.parametrize("name", matrix.sample(FORMS, 8, "export load forms"))
def test_form(name, generator, tmp_path):
    model, batch, options = FORMS[name]
    calls = batch if isinstance(batch, list) else [batch(size, generator) for size in (4, 7, 1)]
    exported = neuroshard.export(model.eval(), calls[0], **options)
    exported.save(tmp_path / "model", weights=True)
    assert_same_parts(exported, neuroshard.load_export(tmp_path / "model"), calls)
