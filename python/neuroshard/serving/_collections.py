"""The collections of a whole model in the features of its frozen tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from neuroshard._fields import shown
from neuroshard._jagged import (Jagged, as_jagged, check_ends, check_pair, pick_features, spread, with_offsets,
                                without_unread_weights)
from neuroshard._model_names import in_collection, key_of
from neuroshard.errors import TensorError


@dataclass(frozen=True)
class Collection:
    """One collection, the input that it is called with (the Exchange of neuroshard._jagged). path: in the model.
    features: its own names, and whole: those of the same features in the folder. weighted: those with weights."""

    path: str
    features: tuple[str, ...]
    whole: tuple[str, ...]
    keys: Mapping[str, str]  # in a batch, by own name
    unpooled: bool
    weighted: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path

    def ids_of(self, given: object) -> dict[str, object]:
        """What it was called with, by the folder's features: (ids, offsets[, weights]) or ids [batch, pooling]."""
        picked = pick_features(given, self, self.keys)
        if isinstance(picked, Mapping):
            if set(picked) != set(self.features):
                raise TensorError(f"collection \"{self.path}\": expected the features {list(self.features)}, found "
                                  f"{list(picked)}")
            return {whole: picked[own] for own, whole in zip(self.features, self.whole)}
        ids = with_offsets(as_jagged(picked, self), self)
        if not self.weighted:
            ids = without_unread_weights(ids, given, f"collection \"{self.path}\"")
        return dict(zip(self.whole, self._split(ids)))

    def _split(self, ids: Jagged) -> list[tuple[torch.Tensor, ...]]:
        """(ids, offsets[, weights]) of each feature."""
        if ids.batches is not None or ids.inverse is not None:
            raise TensorError(f"collection \"{self.path}\": expected the same batch for each feature, without inverse "
                              "indices")
        for what, value in zip(("ids", "offsets", "weights"), ids):
            if value is not None and value.dim() != 1:
                raise TensorError(f"collection \"{self.path}\": expected {what} of one dimension, found shape "
                                  f"{list(value.shape)}")
        if (ids.offsets.shape[0] - 1) % len(self.features):
            raise TensorError(f"collection \"{self.path}\": expected {len(self.features)} x batch + 1 offsets, found "
                              f"{ids.offsets.shape[0]}")
        check_ends(ids.ids, ids.offsets, f"collection \"{self.path}\"")
        if self.weighted and (ids.weights is None or ids.weights.shape != ids.ids.shape):
            found = "none" if ids.weights is None else ids.weights.shape[0]
            raise TensorError(f"collection \"{self.path}\": expected a weight for each of {ids.ids.shape[0]} ids, found "
                              f"{found}")
        batch = (ids.offsets.shape[0] - 1) // len(self.features)
        ends = ids.offsets[::batch].tolist() if batch else [0] * (len(self.features) + 1)
        parts = []
        for number, own in enumerate(self.features):
            begin, end = ends[number], ends[number + 1]
            offsets = ids.offsets[number * batch:(number + 1) * batch + 1] - begin
            weights = (ids.weights[begin:end],) if own in self.weighted else ()
            parts.append((ids.ids[begin:end], offsets, *weights))
        return parts


def collections_of(readers: Sequence[tuple[str, str, bool, bool]]) -> dict[str, Collection]:
    """By path; none where the tables are of one collection. readers: (feature, table, is unpooled, is weighted)."""
    found: dict[str, list[tuple[str, str, str, bool, bool]]] = {}
    for feature, table, unpooled, weighted in readers:
        path, own, own_table = in_collection(feature, table)
        found.setdefault(path, []).append((own, feature, key_of(own, own_table), unpooled, weighted))
    if set(found) <= {""}:
        return {}
    return {path: Collection(path, tuple(one[0] for one in of), tuple(one[1] for one in of),
                             {one[0]: one[2] for one in of}, any(one[3] for one in of),
                             tuple(one[0] for one in of if one[4])) for path, of in found.items()}


def are_by_collection(given: object, collections: Mapping[str, Collection], flat: Iterable[str]) -> bool:
    """Whether the tables of a model are called with {path: features}, not with all features of the folder. Raises a
    TensorError for what is neither. flat: names of the latter, also those that several tables share."""
    if not collections or isinstance(given, (Jagged, tuple, list)):
        return False
    keys = list(given) if isinstance(given, Mapping) else list(given.keys()) if hasattr(given, "keys") else []
    if not set(keys).isdisjoint(flat):
        return False
    if not isinstance(given, Mapping) or not given:
        raise TensorError(f"these tables are of a whole model: expected {{path: features}} with paths of "
                          f"{', '.join(collections)}, found {shown(given) if not keys else keys}")
    if unknown := [key for key in keys if key not in collections]:
        raise TensorError(f"expected collections of {', '.join(collections)}, found {shown(unknown[0])}")
    return True


def joined(given: Mapping[str, object], collections: Mapping[str, Collection]) -> dict[str, object]:
    """The ids of some collections by the folder's features. Of the others bags are empty."""
    ids = {whole: value for path, features in given.items() for whole, value in collections[path].ids_of(features).items()}
    if len(given) < len(collections):
        empty = torch.zeros_like(_offsets_of(*next(iter(ids.items()))))
        for path in collections.keys() - given.keys():
            ids |= {whole: (empty[:0], empty, *([empty[:0].float()] if own in collections[path].weighted else []))
                    for own, whole in zip(collections[path].features, collections[path].whole)}
    return ids


def _offsets_of(feature: str, value: object) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        value = spread(value, feature)
    check_pair(value, feature)
    return value[1]


def results_by_collection(results: Mapping[str, torch.Tensor], given: Mapping[str, object],
                          collections: Mapping[str, Collection]) -> dict[str, dict[str, torch.Tensor]]:
    """Those of the collections that were given, by their own names."""
    return {path: {own: results[whole] for own, whole in zip(collections[path].features, collections[path].whole)}
            for path in given}
