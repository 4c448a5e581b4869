"""Jagged, the ids of a step as tensors, and its conversion from the forms that callers use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch

from neuroshard.errors import TensorError

LARGEST_POOLING = 2**31 - 1
ID_TYPES = (torch.int64, torch.int32)


class Exchange(Protocol):
    """An input of a model: its name, its features, and whether some lookup gives a row per id."""

    name: str
    features: tuple[str, ...]
    unpooled: bool


class Jagged(NamedTuple):
    """One input of the model, feature-major as in a KeyedJaggedTensor.

    ids: i32 or i64, as the model was written. offsets: i64 [features * batch + 1], from 0; None:
    each bag has `pooling` ids. weights: one for each id; f32, other floating-point types are
    converted. feature_begin: host numbers [features + 1], where each feature's ids begin. Only models
    with several features and unpooled lookups need it; without it they wait for the GPU to find it.

    batches: the bags of each feature where features differ in them, host numbers [features];
    offsets then has one value for each bag of each feature, and the last. inverse: for each
    feature, the bag of each sample, i32 or i64 [batch]: pooled results are those of the
    samples. As a KeyedJaggedTensor with strides and inverse indices."""

    ids: torch.Tensor
    offsets: torch.Tensor | None = None
    weights: torch.Tensor | None = None
    pooling: int = 0
    feature_begin: Sequence[int] | None = None
    batches: Sequence[int] | None = None
    inverse: Sequence[torch.Tensor] | None = None


def as_jagged(given: object, exchange: Exchange) -> Jagged:
    """A Jagged from a Jagged, (ids, offsets[, weights]), an object with the interface of a
    KeyedJaggedTensor, or {feature: (ids, offsets[, weights]) or ids [batch, pooling]}."""
    if type(given) is Jagged and is_ready(given):
        return given
    if isinstance(given, Jagged):
        jagged = given
    elif isinstance(given, Mapping):
        jagged = join_features(given, exchange)
    elif not isinstance(given, torch.Tensor) and all(
            callable(getattr(given, name, None)) for name in ("values", "offsets")):
        keys = tuple(given.keys()) if hasattr(given, "keys") else exchange.features
        if keys != exchange.features:
            raise TensorError(f"input \"{exchange.name}\": expected the features "
                              f"{list(exchange.features)}, found {list(keys)}")
        jagged = from_keyed(given, exchange, inverse_of(given))
    elif isinstance(given, (tuple, list)) and 2 <= len(given) <= 3:
        jagged = Jagged(*given)
    else:
        raise TensorError(f"input \"{exchange.name}\": expected a Jagged, (ids, offsets), a "
                          f"KeyedJaggedTensor or a dict by feature, found {type(given).__name__}")
    require_tensors(jagged, exchange)
    jagged = with_types(jagged, exchange)
    require_numbers(jagged, exchange)
    require_batches(jagged, exchange)
    if jagged.offsets is not None and jagged.offsets.dtype == torch.int32:
        jagged = jagged._replace(offsets=jagged.offsets.long())
    ids, offsets, weights = jagged[:3]
    return jagged._replace(ids=ids.contiguous(),
                           offsets=None if offsets is None else offsets.contiguous(),
                           weights=None if weights is None else weights.contiguous())


def is_ready(jagged: Jagged) -> bool:
    """Whether as_jagged() would change and refuse nothing: for most steps the only check."""
    ids, offsets, weights, pooling, feature_begin, batches, inverse = jagged
    return (feature_begin is None and batches is None and inverse is None
            and type(pooling) is int and 0 <= pooling <= LARGEST_POOLING
            and is_ready_tensor(ids, ID_TYPES)
            and (offsets is None or is_ready_tensor(offsets, (torch.int64,)))
            and (weights is None or is_ready_tensor(weights, (torch.float32,))))


def is_ready_tensor(tensor: object, types: Sequence[torch.dtype]) -> bool:
    return (type(tensor) is torch.Tensor and tensor.layout is torch.strided
            and tensor.dtype in types and not tensor.is_nested and tensor.is_contiguous())


def require_tensors(jagged: Jagged, exchange: Exchange) -> None:
    """Raises a TensorError unless ids, offsets and weights are dense tensors or left out."""
    for name in ("ids", "offsets", "weights"):
        value = getattr(jagged, name)
        if value is None and name != "ids":
            continue
        found = type(value).__name__
        if isinstance(value, torch.Tensor):
            if is_dense(value):
                continue
            found = "a nested one" if value.is_nested else "a quantized one" \
                if value.is_quantized else f"one of layout {value.layout}"
        raise TensorError(f"input \"{exchange.name}\": expected {name} as a dense tensor, found "
                          f"{found}")


def with_types(jagged: Jagged, exchange: Exchange) -> Jagged:
    """With weights as f32, of any floating-point type. Raises a TensorError for other types of tensors."""
    ids, offsets, weights = jagged[:3]
    where = f"input \"{exchange.name}\""
    check_id_type(ids, where)
    if offsets is not None and offsets.dtype not in ID_TYPES:
        raise TensorError(f"{where}: expected offsets as torch.int64 or torch.int32, found {offsets.dtype}")
    if weights is None or weights.dtype == torch.float32:
        return jagged
    if not weights.is_floating_point():
        raise TensorError(f"{where}: expected weights of a floating-point type, found {weights.dtype}")
    return jagged._replace(weights=weights.float())


def require_numbers(jagged: Jagged, exchange: Exchange) -> None:
    """Raises a TensorError unless pooling and feature_begin are numbers of the host."""
    if not is_count(jagged.pooling):
        raise TensorError(f"input \"{exchange.name}\": expected pooling as a whole number from 0 "
                          f"to {LARGEST_POOLING}, found {jagged.pooling!r}")
    begin = jagged.feature_begin
    if begin is not None and not (isinstance(begin, (list, tuple))
                                  and all(isinstance(one, (int, torch.SymInt)) for one in begin)):
        raise TensorError(f"input \"{exchange.name}\": expected feature_begin as a list of whole "
                          f"numbers, found {type(begin).__name__}")


def require_batches(jagged: Jagged, exchange: Exchange) -> None:
    """Raises a TensorError unless batches and inverse are as Jagged says. The values of inverse are
    checked on CPUs; on GPUs PyTorch checks them."""
    batches, inverse, features = jagged.batches, jagged.inverse, len(exchange.features)
    where = f"input \"{exchange.name}\": expected"
    if batches is not None:
        if not (isinstance(batches, (list, tuple)) and len(batches) == features
                and all(is_count(one) for one in batches)):
            raise TensorError(f"{where} batches as {features} whole numbers, one for each feature, "
                              f"found {batches!r}")
        if jagged.offsets is None or jagged.offsets.shape[0] != sum(batches) + 1:
            found = "none" if jagged.offsets is None else jagged.offsets.shape[0]
            raise TensorError(f"{where} {sum(batches)} + 1 offsets, as there are bags in batches, "
                              f"found {found}")
    if inverse is None:
        return
    if jagged.offsets is None or not jagged.offsets.numel():
        raise TensorError(f"{where} offsets beside inverse, found none")
    if not (isinstance(inverse, (list, tuple)) and len(inverse) == features and all(
            isinstance(one, torch.Tensor) and one.dim() == 1 and one.dtype in ID_TYPES
            and one.shape == inverse[0].shape for one in inverse)):
        raise TensorError(f"{where} inverse as {features} tensors of one size, of torch.int64 or "
                          f"torch.int32 [batch], found {inverse!r}")
    bags = batches or [(jagged.offsets.shape[0] - 1) // features] * features
    for name, one, count in zip(exchange.features, inverse, bags):
        if one.device.type != "cpu" or torch.compiler.is_compiling() or not one.numel():
            continue
        least, most = (int(value) for value in one.aminmax())
        if least < 0 or most >= count:
            raise TensorError(f"feature \"{name}\": expected inverse indices from 0 to {count - 1}, as "
                              f"it has {count} bags, found {most if most >= count else least}")


def is_count(value: object) -> bool:
    """Whether it is a count; tracers use whole numbers of their own type."""
    if isinstance(value, torch.SymInt):
        return True
    return (isinstance(value, int) and not isinstance(value, bool)
            and 0 <= value <= LARGEST_POOLING)


def is_keyed(features: object) -> bool:
    """Whether features have the interface of a KeyedJaggedTensor."""
    return not isinstance(features, (tuple, list, Mapping)) and callable(
        getattr(features, "keys", None)) and callable(getattr(features, "offsets", None))


def without_unread_weights(ids: Jagged, features: object, where: str) -> Jagged:
    """The ids of an input without weights, which no lookup of it reads. Raises a TensorError for weights, unless the
    features are a KeyedJaggedTensor, which may have them for another collection: TorchRec's collections pass over
    them, too."""
    if ids.weights is None:
        return ids
    if not is_keyed(features):
        raise unread_weights(where)
    return ids._replace(weights=None)


def unread_weights(where: str) -> TensorError:
    return TensorError(f"{where}: expected no weights, as no lookup reads them, found some; leave them out, or make "
                       "tables whose features are weighted")


def pick_features(features: object, expected: Exchange, keys_of: Mapping[str, str]) -> object:
    """Picks the expected features in their order from a KeyedJaggedTensor, and drops its others. In
    a KeyedJaggedTensor or a dict, a feature that several tables read is repeated for each table.

    keys_of: by name, the key in a batch if the name itself is not one."""
    if type(features) is Jagged:
        return features
    names = expected.features
    if isinstance(features, Mapping):
        shared = {name: features[keys_of[name]] for name in names
                  if name not in features and keys_of[name] in features}
        if not shared:
            return features
        done = {keys_of[name] for name in shared} - set(names)
        return {key: one for key, one in features.items() if key not in done} | shared
    if not is_keyed(features):
        return features
    keys = list(features.keys())
    if tuple(keys) == names:
        return features
    wanted = [name if name in keys else keys_of[name] for name in names]
    missing = [key for key in wanted if key not in keys]
    if missing:
        raise TensorError(f"expected the features {list(dict.fromkeys(wanted))}, found {keys}: "
                          f"there is no {missing[0]}")
    if len(set(keys)) < len(keys) and (twice := [key for key in wanted if keys.count(key) > 1]):
        raise TensorError(f"input \"{expected.name}\": expected each feature once, found {twice[0]} twice among the keys "
                          f"{keys}")
    check_id_type(features.values(), f"input \"{expected.name}\"")
    require_lengths(features)
    return from_keyed(features.permute([keys.index(key) for key in wanted]), expected,
                      inverse_of(features))


def from_keyed(given: object, exchange: Exchange,
               inverse: tuple[list[str], torch.Tensor] | None = None) -> Jagged:
    """A Jagged from a KeyedJaggedTensor that has the exchange's features in their order, some under
    other names. inverse: its inverse indices, by key."""
    batches = None
    if hasattr(given, "variable_stride_per_key") and given.variable_stride_per_key():
        batches = [int(one) for one in given.stride_per_key()]
        batches = batches if len(set(batches)) > 1 else None
    rows = None
    if inverse is not None:
        keys, indices = inverse
        missing = [key for key in given.keys() if key not in keys]
        if missing:
            raise TensorError(f"input \"{exchange.name}\": expected inverse indices of all features, found "
                              f"none of {missing[0]}")
        if len(indices) != len(keys):
            raise TensorError(f"input \"{exchange.name}\": expected inverse indices [{len(keys)}, batch], as "
                              f"they have so many keys, found {len(indices)} rows")
        rows = [indices[keys.index(key)] for key in given.keys()]
    weights = given.weights_or_none() if hasattr(given, "weights_or_none") else None
    begin = given.offset_per_key() if (
        exchange.unpooled and hasattr(given, "offset_per_key")) else None
    return Jagged(given.values(), given.offsets(), weights, 0, begin, batches, rows)


def require_lengths(features: object) -> None:
    """Raises a TensorError unless the lengths of a KeyedJaggedTensor are those of its strides, values and weights:
    TorchRec's permute() reads by strides and lengths, whatever the others are."""
    if torch.compiler.is_compiling():
        return
    lengths, bags = features.lengths(), sum(features.stride_per_key())
    if lengths.numel() != bags:
        raise TensorError(f"expected {bags} lengths, as there are bags of the {len(features.keys())} features of the "
                          f"KeyedJaggedTensor, found {lengths.numel()}")
    count = sum(features.length_per_key())
    if lengths.numel() and int(lengths.min()) < 0:
        raise TensorError(f"lengths: expected numbers from 0, found {int(lengths.min())}")
    for what, held in (("values", features.values()), ("weights", features.weights_or_none())):
        if held is not None and held.shape[0] != count:
            raise TensorError(f"expected {count} {what}, as the lengths of the KeyedJaggedTensor say, found "
                              f"{held.shape[0]}")


