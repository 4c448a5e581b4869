"""From a module of PyTorch to an exported program."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import torch

from neuroshard.export._exported import Exported
from neuroshard.export._graph.dense import lower_dense, make_dense, split_inputs
from neuroshard.export._graph.embeddings import Found, Tables, find_lookups, is_embedding
from neuroshard.export._graph.features import Features, check_dynamic
from neuroshard.export._graph.split import extract, shape_of_rows
from neuroshard.export._graph.text import ModuleText
from neuroshard.export._options import require_batch, require_names
from neuroshard.export._run.ids import batch_of, make_jagged, mean_pooling
from neuroshard.export._signature import Dense, Ids, Lookup
from neuroshard.export._trace.arguments import Arguments
from neuroshard.export._trace.locations import location
from neuroshard.export._trace.trace import trace
from neuroshard.export.errors import ExportError
from neuroshard.tables import Optimizer


def export(model: torch.nn.Module, args: Sequence, kwargs: Mapping | None = None, *,
           dynamic_batch: bool = True, dense: Literal["external", "torch-mlir"] = "external",
           optimizer: Optimizer | str | Mapping[str, Optimizer | str] | None = None,
           batch: int | None = None, dense_tables: Collection[str] = ()) -> Exported:
    """Traces model(*args, **kwargs) and takes its embeddings out as lookups of tables.

    args, kwargs: example inputs; plans assume as many ids per sample as they have. dynamic_batch:
    whether the program takes any number of samples. dense: the rest of the model: "external" leaves
    it to torch, "torch-mlir" compiles it with the lookups. optimizer: for all tables whose
    parameters need gradients, or by table. batch: samples over all devices, for plans; None: those
    of the example. dense_tables: embeddings, by table or parameter, that stay in the dense part.
    Raises an ExportError for what cannot be exported."""
    if dense not in ("external", "torch-mlir"):
        raise ValueError(f"dense: expected \"external\" or \"torch-mlir\", found {dense!r}")
    if isinstance(args, torch.Tensor) or not isinstance(args, Sequence):
        raise TypeError(f"args: expected a tuple of example inputs, found {type(args).__name__}")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError("kwargs: expected example inputs by name, found "
                        f"{type(kwargs).__name__}")
    if batch is not None:
        require_batch(batch)
    require_names("dense_tables", dense_tables)
    program, sizes = trace(model, args, kwargs or {}, dynamic_batch)
    state = {**dict(model.named_parameters(remove_duplicate=False)),
             **dict(model.named_buffers(remove_duplicate=False)), **program.constants}
    tables = Tables(program, state, dense_tables)
    found = find_lookups(tables)
    if dynamic_batch:
        check_dynamic(found)
    rest = make_dense(program, found)
    features = Features(found, [one.name for one in [*rest.inputs, *rest.parameters]])
    arguments = Arguments.of(program, sizes)
    ids = _ids(program, features, found)
    with torch.no_grad():
        made = ids.module(*(arguments.example[name] for name in ids.inputs),
                          *(state[one.parameter] for one in ids.parameters))
        jagged = [make_jagged(one, made) for one in features.inputs]
    samples = batch or batch_of(jagged[0], features.inputs[0])
    if not samples:
        raise ExportError("the example inputs have no samples, for which nothing can be planned; "
                          "expected a typical batch, or batch=")
    lookups = [_lookup(one, place, tables) for one, place in zip(found, features.places)]
    if dense == "torch-mlir":
        rest.linalg = lower_dense(rest, lookups, features.inputs, jagged, arguments, state)
    text = ModuleText(
        type(model).__name__, samples,
        list(tables.tables.values()), _optimizers(tables, optimizer), features.inputs, lookups,
        mean_pooling(features.inputs, jagged), rest)
    return Exported(text, ids, arguments, state, _counts(tables, found, ids, rest))


def _ids(program: torch.export.ExportedProgram, features: Features,
         found: Sequence[Found]) -> Ids:
    module, names = extract(program, features.results, [one.node for one in found])
    return Ids(module, *split_inputs(program, names))


def _lookup(one: Found, place: tuple[int, str], tables: Tables) -> Lookup:
    table = tables.tables[one.table]
    return Lookup(one.table, one.pooling, *place, one.weights is not None, one.padding_idx,
                  shape_of_rows(one), table.type, location(one.call, f"{one.table}[{place[1]}]"))


def _optimizers(tables: Tables, given: object) -> dict[str, Optimizer]:
    """The optimizer of each table that is trained."""
    named = dict(given) if isinstance(given, Mapping) else None
    if named is not None and (unknown := sorted(set(named) - set(tables.tables))):
        raise ValueError(f"optimizer: there is no table \"{unknown[0]}\"; expected some of "
                         f"{list(tables.tables)}")
    chosen = {}
    for name, table in tables.tables.items():
        one = named.get(name) if named is not None else given
        if one is not None and table.trained:
            chosen[name] = one if isinstance(one, Optimizer) else Optimizer(one)
    return chosen


def _counts(tables: Tables, found: Sequence[Found], ids: Ids, dense: Dense) -> dict[str, int]:
    """The number of tables and lookups, and of embeddings that dense_tables left to torch."""
    left = [node for module in (ids.module, dense.module) for node in module.graph.nodes
            if node.op == "call_function" and is_embedding(str(node.target))]
    return {"neuroshard.table": len(tables.tables), "neuroshard.lookup": len(found),
            "embeddings left to torch": len(left)}
