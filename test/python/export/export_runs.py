"""Runs exported models and compares them with the modules they were exported from."""

import random

import neuroshard as ns
import torch
from neuroshard.export._run.ids import zero_rows
from support import plans
from torch.utils import _pytree as pytree


def hand_made_plan(exported, devices, seed, kinds=plans.KINDS):
    """A plan that cuts every table differently, at random places."""
    chooser = random.Random(f"export {seed}")
    kinds = [kind for kind in kinds if devices > 1 or kind != "replicated"]
    start = chooser.randrange(len(kinds))
    shards = []
    for number, table in enumerate(exported.tables):
        shards += plans.cut_table(table, kinds[(start + number) % len(kinds)], range(devices),
                                  devices, chooser)
    return ns.Plan(device_count=devices, shards=[
        ns.Shard(table=one.table, rows=one.rows, cols=one.cols, devices=one.devices)
        for one in shards])


def assert_equal(got, expected):
    got, built = pytree.tree_flatten(got)
    expected, wanted = pytree.tree_flatten(expected)
    assert built == wanted
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def compare(model, exported, batches, devices=1, plan=None):
    """The program on that many devices gives what the module gives."""
    with exported.open(devices=devices, plan=plan) as program, torch.no_grad():
        for arguments in batches:
            assert_equal(program(*arguments), model(*arguments))


def lookups_in(exported):
    """Lines of the IR that look rows up."""
    return [line for line in exported.mlir.splitlines() if "= neuroshard.lookup" in line]


def embeddings_left(exported):
    """Operators that look rows up and were left to torch, counted in the graphs themselves."""
    return [node for module in (exported.dense.module, exported.ids.module)
            for node in module.graph.nodes
            if "embedding" in str(node.target) or "neuroshard_export" in str(node.target)]


def assert_same_bits(got, expected):
    got, built = pytree.tree_flatten(got)
    expected, wanted = pytree.tree_flatten(expected)
    assert built == wanted
    for one, other in zip(got, expected, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        else:
            assert type(one) is type(other) and repr(one) == repr(other)


def assert_same_parts(one, other, calls):
    """Two exports are equal: their descriptions, and what their programs of torch compute for
    calls, each a tuple of arguments; also their errors."""
    assert other.mlir == one.mlir
    assert other.conditions == one.conditions and other.counts == one.counts
    assert_same_bits(dict(other.example()), dict(one.example()))
    assert_same_bits(other.example_rows(), one.example_rows())
    for arguments in calls:
        assert_same_bits(run_parts(other, arguments), run_parts(one, arguments))


def run_parts(exported, arguments, **named):
    """The results of the programs of torch for random rows; or the error."""
    try:
        values = exported.flatten(arguments, named)
        jagged = exported.jagged(values)
        generator = torch.Generator().manual_seed(1)
        rows = [torch.randn(one.shape, generator=generator).to(one.dtype).flatten(0, -2)
                for one in zero_rows(exported.lookups, exported.inputs, jagged)]
        with torch.no_grad():
            return list(jagged), exported.unflatten(exported.run_dense(rows, values))
    except ns.export.ExportError as error:
        return str(error)
