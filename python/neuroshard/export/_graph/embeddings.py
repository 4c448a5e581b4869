"""Finds the lookups of tables in a traced graph, and refuses what cannot be one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch.export.graph_signature import InputKind
from torch.fx import Node

from neuroshard._artifact.dtypes import ELEMENT_TYPES, ID_DTYPES
from neuroshard.export._options import require_symbol
from neuroshard.export._signature import Table
from neuroshard.export._trace.locations import describe
from neuroshard.export._trace.sizes import size_of
from neuroshard.export.errors import ExportError

ID_TYPES = {dtype: name for name, dtype in ID_DTYPES.items()}
_BAGS = ("aten.embedding_bag.padding_idx", "aten.embedding_bag.default",
         "aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
_MODES = ("sum", "mean", "max")
_OTHERS = re.compile(r"dense|forward|plan|cluster|embeddings_\w+|(exchange|program)\d+")


@dataclass(frozen=True)
class Found:
    """A lookup in the graph. call: the node that reads the table. node: the node of its rows. keys:
    those of a KeyedJaggedTensor, of which it reads number `key`."""

    call: Node
    node: Node
    table: str
    pooling: str
    kind: str
    ids: Node
    offsets: Node | None = None
    weights: Node | None = None
    padding_idx: int | None = None
    keys: tuple[str, ...] = ()
    key: int = 0


def batch_size(one: Found) -> object:
    """The number of samples that a lookup reads, or its symbol. None for unpooled lookups in a
    KeyedJaggedTensor, whose rows do not show it."""
    if one.kind == "keyed" and one.pooling == "unpooled":
        return None
    return size_of((one.ids if one.kind == "rows" else one.node).meta["val"].shape[0])


class Tables:
    """The tables of a program, found by the inputs that have their weights."""

    def __init__(self, program: torch.export.ExportedProgram, state: Mapping[str, torch.Tensor],
                 dense: Collection[str]) -> None:
        """state: the model's own tensors by name. dense: tables that are to stay with torch."""
        self.program, self.state = program, state
        known = {*state, *map(table_name, state)}
        if unknown := sorted(set(dense) - known):
            raise ExportError(f"dense_tables: the model has no parameter \"{unknown[0]}\"")
        self.parameters = {spec.arg.name: spec.target
                           for spec in program.graph_signature.input_specs
                           if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER)}
        self.first: dict[object, str] = {}  # by memory: modules may share a parameter
        for name, values in state.items():
            self.first.setdefault(_memory(values), name)
        # By memory, as a table may have several names.
        self.kept = {_memory(values) for name, values in state.items()
                     if name in dense or table_name(name) in dense}
        self.tables: dict[str, Table] = {}

    def is_kept(self, weight: object) -> bool:
        """Whether dense_tables keeps it a parameter of the dense part."""
        if not isinstance(weight, Node) or weight.name not in self.parameters:
            return False
        return _memory(self.state[self.parameters[weight.name]]) in self.kept

    def add(self, weight: object, reader: Node) -> str:
        """The name of the table whose weights are this node."""
        if not isinstance(weight, Node) or weight.name not in self.parameters:
            raise ExportError(f"{describe(reader)}: its table is computed in the model; expected "
                              "a parameter or a buffer")
        name, target = self.name_of(weight), self._first(weight)
        other = self.tables.setdefault(name, self._describe(name, target, reader)).parameter
        if other != target:
            raise ExportError(f"the parameters \"{other}\" and \"{target}\" would both be the "
                              f"table \"{name}\"; rename one")
        return name

    def _describe(self, name: str, target: str, reader: Node) -> Table:
        require_symbol("table", name)
        values = self.state[target]
        if values.dtype not in ELEMENT_TYPES:
            raise ExportError(f"table \"{name}\" read by {describe(reader)} is of type "
                              f"{values.dtype}; expected f32, f16 or bf16")
        return Table(name, target, *values.shape, ELEMENT_TYPES[values.dtype], values.requires_grad)

    def name_of(self, parameter: Node) -> str | None:
        """Parameters on the same memory have the name of the first."""
        return table_name(self._first(parameter)) if parameter.name in self.parameters else None

    def _first(self, parameter: Node) -> str:
        target = self.parameters[parameter.name]
        return self.first[_memory(self.state[target])]


def _memory(values: torch.Tensor) -> object:
    if not values.numel() or values.is_meta:
        return id(values)
    return values.data_ptr(), values.shape, values.stride(), values.dtype


def table_name(parameter: str) -> str:
    """The parameter's name without ".weight"; with "table." before it where it would clash with
    another symbol of the module."""
    name = parameter.removesuffix(".weight")
    return f"table.{name}" if _OTHERS.fullmatch(name) else name


