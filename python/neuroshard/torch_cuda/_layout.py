"""Inputs and results of a device program, from its manifest, and the tensors that results are
written into."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import torch

from neuroshard import cuda
from neuroshard._dtypes import DTYPES, ID_DTYPES
from neuroshard._row_layout import ALIGNMENT, padded
from neuroshard.errors import TensorError


@dataclass(frozen=True)
class Exchange:
    """A jagged input. key: the compiler's name for it. name: its features, for messages.
    weighted: whether some lookup reads its sample weights."""

    key: str
    name: str
    features: tuple[str, ...]
    id_dtype: torch.dtype
    weighted: bool
    unpooled: bool  # some lookup gives a row per id


@dataclass(frozen=True)
class Result:
    """The result of one lookup of the model: columns [column, column + dim) of a group. dtype: the
    type that kernels write. final: the type in the model."""

    name: str
    exchange: int
    feature: int
    pooled: bool
    weighted: bool
    dtype: torch.dtype
    final: torch.dtype
    dim: int
    group: int = 0
    column: int = 0


@dataclass(frozen=True)
class Group:
    """Results of one type side by side in one tensor. stride: columns with padding."""

    results: tuple[Result, ...]
    columns: int
    stride: int

    @property
    def first(self) -> Result:
        return self.results[0]


@dataclass(frozen=True)
class ShardColumns:
    """The columns of a result that one shard computes. There is one for each lookup of the
    device, in their order."""

    result: Result
    column: int  # of the group
    width: int


@dataclass(frozen=True)
class Layout:
    """The inputs and results of a device program."""

    exchanges: tuple[Exchange, ...]
    results: tuple[Result, ...]
    groups: tuple[Group, ...]
    shard_columns: tuple[ShardColumns, ...]

    def needs_feature_begin(self, exchange: int) -> bool:
        """Whether the host must know how many ids each feature of a ragged input has."""
        spec = self.exchanges[exchange]
        return spec.unpooled and len(spec.features) > 1


def make_layout(manifest: dict, lookups: list[cuda.Lookup], concatenate: bool) -> Layout:
    """lookups: of the device. concatenate: all results side by side in one tensor, else a
    tensor for each."""
    exchanges = tuple(make_exchange(spec) for spec in manifest["exchanges"])
    results = make_results(manifest, lookups)
    if concatenate:
        check_alike(list(results.values()))
    results = place_results(results, concatenate)
    shard_columns, binding = [], manifest["bindings"][0]
    for (exchange, lookup, slot), native in zip(binding["lookups"], lookups, strict=True):
        cols, result = manifest["shards"][binding["slots"][slot]]["cols"], results[exchange, lookup]
        if native.dim != cols[1] - cols[0] or native.exchange != exchange:
            raise TensorError("the manifest is not that of the program; compile the artifact again")
        shard_columns.append(ShardColumns(result, result.column + cols[0], cols[1] - cols[0]))
    ordered = tuple(results.values())
    return Layout(exchanges, ordered, make_groups(ordered, shard_columns), tuple(shard_columns))


def make_exchange(spec: dict) -> Exchange:
    features = tuple(spec["features"])
    return Exchange(spec["input"], name_of(features), features, ID_DTYPES[spec["id_type"]],
                    any(lookup["weighted"] for lookup in spec["lookups"]),
                    any(lookup["pooling"] == "none" for lookup in spec["lookups"]))


def name_of(features: tuple[str, ...]) -> str:
    """All features, or the first and the last."""
    if len(features) <= 4:
        return ", ".join(features)
    return f"{features[0]}, ..., {features[-1]} ({len(features)} features)"


def make_results(manifest: dict, lookups: list[cuda.Lookup]) -> dict[tuple[int, int], Result]:
    """The results by number of exchange and lookup, without group and column."""
    found, bound = {}, manifest["bindings"][0]["lookups"]
    written = {(exchange, lookup): cuda.ELEMENT_TYPES[native.output_type]
               for (exchange, lookup, _), native in zip(bound, lookups)}
    for number, exchange in enumerate(manifest["exchanges"]):
        for index, lookup in enumerate(exchange["lookups"]):
            found[number, index] = (exchange["features"][lookup["feature"]],
                                    manifest["tables"][lookup["table"]], lookup)
    names = unique_names([(feature, table["name"]) for feature, table, _ in found.values()])
    return {key: Result(name, key[0], lookup["feature"], lookup["pooling"] != "none",
                        lookup["weighted"], DTYPES[written[key]], DTYPES[lookup["result_type"]],
                        table["dim"])
            for (key, (_, table, lookup)), name in zip(found.items(), names)}


def unique_names(lookups: list[tuple[str, str]]) -> list[str]:
    """The feature; feature@table where several lookups read it; with #1, #2, ... where they read
    one table."""
    features, both, seen = Counter(f for f, _ in lookups), Counter(lookups), Counter()
    names = []
    for feature, table in lookups:
        name = feature if features[feature] == 1 else f"{feature}@{table}"
        if both[feature, table] > 1:
            seen[feature, table] += 1
            name = f"{name}#{seen[feature, table]}"
        names.append(name)
    return names


def check_alike(results: list[Result]) -> None:
    """Raises unless the results can lie side by side in one tensor."""
    for result in results:
        if not result.pooled:
            raise TensorError(f"concatenate: \"{result.name}\" is not pooled, so it has no row per "
                              "sample")
        if (result.dtype, result.final) != (results[0].dtype, results[0].final):
            raise TensorError(f"concatenate: \"{result.name}\" is {result.final}, "
                              f"\"{results[0].name}\" {results[0].final}; one tensor has one type")


def place_results(results: dict, concatenate: bool) -> dict:
    placed, column = {}, 0
    for number, (key, result) in enumerate(results.items()):
        group, begin = (0, column) if concatenate else (number, 0)
        placed[key] = Result(**{**result.__dict__, "group": group, "column": begin})
        column += result.dim
    return placed


def make_groups(results: tuple[Result, ...],
                shard_columns: list[ShardColumns]) -> tuple[Group, ...]:
    groups = []
    for number in range(max((result.group for result in results), default=-1) + 1):
        members = tuple(result for result in results if result.group == number)
        columns, bytes_ = sum(m.dim for m in members), members[0].dtype.itemsize
        aligned = [one for one in shard_columns if one.result.group == number
                   and is_aligned(one, bytes_)]
        stride = padded(columns, bytes_) if aligned else columns
        groups.append(Group(members, columns, stride))
    return tuple(groups)


def is_aligned(columns: ShardColumns, element_bytes: int) -> bool:
    """Whether kernels store these columns 16 bytes at a time. Raises where such columns, or their
    gradients, do not begin at a multiple of 16 bytes."""
    stores = columns.width * element_bytes % ALIGNMENT == 0
    # Gradients are f32 in any case.
    for aligned, bytes_ in ((stores, element_bytes), (columns.width % 4 == 0, 4)):
        if aligned and columns.column * bytes_ % ALIGNMENT != 0:
            raise TensorError(
                f"\"{columns.result.name}\" with {columns.width} columns would begin at column "
                f"{columns.column} of a {columns.result.dtype} tensor, not a multiple of "
                f"{ALIGNMENT} bytes; use concatenate=False, or dims that are multiples of 8")
    return stores