def inverse_of(given: object) -> tuple[list[str], torch.Tensor] | None:
    """The inverse indices of a KeyedJaggedTensor, [keys, batch], if it has some."""
    return given.inverse_indices_or_none() if hasattr(given, "inverse_indices_or_none") else None


def join_features(given: Mapping, exchange: Exchange) -> Jagged:
    """A Jagged from a dict by feature, one feature after the other."""
    if set(given) != set(exchange.features):
        raise TensorError(f"input \"{exchange.name}\": expected the features "
                          f"{list(exchange.features)}, found {list(given)}")
    values = [given[name] for name in exchange.features]
    check_meta(values, exchange)
    if are_bags_of_one_size(values):
        for name, value in zip(exchange.features, values):
            check_id_type(value, f"feature \"{name}\"")
        return join_bags_of_one_size(values)
    ids, weights, offsets, begin = [], [], [], [0]
    for name, value in zip(exchange.features, values):
        has_offsets = not isinstance(value, torch.Tensor)
        if not has_offsets:
            value = spread(value, name)
        check_pair(value, name)
        check_together(ids, value, name)
        if has_offsets:
            check_ends(value[0], value[1], f"feature \"{name}\"")
        offsets.append(value[1][:-1] + begin[-1])
        ids.append(value[0])
        weights.extend(value[2:3])
        begin.append(begin[-1] + value[0].shape[0])
    # Sizes are compared as they are: a length is a number, and fixes them while torch traces.
    batches = None
    if any(part.shape[0] != offsets[0].shape[0] for part in offsets):
        batches = [part.shape[0] for part in offsets]
    if weights and len(weights) != len(ids):
        raise TensorError(f"input \"{exchange.name}\": expected weights for all features or for "
                          f"none, found them for {len(weights)} of {len(ids)}")
    end = offsets[0].new_full((1,), begin[-1])
    return Jagged(torch.cat(ids), torch.cat([*offsets, end]).long(),
                  torch.cat(weights) if weights else None, 0, begin, batches)


