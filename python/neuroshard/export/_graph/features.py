"""Gathers the ids of all lookups in jagged inputs, and names their features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch.fx import Node

from neuroshard.export._graph.embeddings import ID_TYPES, Found, batch_size
from neuroshard.export._signature import Input, Source
from neuroshard.export._trace.locations import describe
from neuroshard.export._trace.purity import is_random
from neuroshard.export.errors import ExportError


class Features:
    """The features of a model. inputs: the jagged ones. places: by lookup, the number of its input
    and its feature. results: the nodes that sources refer to by number."""

    def __init__(self, found: Sequence[Found], taken: Iterable[str]) -> None:
        """taken: names of other arguments of the program."""
        self._equal = _Equality()
        self._groups: dict[tuple, list[tuple[Source, str]]] = {}
        self._features: dict[tuple, str] = {}
        self._taken: set[str] = set()
        self.results: list[Node] = []
        self._numbers: dict[int, int] = {}
        keys = [self._add(one) for one in found]
        groups = list(self._groups)
        names = self._input_names(groups, set(taken))
        self.inputs = [self._input(group, name) for group, name in zip(groups, names)]
        self.places = [(groups.index(group), feature) for group, feature in keys]

    def _add(self, one: Found) -> tuple[tuple, str]:
        """The group of a lookup and the name of its feature."""
        id_type = ID_TYPES[one.ids.meta["val"].dtype]
        source = Source(one.kind, *map(self._number, (one.ids, one.offsets, one.weights)))
        weighted = one.weights is not None
        if one.kind == "keyed":
            group = ("keyed", source, one.keys, id_type, weighted)
            self._groups.setdefault(group, [(source, "")])
            return group, one.keys[one.key]
        group = ("separate", batch_size(one), id_type, weighted)
        members = self._groups.setdefault(group, [])
        for member, name in members:
            if member == source:
                return group, name
        name = self._unused(_origin(one.ids), self._taken)
        members.append((source, name))
        return group, name

    def _number(self, node: Node | None) -> int | None:
        if node is None:
            return None
        key = self._equal.key(node)
        if key not in self._numbers:
            self._numbers[key] = len(self.results)
            self.results.append(node)
        return self._numbers[key]

    @staticmethod
    def _unused(name: str, taken: set[str]) -> str:
        unique, count = name, 1
        while unique in taken:
            unique, count = f"{name}_{count}", count + 1
        taken.add(unique)
        return unique

    def _input_names(self, groups: Sequence[tuple], taken: set[str]) -> list[str]:
        return [self._unused(_origin(self.results[group[1].ids]).removesuffix("__values")
                             if group[0] == "keyed" else "ids", taken) for group in groups]

    def _input(self, group: tuple, name: str) -> Input:
        members = self._groups[group]
        features = group[2] if group[0] == "keyed" else tuple(name for _, name in members)
        return Input(name, features, group[-2], group[-1], tuple(one for one, _ in members))


class _Equality:
    """Gives nodes that compute the same value the same key, so that a model which takes a column of
    the ids twice has one feature for it."""

    def __init__(self) -> None:
        self._keys: dict[Node, tuple] = {}
        self._numbers: dict[tuple, int] = {}

    def key(self, node: Node) -> int:
        if node not in self._keys:
            if node.op != "call_function" or is_random(node):
                text = (node.op, node.name)
            else:
                text = (str(node.target),
                        repr(torch.fx.node.map_arg(node.args, self._stand_in)),
                        repr(torch.fx.node.map_arg(node.kwargs, self._stand_in)))
            self._keys[node] = self._numbers.setdefault(text, len(self._numbers))
        return self._keys[node]

    def _stand_in(self, node: Node) -> str:
        return f"%{self.key(node)}"


def _origin(node: Node) -> str:
    """The name of the input that ids are made from, after which features are named."""
    while node.op != "placeholder":
        if not node.all_input_nodes:
            return node.name
        node = node.all_input_nodes[0]
    return node.name


def check_dynamic(found: Sequence[Found]) -> None:
    """Raises if a lookup reads a constant number of samples."""
    for one in found:
        batch = batch_size(one)
        if not isinstance(batch, int):
            continue
        if batch < 2:
            raise ExportError(
                f"{describe(one.call)} reads {batch} samples, which torch.export could trace as a "
                "constant alone; give example inputs of two or more samples")
        raise ExportError(
            f"{describe(one.call)} reads {batch} samples whatever the batch is; expected ids "
            "with one bag for each sample. Positions are to be expanded to [batch, ...], or "
            f"dense_tables=[\"{one.table}\"] leaves the table to torch")
