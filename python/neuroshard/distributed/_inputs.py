"""Inputs and results of a model, from its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from neuroshard._artifact.dtypes import DTYPES, ID_DTYPES
from neuroshard._artifact.manifest import Manifest
from neuroshard._jagged import Jagged, spread, unread_weights, with_offsets
from neuroshard.distributed._operators import InputShapes, Result, Shapes
from neuroshard.errors import TensorError


@dataclass(frozen=True)
class Input:
    """A model's jagged input (the Exchange of neuroshard._jagged). key: the compiler's name for it.
    name: for messages. unweighted: features of a weighted input of which no lookup reads weights."""

    key: str
    name: str
    features: tuple[str, ...]
    unpooled: bool
    weighted: bool
    id_dtype: torch.dtype
    unweighted: tuple[str, ...] = ()


def inputs_of(manifest: Manifest) -> tuple[Input, ...]:
    """In the order of the step's arguments."""
    return tuple(Input(one["input"], name_of(one["features"]), tuple(one["features"]),
                       any(lookup["pooling"] == "none" for lookup in one["lookups"]),
                       one["weighted"], ID_DTYPES[one["id_type"]], unweighted_of(one))
                 for one in manifest.exchanges)


def unweighted_of(exchange: Mapping) -> tuple[str, ...]:
    reading = {lookup["feature"] for lookup in exchange["lookups"] if lookup["weighted"]}
    return tuple(name for number, name in enumerate(exchange["features"])
                 if exchange["weighted"] and number not in reading)


def only_input_of(manifest: Manifest) -> Input:
    """Raises a TensorError if there are others."""
    if len(manifest.exchanges) > 1:
        raise TensorError(f"the artifact has {len(manifest.exchanges)} inputs of ids; expected one")
    return inputs_of(manifest)[0]


def name_of(features: list[str]) -> str:
    """All features, or the first and the last."""
    if len(features) <= 4:
        return ", ".join(features)
    return f"{features[0]}, ..., {features[-1]} ({len(features)} features)"


def shapes_of(manifest: Manifest) -> Shapes:
    return Shapes(tuple(InputShapes(
        len(one["features"]), one["weighted"],
        tuple(Result(lookup["feature"], lookup["pooling"] != "none",
                     manifest.table(lookup["table"])["dim"], DTYPES[lookup["result_type"]])
              for lookup in one["lookups"])) for one in manifest.exchanges))


def names_of_results(manifest: Manifest) -> list[str]:
    """The feature; feature@table where several lookups read it; with #1, #2, ... where they read
    one table."""
    lookups = [(one["features"][lookup["feature"]], manifest.table(lookup["table"])["name"])
               for one in manifest.exchanges for lookup in one["lookups"]]
    features, both, seen = Counter(f for f, _ in lookups), Counter(lookups), Counter()
    names = []
    for feature, table in lookups:
        name = feature if features[feature] == 1 else f"{feature}@{table}"
        if both[feature, table] > 1:
            seen[feature, table] += 1
            name = f"{name}#{seen[feature, table]}"
        names.append(name)
    return names


def as_tensors(ids: Jagged, expected: Input) -> Jagged:
    """The ids as operators take them: with offsets, as many for each feature, and of the model's type if
    that is wider. Raises a TensorError for bags that nothing or too much describes."""
    ids = with_offsets(ids, expected)
    if ids.batches is not None:
        ids = ids._replace(offsets=padded(ids.offsets, ids.batches))
    if ids.ids.dtype == torch.int32 and expected.id_dtype == torch.int64:
        ids = ids._replace(ids=ids.ids.long())
    return ids


def padded(offsets: torch.Tensor, batches: Sequence[int]) -> torch.Tensor:
    """The offsets of features with different numbers of bags, with empty ones behind the last of each
    until all have as many."""
    first = torch.tensor([0, *accumulate(batches)], device=offsets.device)
    bags = torch.arange(max(batches), device=offsets.device)
    places = first[:-1, None] + torch.minimum(bags, first.diff()[:, None])
    return offsets[torch.cat([places.reshape(-1), first[-1:]])]


def fill_weights(features: object, expected: Input) -> object:
    """In a dict, weights of 1 for features of which no lookup reads any, where others have weights."""
    if not expected.unweighted or not isinstance(features, Mapping):
        return features
    filled = dict(features)
    for name in expected.unweighted:
        value = features.get(name)
        if isinstance(value, torch.Tensor):
            value = spread(value, name)
        if not isinstance(value, (tuple, list)) or not value or not isinstance(value[0], torch.Tensor):
            continue
        if len(value) > 2:
            raise unread_weights(f"feature \"{name}\"")
        filled[name] = (*value, torch.ones(value[0].shape, device=value[0].device))
    return filled


def require_mode(learns: bool, mode: str) -> None:
    """Raises a TensorError for a lookup that a backward would follow, in a problem of lookups alone."""
    if learns and mode == "inference":
        raise TensorError("the problem is of mode inference, which has lookups alone, so that neither its plan nor its "
                          "optimizers are for training: call eval(), or look up under torch.no_grad(); to train, plan "
                          "the problem with mode=\"training\"")


def require_values(ids: Jagged, learns: bool, name: str) -> None:
    """Raises a TensorError for tensors on the meta device, and for those that a backward cannot
    keep. name: of the input."""
    for part, value in zip(("ids", "offsets", "weights"), ids):
        what = f"input \"{name}\": {part}"
        if value is None:
            continue
        if value.is_meta:
            raise TensorError(f"{what}: expected a tensor with values, found one on the meta device")
        if learns and value.is_inference():
            raise TensorError(f"{what}: expected a tensor that a backward can keep, found one of "
                              "torch.inference_mode(); clone() it outside")