def check_meta(values: Sequence[object], exchange: Exchange) -> None:
    """Raises for a feature on the meta device among others: those have the right one."""
    tensors = [(name, one) for name, value in zip(exchange.features, values)
               for one in (value if isinstance(value, (tuple, list)) else (value,))
               if isinstance(one, torch.Tensor)]
    on_meta = [name for name, one in tensors if one.is_meta]
    if on_meta and len(on_meta) < len(tensors):
        raise TensorError(f"feature \"{on_meta[0]}\": expected tensors with values, found one on the "
                          "meta device")


def are_bags_of_one_size(values: Sequence[object]) -> bool:
    """Whether all are ids [batch, pooling] of one batch and place. Not while torch traces, when
    these need not be numbers."""
    if torch.compiler.is_compiling() or not all(
            type(value) is torch.Tensor and is_dense(value) and value.dim() == 2
            for value in values):
        return False
    first = values[0]
    return all(value.shape[0] == first.shape[0] and value.device == first.device
               for value in values)


def join_bags_of_one_size(values: Sequence[torch.Tensor]) -> Jagged:
    """A Jagged of ids [batch, pooling] by feature, in a few operations for all features."""
    batch, place = values[0].shape[0], values[0].device
    begin = [0]
    for value in values:
        begin.append(begin[-1] + value.numel())
    sizes = torch.tensor([(value.shape[1], first) for value, first in zip(values, begin)])
    pooling, first = sizes.to(place).unsqueeze(2).unbind(1)
    bags = torch.arange(batch, device=place) * pooling + first
    end = bags.new_full((1,), begin[-1])
    return Jagged(torch.cat([value.reshape(-1) for value in values]),
                  torch.cat([bags.reshape(-1), end]), None, 0, begin)


