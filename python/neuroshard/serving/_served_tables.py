"""Frozen tables that answer lookups."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

import torch

from neuroshard import _fields
from neuroshard._artifact.manifest import load_manifest
from neuroshard._jagged import Jagged, as_jagged, pick_features, with_offsets, without_unread_weights
from neuroshard._model_names import key_of
from neuroshard.errors import TensorError
from neuroshard.serving._collections import are_by_collection, collections_of, joined, results_by_collection
from neuroshard.serving._library import Batch, LookupInfo, runtime

UNPOOLED = 2


class _Input(NamedTuple):
    """The input of ids, as as_jagged() wants it."""

    name: str
    features: tuple[str, ...]
    unpooled: bool


class _Lookup(NamedTuple):
    name: str  # of its feature
    feature: int
    dim: int
    unpooled: bool
    weighted: bool


def serve(folder: str | os.PathLike) -> ServedTables:
    """Opens the folder that freeze() has written for one device. Reads all weights into memory. Raises a TensorError
    if it is no such folder, or damaged."""
    return ServedTables(folder)


class ServedTables:
    """Answers lookups from frozen tables, on the caller's thread; any number of threads may call it at a time.

    tables(ids) takes what a sharded module takes: a dict by feature, a KeyedJaggedTensor, whose keys may have any order
    and be more, or a Jagged; every feature, and the same batch for each. A feature that several tables read has one
    key in a batch, and a result for each of them, as feature@table. It gives f32 results by feature: [batch, dim], or
    [ids, dim] where the feature is not pooled. The tables of a whole model are called with {path: features}, of all
    collections or of some, which is one lookup, and give {path: results}. Of features with and without weights, a
    dict has them for the former alone; a KeyedJaggedTensor or a Jagged has one for each id, of which the latter read
    none.

    folder: of freeze(). drop_unknown: ids that no row has are left out of their bags instead of raising a
    TensorError."""

    def __init__(self, folder: str | os.PathLike, *, drop_unknown: bool = False) -> None:
        path = _fields.path(folder, "serve: folder")
        if not os.path.isfile(os.path.join(path, "manifest.json")):
            raise TensorError(f"serve: {path}: expected a folder that neuroshard.freeze has written, found "
                              f"{_what_is_at(path)}")
        manifest = load_manifest(path)
        if "weights" not in manifest:
            raise TensorError(f"{path} has no weights; expected a folder that neuroshard.freeze has written")
        if manifest.get("devices") != 1:
            raise TensorError(f"{path} is for {manifest.get('devices')} devices; serve it from as many ranks by "
                              "ns.ShardedEmbeddingBagCollection(plan, problem, artifact=folder)")
        if not isinstance(drop_unknown, bool):
            raise TypeError(f"drop_unknown: expected True or False, found {drop_unknown!r}")
        self._runtime = runtime()
        self._closing = threading.Lock()
        self._world = self._runtime.nsrt_world_open(os.fsencode(path), 1)
        if not self._world:
            raise TensorError(self._error())
        self.drop_unknown = drop_unknown
        features = tuple(self._runtime.nsrt_world_feature(self._world, index).decode()
                         for index in range(self._runtime.nsrt_world_num_features(self._world)))
        infos = [self._info(index) for index in range(self._runtime.nsrt_world_num_lookups(self._world))]
        self._lookups = [_Lookup(info.feature.decode(), info.feature_index, info.dim, info.pooling == UNPOOLED,
                                 bool(info.weighted)) for info in infos]
        tables = [info.table.decode() for info in infos]
        self._keys = {name: name for name in features} | {
            lookup.name: key_of(lookup.name, table) for lookup, table in zip(self._lookups, tables)}
        self._names = frozenset({*self._keys, *self._keys.values()})  # that a flat batch may have
        self._collections = collections_of([(lookup.name, table, lookup.unpooled, lookup.weighted)
                                            for lookup, table in zip(self._lookups, tables)])
        self._weighted = any(lookup.weighted for lookup in self._lookups)
        # Weights of some features and not of others.
        self._mixed = self._weighted and not all(lookup.weighted for lookup in self._lookups)
        self._input = _Input("ids", features, any(lookup.unpooled for lookup in self._lookups))
        wide = self._runtime.nsrt_world_id_bytes(self._world) == 8
        self._id_type = torch.int64 if wide else torch.int32

    @property
    def features(self) -> tuple[str, ...]:
        """The features in the order of a Jagged."""
        return self._input.features

    @property
    def collections(self) -> tuple[str, ...]:
        """The paths of the collections of a whole model; none where the tables are of one."""
        return tuple(self._collections)

    def __call__(self, ids: object) -> dict[str, torch.Tensor] | dict[str, dict[str, torch.Tensor]]:
        if are_by_collection(ids, self._collections, self._names):
            return results_by_collection(self._look_up(joined(ids, self._collections)), ids, self._collections)
        return self._look_up(ids)

    def _look_up(self, given: object) -> dict[str, torch.Tensor]:
        ids = pick_features(given, self._input, self._keys)
        if self._mixed and isinstance(ids, Mapping):
            ids, weights = _split_weights(ids)
            return self._prepare(as_jagged(ids, self._input), weights)[0]()
        jagged = as_jagged(ids, self._input)
        if not self._weighted:
            jagged = without_unread_weights(jagged, given, "ids")
        return self._prepare(jagged)[0]()

    def prepare(self, ids: Jagged) -> Callable[[], dict[str, torch.Tensor]]:
        """The lookup of these ids as a function without arguments: it reads the tensors where they are when it is
        called, and each call writes into the same results. ids: a Jagged of contiguous tensors of the host, with
        ids of the type of the tables, offsets, and weights of torch.float32; others would be copied, and are a
        TensorError. How many ids an unpooled feature has must stay, and the memory of the tensors: a call after
        set_, resize_ or an assignment to data is a TensorError. Results cannot be resized."""
        types = (self._id_type, torch.int64, torch.float32)
        if not isinstance(ids, Jagged) or ids.offsets is None or not all(
                one is None or (one.is_contiguous() and one.device.type == "cpu" and one.dtype == dtype)
                for one, dtype in zip(ids[:3], types)):
            raise TensorError(f"prepare: expected a Jagged of contiguous tensors of the host, with ids of "
                              f"{self._id_type}, offsets of torch.int64 and weights of torch.float32")
        look_up, results = self._prepare(as_jagged(ids, self._input))
        held = [(one.untyped_storage(), one.numpy()) for one in results.values()]
        given = [one for one in ids[:3] if one is not None]
        places = [(one.data_ptr(), one.numel()) for one in given]

        def prepared() -> dict[str, torch.Tensor]:
            # The memory of the results lives as long as the function; arrays of numpy keep it from being resized.
            _ = held
            if [(one.data_ptr(), one.numel()) for one in given] != places:
                raise TensorError("ids, offsets or weights have other memory than when this lookup was prepared, as "
                                  "after set_, resize_ or an assignment to data; prepare it again, or copy_ into the "
                                  "tensors that it has")
            return look_up()
        return prepared

    def _prepare(self, jagged: Jagged, of_feature: Mapping[str, torch.Tensor] | None = None,
                 ) -> tuple[Callable[[], dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
        """The lookup, and the results that it writes."""
        offsets = self._offsets(jagged)
        batch = (offsets.numel() - 1) // max(1, len(self.features))
        values, weights = self._ids(jagged), self._weights(jagged)
        parts = [] if of_feature is None else self._weights_by_feature(of_feature, offsets, batch)
        pointers = (ctypes.c_void_p * len(parts))(*(None if one is None else one.data_ptr() for one in parts))
        results = {lookup.name: self._result(lookup, offsets, batch) for lookup in self._lookups}
        outs = (ctypes.POINTER(ctypes.c_float) * len(results))(
            *(ctypes.cast(one.data_ptr(), ctypes.POINTER(ctypes.c_float)) for one in results.values()))
        strides = (ctypes.c_int64 * len(results))(*(one.stride(0) for one in results.values()))
        given = Batch(values.data_ptr(), values.numel(), offsets.data_ptr(), batch,
                      None if weights is None else weights.data_ptr(), self.drop_unknown)
        keeps = values, offsets, weights, parts, given  # as long as the function

        def look_up() -> dict[str, torch.Tensor]:
            if self._world is None:
                raise TensorError("these tables were closed")
            batch = ctypes.byref(keeps[-1])
            failed = (self._runtime.nsrt_look_up(self._world, batch, outs, strides) if of_feature is None else
                      self._runtime.nsrt_look_up_by_feature(self._world, batch, pointers, outs, strides))
            if failed:
                raise TensorError(self._error())
            return results
        return look_up, results

    def close(self) -> None:
        """Frees the tables; no call may be running."""
        with self._closing:
            if self._world is not None:
                self._runtime.nsrt_world_close(self._world)
            self._world = None

    def __enter__(self) -> ServedTables:
        if self._world is None:
            raise TensorError("these tables were closed")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_world", None) is not None:
            self.close()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("open tables cannot be copied or pickled: open the folder again")

    def _ids(self, jagged: Jagged) -> torch.Tensor:
        ids = jagged.ids
        if ids.dim() != 1:
            raise TensorError(f"expected ids [ids], found {list(ids.shape)}")
        if self._id_type == torch.int32 and ids.dtype == torch.int64:
            wide = (ids < 0) | (ids >= 2**31)
            if wide.any() and not self.drop_unknown:
                raise TensorError(f"id {int(ids[wide][0])} (number {int(wide.nonzero()[0])} of the input) is out of "
                                  "range: these tables have ids of torch.int32")
            ids = torch.where(wide, -1, ids)
        return ids.to("cpu", self._id_type).contiguous()

    @staticmethod
    def _weights(jagged: Jagged) -> torch.Tensor | None:
        return None if jagged.weights is None else _as_weights(jagged.weights, jagged.ids.numel())

    def _weights_by_feature(self, given: Mapping[str, torch.Tensor], offsets: torch.Tensor,
                            batch: int) -> list[torch.Tensor | None]:
        """In the order of the features."""
        parts: list[torch.Tensor | None] = []
        for number, name in enumerate(self.features):
            count = int(offsets[(number + 1) * batch] - offsets[number * batch])
            try:
                parts.append(_as_weights(given[name], count) if name in given else None)
            except TensorError as error:
                raise TensorError(f"feature \"{name}\": {error}") from None
        return parts

    def _offsets(self, jagged: Jagged) -> torch.Tensor:
        for name, bags in zip(self.features, jagged.batches or ()):
            if bags != jagged.batches[0]:
                raise TensorError(f"expected as many bags of each feature, found {jagged.batches[0]} of "
                                  f"\"{self.features[0]}\" and {bags} of \"{name}\"")
        if jagged.inverse is not None:
            raise TensorError("expected a bag for each sample, found inverse indices; they are for sharded modules")
        offsets = with_offsets(jagged, self._input).offsets.cpu()
        if (offsets.numel() - 1) % max(1, len(self.features)):
            raise TensorError(f"expected {len(self.features)} x batch + 1 offsets, found {offsets.numel()}")
        return offsets

    @staticmethod
    def _result(lookup: _Lookup, offsets: torch.Tensor, batch: int) -> torch.Tensor:
        rows = batch
        if lookup.unpooled:
            begin, end = lookup.feature * batch, (lookup.feature + 1) * batch
            rows = max(0, int(offsets[end] - offsets[begin]))
        return torch.empty(rows, lookup.dim)

    def _info(self, index: int) -> LookupInfo:
        info = LookupInfo()
        if self._runtime.nsrt_world_lookup_info(self._world, index, ctypes.byref(info)):
            raise TensorError(self._error())
        return info

    def _error(self) -> str:
        return self._runtime.nsrt_last_error().decode(errors="replace")


def _what_is_at(path: str | os.PathLike) -> str:
    """For a message, of a place without frozen tables."""
    if not os.path.isdir(path):
        return "a file" if os.path.exists(path) else "nothing"
    if os.path.exists(os.path.join(path, ".metadata")):  # the last file of a torch.distributed.checkpoint
        return ("a checkpoint; make such a folder of its tables by ns.freeze(checkpoint, problem, folder) or by "
                "'neuroshard freeze'")
    return "a folder without manifest.json"


def _split_weights(ids: Mapping) -> tuple[dict[str, object], dict[str, torch.Tensor]]:
    """The ids by feature without weights, and the weights of the features that have some."""
    bare, weights = {}, {}
    for name, value in ids.items():
        if isinstance(value, (tuple, list)) and len(value) == 3:
            *value, weights[name] = value
        bare[name] = value
    return bare, weights


def _as_weights(weights: object, count: int) -> torch.Tensor:
    """f32 weights on the host; a TensorError unless there is one for each id."""
    if not isinstance(weights, torch.Tensor):
        raise TensorError(f"expected a weight for each of {count} ids, found {type(weights).__name__}")
    if weights.shape != (count,) or not weights.dtype.is_floating_point:
        raise TensorError(f"expected a weight for each of {count} ids, found {weights.dtype} {list(weights.shape)}")
    return weights.detach().to("cpu", torch.float32).contiguous()
