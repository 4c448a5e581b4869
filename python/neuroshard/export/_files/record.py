"""Converts an exported model to the values of path.json and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

from neuroshard.export._files.expressions import expression_of_plain, expression_to_plain
from neuroshard.export._files.plain import (number_of_plain, number_to_plain, record_of_plain,
                                            tensor_of_plain, tensor_to_plain)
from neuroshard.export._files.torch_programs import operators_of
from neuroshard.export._graph.text import ModuleText
from neuroshard.export._run.per_sample import why_not_shared
from neuroshard.export._signature import DTYPES, Dense, Ids, Input, Lookup, Table, Value
from neuroshard.export._split_model import SplitModel
from neuroshard.export._trace.arguments import Arguments
from neuroshard.export._trace.sizes import Condition, Size, Sizes
from neuroshard.export._trace.trees import tree_of_text, tree_to_text
from neuroshard.tables import Optimizer

if TYPE_CHECKING:
    from torch.fx import GraphModule


def describe(model: SplitModel, weights: bool) -> dict:
    """Describes everything but weights and graphs. weights: whether another file has them."""
    text, ids, dense = model.text, model.ids, model.dense
    constants = [] if weights else [one for one in model.parameters if one.constant]
    return {
        "name": text.name, "batch": text.batch,
        "tables": [asdict(one) for one in text.tables],
        "optimizers": {name: asdict(one) for name, one in text.optimizers.items()},
        "inputs": [asdict(one) for one in text.inputs],
        "lookups": [asdict(one) for one in text.lookups],
        "mean_pooling": [[*key, mean] for key, mean in text.mean_pooling.items()],
        "ids": {"arguments": ids.inputs, "parameters": [asdict(one) for one in ids.parameters],
                "results": len(ids.module.graph.output_node().args[0])},
        "dense": {
            "rows": len(text.lookups), "arguments": [asdict(one) for one in dense.inputs],
            "parameters": [asdict(one) for one in dense.parameters],
            "results": [asdict(one) if isinstance(one, Value) else {"is": number_to_plain(one)}
                        for one in dense.results],
            "linalg": dense.linalg,
            "sharing": why_not_shared(model) if dense.linalg else None},
        "arguments": _arguments_to_plain(model.arguments),
        "sizes": model.conditions, "counts": model.counts,
        "operators": operators_of(ids.module, dense.module),
        "constants": {one.parameter: tensor_to_plain(model.state[one.parameter])
                      for one in constants}}


def _arguments_to_plain(given: Arguments) -> dict:
    return {
        "names": list(given.names), "in": tree_to_text(given.in_spec, "arguments"),
        "out": tree_to_text(given.out_spec, "results"),
        "constants": {name: number_to_plain(one) for name, one in given.constants.items()},
        "example": {name: tensor_to_plain(one) for name, one in given.example.items()
                    if name not in given.constants},
        "sizes": [[one.name, one.position, expression_to_plain(one.of)]
                  for one in given.sizes.sizes],
        "conditions": [[expression_to_plain(one.expression), one.text, one.place]
                       for one in given.sizes.conditions]}


def model_of(record: Mapping, programs: Mapping[str, GraphModule],
             state: Mapping[str, torch.Tensor]) -> SplitModel:
    """The model that describe() described. programs: "ids" and "dense"."""
    dense = dense_of(record, programs["dense"])
    text = ModuleText(
        record["name"], record["batch"], tables_of(record),
        {name: Optimizer(**one) for name, one in record["optimizers"].items()},
        record_of_plain(list[Input], record["inputs"], "inputs"),
        record_of_plain(list[Lookup], record["lookups"], "lookups"),
        {(number, feature): mean for number, feature, mean in record["mean_pooling"]}, dense)
    ids, arguments = ids_of(record, programs["ids"]), _arguments_of(record["arguments"])
    model = SplitModel(text, ids, arguments, state, record["counts"], record["dense"]["sharing"])
    _check(model, record["ids"]["results"])
    return model


def _check(model: SplitModel, made: int) -> None:
    """Raises unless the parts of the record fit each other. made: results of the ids program."""
    given, dense = model.arguments, model.dense
    read = [*model.ids.inputs, *(one.name for one in dense.inputs)]
    if (len(given.names) != given.in_spec.num_leaves
            or len(dense.results) != given.out_spec.num_leaves
            or not set(read) <= set(given.names)):
        raise ValueError(f"arguments {list(given.names)} and {len(dense.results)} results are not "
                         "those of the trees, or of the programs")
    for input_ in model.inputs:
        for one in input_.sources:
            if wrong := {one.ids, one.offsets, one.weights} - {None, *range(made)}:
                raise ValueError(f"input \"{input_.name}\": expected sources below {made}, found "
                                 f"{wrong.pop()}")
    given.check(given.example)


def tables_of(record: Mapping) -> list[Table]:
    return record_of_plain(list[Table], record["tables"], "tables")


def ids_of(record: Mapping, module: GraphModule | None) -> Ids:
    part = record["ids"]
    return Ids(module, record_of_plain(list[str], part["arguments"], "ids.arguments"),
               record_of_plain(list[Value], part["parameters"], "ids.parameters"))


def dense_of(record: Mapping, module: GraphModule | None) -> Dense:
    part = record["dense"]
    values = {name: record_of_plain(list[Value], part[name], f"dense.{name}")
              for name in ("arguments", "parameters")}
    results = [number_of_plain(one["is"]) if "is" in one else
               record_of_plain(Value, one, f"dense.results[{number}]")
               for number, one in enumerate(part["results"])]
    return Dense(module, values["arguments"], values["parameters"], results, part["linalg"])


def _arguments_of(given: Mapping) -> Arguments:
    constants = {name: number_of_plain(one) for name, one in given["constants"].items()}
    example = {name: tensor_of_plain(one) for name, one in given["example"].items()}
    sizes = Sizes([Size(name, position, expression_of_plain(of))
                   for name, position, of in given["sizes"]],
                  [Condition(expression_of_plain(of), text, place)
                   for of, text, place in given["conditions"]])
    return Arguments(tuple(given["names"]), constants, sizes,
                     tree_of_text(given["in"], "arguments"), tree_of_text(given["out"], "results"),
                     {name: example[name] if name in example else constants[name]
                      for name in given["names"]})


def state_shapes(record: Mapping) -> dict[str, torch.Tensor]:
    """The shapes and types of the model's own tensors by name, as tensors on the meta device."""
    shapes = {one.parameter: ((one.rows, one.dim), one.type) for one in tables_of(record)}
    for one in [*ids_of(record, None).parameters, *dense_of(record, None).parameters]:
        shapes[one.parameter] = one.shape, one.type
    return {name: torch.empty(shape, dtype=DTYPES[type_], device="meta")
            for name, (shape, type_) in shapes.items()}


def constants_of(record: Mapping) -> dict[str, torch.Tensor]:
    """The model's own tensors that are in the record."""
    return {name: tensor_of_plain(one) for name, one in record["constants"].items()}