def check_pair(value: object, name: str) -> None:
    if not (isinstance(value, (tuple, list)) and 2 <= len(value) <= 3
            and all(isinstance(one, torch.Tensor) for one in value)):
        raise TensorError(f"feature \"{name}\": expected ids [batch, pooling] or (ids, offsets), "
                          f"found {type(value).__name__}")


def check_together(ids: Sequence[torch.Tensor], value: Sequence[torch.Tensor],
                   name: str) -> None:
    """Raises unless the tensors of a feature can be joined with those of the features before."""
    place = (ids[0] if ids else value[0]).device
    for what, tensor in zip(("ids", "offsets [batch + 1]", "weights"), value):
        if not is_dense(tensor) or tensor.dim() != 1:
            raise TensorError(f"feature \"{name}\": expected {what} as a dense tensor of one "
                              f"dimension, found {describe(tensor)}")
        if tensor.device != place:
            raise TensorError(f"feature \"{name}\": expected {what} on {place}, as the ids of the "
                              f"first feature, found {tensor.device}")
    check_id_type(value[0], f"feature \"{name}\"")
    if value[1].dtype not in (torch.int32, torch.int64) or value[1].shape[0] < 1:
        raise TensorError(f"feature \"{name}\": expected offsets [batch + 1] as torch.int64, found "
                          f"shape {tuple(value[1].shape)}, {value[1].dtype}")
    if len(value) > 2:
        check_own_weights(value[0], value[2], name)