def find_lookups(tables: Tables) -> list[Found]:
    """The lookups in the order of the graph. Raises if anything else reads a table."""
    found = []
    for node in tables.program.graph.nodes:
        target = str(node.target)
        if node.op != "call_function" or not is_embedding(target):
            continue
        if not tables.is_kept(node.args[0]):
            found.append(_lookup_of(node, target, tables))
    if not found:
        raise ExportError(
            "the model has no embedding to take out; expected nn.EmbeddingBag, nn.Embedding, their "
            "functions on a parameter, or an EmbeddingBagCollection or EmbeddingCollection")
    _check_readers(tables, found)
    return found


def is_embedding(target: str) -> bool:
    """Whether an operator of this name looks rows up."""
    return "embedding" in target or target == "neuroshard_export.lookup.default"


def _lookup_of(node: Node, target: str, tables: Tables) -> Found:
    if target == "aten.embedding.default":
        return _of_embedding(node, tables)
    if target in _BAGS:
        return _of_bag(node, tables)
    if target == "neuroshard_export.lookup.default":
        return _of_collection(node, tables)
    if "renorm" in target:
        raise ExportError(f"{describe(node)}: max_norm changes the table while it is read, which a "
                          "sharded table cannot; expected max_norm=None")
    raise ExportError(f"{describe(node)}: {target} cannot be exported; expected nn.EmbeddingBag "
                      "(sum or mean), nn.Embedding or a collection of TorchRec")


def _argument(node: Node, position: int, name: str, default: object) -> object:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _of_collection(node: Node, tables: Tables) -> Found:
    weight, values, lengths, weights, keys, key, pooling = node.args
    _require_mode(node, pooling, "sum", "mean", "unpooled")
    for one in keys:
        require_symbol("feature", one)
    _require_ids(node, values)
    return Found(node, node, tables.add(weight, node), pooling, "keyed", values, lengths,
                 weights, keys=tuple(keys), key=key)


def _of_embedding(node: Node, tables: Tables) -> Found:
    weight, ids = node.args[:2]
    _refuse_frequency(node, _argument(node, 3, "scale_grad_by_freq", False))
    _require_ids(node, ids)
    padding = _argument(node, 2, "padding_idx", -1)
    if ids.meta["val"].dim() == 0:
        raise ExportError(f"{describe(node)}: expected ids [batch, ...], found a single one")
    if 0 in map(size_of, ids.meta["val"].shape[1:]):
        raise ExportError(f"{describe(node)}: expected ids [batch, ...] of every sample, found "
                          f"{list(ids.meta['val'].shape)}, which has none")
    return Found(node, node, tables.add(weight, node), "unpooled", "rows", ids,
                 padding_idx=None if padding < 0 else padding)


def _of_bag(node: Node, tables: Tables) -> Found:
    weight, ids, offsets = node.args[:3]
    _refuse_frequency(node, _argument(node, 3, "scale_grad_by_freq", False))
    pooling = _MODES[_argument(node, 4, "mode", 0)]
    _require_mode(node, pooling, "sum", "mean")
    _require_ids(node, ids)
    rows = None
    for user in node.users:
        if user.args[1:] == (0,):
            rows = user
        elif user.users:
            raise ExportError(f"{describe(node)}: its second results are read; expected only "
                              "the rows")
    padding = _argument(node, 8, "padding_idx", None)
    return Found(node, rows or node, tables.add(weight, node), pooling,
                 "closed bags" if _argument(node, 7, "include_last_offset", False) else "bags",
                 ids, offsets, _argument(node, 6, "per_sample_weights", None),
                 None if padding is None or padding < 0 else padding)


def _refuse_frequency(node: Node, asked: bool) -> None:
    if asked:
        raise ExportError(f"{describe(node)}: scale_grad_by_freq cannot be exported; expected "
                          "False")


def _require_mode(node: Node, found: str, *expected: str) -> None:
    if found not in expected:
        raise ExportError(f"{describe(node)}: mode \"{found}\" cannot be exported; expected "
                          + " or ".join(f'"{one}"' for one in expected))


def _require_ids(node: Node, ids: Node) -> None:
    found = ids.meta["val"].dtype
    if found not in ID_TYPES:
        raise ExportError(f"{describe(node)}: ids are of type {found}; expected int64 or int32")


def _check_readers(tables: Tables, found: list[Found]) -> None:
    """Raises if anything but lookups reads a table."""
    lookups = {one.call for one in found}
    for node in tables.program.graph.nodes:
        name = tables.name_of(node) if node.op == "placeholder" else None
        if name not in tables.tables:
            continue
        for user in node.users:
            if user not in lookups:
                raise ExportError(
                    f"table \"{name}\" is read by {describe(user)}, too, which is "
                    f"{user.target}; a table may be read by lookups alone. dense_tables="
                    f"[\"{name}\"] leaves all of it to torch")