def check_own_weights(ids: torch.Tensor, weights: torch.Tensor, name: str) -> None:
    """Raises unless a feature has a weight for each of its own ids: a missing one would shift those of the features
    behind. While torch traces, the step compares their number over all features alone."""
    if not weights.is_floating_point():
        raise TensorError(f"feature \"{name}\": expected weights of a floating-point type, found {weights.dtype}")
    if not torch.compiler.is_compiling() and weights.shape[0] != ids.shape[0]:
        raise TensorError(f"feature \"{name}\": expected a weight for each of its {ids.shape[0]} ids, found "
                          f"{weights.shape[0]}")


def check_ends(ids: torch.Tensor, offsets: torch.Tensor, where: str) -> None:
    """Offsets begin with 0 and end with the number of ids. where: the feature or input that has them. On a GPU,
    and while torch traces, the check is part of the step, which it ends."""
    if offsets.device.type == "cpu" and not torch.compiler.is_compiling() \
            and type(offsets) in (torch.Tensor, torch.nn.Parameter):
        begin, end = int(offsets[0]), int(offsets[-1])
        if begin != 0 or end != ids.shape[0]:
            raise TensorError(f"{where}: expected offsets from 0 to {ids.shape[0]}, the number of its ids, found "
                              f"{begin} to {end}")
    else:
        # Without quotes: Inductor writes the text into C++ as it is.
        shown = "".join(one if one.isalnum() or one == " " else "_" for one in where.replace('"', ""))
        torch._assert_async((offsets[0] == 0) & (offsets[-1] == ids.shape[0]),
                            f"{shown}: expected offsets from 0 to the number of its ids")


def spread(ids: torch.Tensor, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Bags of one size, as ids and offsets."""
    if not is_dense(ids) or ids.dim() != 2:
        raise TensorError(f"feature \"{name}\": expected ids [batch, pooling] or (ids, offsets), "
                          f"found {describe(ids)}")
    return ids.reshape(-1), fixed_offsets(ids.shape[0], ids.shape[1], ids.device)


def is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized


def describe(tensor: torch.Tensor) -> str:
    """The shape and layout of any tensor. Nested ones have no shape."""
    if tensor.is_nested:
        return "a nested tensor"
    quantized = "quantized, " if tensor.is_quantized else ""
    return f"{quantized}shape {tuple(tensor.shape)}, {tensor.layout}"


def check_id_type(ids: torch.Tensor, where: str) -> None:
    if ids.dtype not in ID_TYPES:
        raise TensorError(f"{where}: expected ids as torch.int64 or torch.int32, found {ids.dtype}")


def with_offsets(ids: Jagged, exchange: Exchange) -> Jagged:
    """The ids with offsets in place of pooling. Raises a TensorError for bags that nothing or too much
    describes."""
    where = f"input \"{exchange.name}\": expected"
    if ids.offsets is not None and ids.pooling:
        raise TensorError(f"{where} either offsets or pooling, found both")
    if ids.offsets is not None:
        return ids
    if not ids.pooling:
        raise TensorError(f"{where} offsets, or the ids of every bag as pooling, found neither")
    features = len(exchange.features)
    if ids.ids.dim() == 1 and ids.ids.shape[0] % (features * ids.pooling) != 0:
        raise TensorError(f"{where} {features} features x batch x {ids.pooling} ids, as it has no "
                          f"offsets, found {ids.ids.shape[0]}")
    bags = ids.ids.shape[0] // ids.pooling if ids.ids.dim() else 0
    return ids._replace(offsets=fixed_offsets(bags, ids.pooling, ids.ids.device))


def fixed_offsets(bags: int, pooling: int, place: torch.device) -> torch.Tensor:
    return torch.arange(bags + 1, device=place) * pooling


def find_feature_begin(jagged: Jagged, exchange: Exchange) -> list[int]:
    """Computes feature_begin from the offsets, for which it waits for the GPU."""
    features = len(exchange.features)
    batch = (jagged.offsets.shape[0] - 1) // features
    return [int(jagged.offsets[feature * batch]) for feature in range(features + 1)]
