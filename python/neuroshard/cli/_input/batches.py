"""Reads batches to profile, from files of ids and offsets or from a user's function."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import Any

import numpy

from neuroshard.cli._failures import InputError
from neuroshard.cli._input.input_files import existing
from neuroshard.cli._input.user_code import names_function, run_user_code, call

# The ids of a feature, and the length of each sample's bag.
Bags = tuple[numpy.ndarray, numpy.ndarray]


def read_batches(sources: Sequence[str]) -> Iterator[tuple[str, dict[str, Bags]]]:
    """(source, {feature: (ids, lengths)}) of each batch."""
    for source in sources:
        if names_function(source):
            yield from of_function(source)
        elif source.endswith(".npz"):
            yield source, of_arrays(read_npz(existing(source, "a batch")), source)
        elif source.endswith(".safetensors"):
            yield source, of_arrays(read_safetensors(existing(source, "a batch")), source)
        else:
            raise InputError(f"{source}: expected a .npz or .safetensors file, or "
                             "file.py:function")


def read_npz(path: str) -> dict[str, numpy.ndarray]:
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{path}: not a .npz file: expected an archive of arrays, as "
                             "numpy.savez writes it")
    try:
        with closing(numpy.load(path, allow_pickle=False)) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # noqa: BLE001, numpy, zipfile and zlib have errors of their own
        raise InputError(f"{path}: not a .npz file that can be read: "
                         f"{error or type(error).__name__}") from error


def read_safetensors(path: str) -> dict[str, numpy.ndarray]:
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        raise InputError(f"{path}: reading it needs safetensors: "
                         "pip install \"neuroshard[profile]\"") from error
    try:
        return load_file(path)
    except Exception as error:  # noqa: BLE001, numpy lacks some of the types of safetensors
        raise InputError(f"{path}: not a .safetensors file that can be read: "
                         f"{error or type(error).__name__}") from error


def of_arrays(arrays: Mapping[str, numpy.ndarray], where: str) -> dict[str, Bags]:
    """"F.ids" with "F.offsets" or "F.lengths"; or "F" alone, [batch, ids per sample]."""
    batch = {}
    for name, array in arrays.items():
        feature, _, part = name.rpartition(".")
        if part == "ids" and feature:
            offsets, lengths = (arrays.get(f"{feature}.{one}") for one in ("offsets", "lengths"))
            if (offsets is None) == (lengths is None):
                raise InputError(f"{where}: {name}: expected {feature}.offsets or "
                                 f"{feature}.lengths beside it")
            batch[feature] = bags(array, offsets, lengths, f"{where}: {feature}")
        elif not feature or part not in ("offsets", "lengths", "weights"):
            batch[name] = dense_bags(array, f"{where}: {name}")
        elif f"{feature}.ids" not in arrays:
            raise InputError(f"{where}: {name}: expected {feature}.ids beside it")
    return batch


def of_function(source: str) -> Iterator[tuple[str, dict[str, Bags]]]:
    given = call(source)
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise InputError(f"{source}: expected an iterable of batches, got a "
                         f"{type(given).__name__}")
    path, iterator, end = source.rpartition(":")[0], iter(given), object()
    index = 0
    while (one := run_user_code(source, path, lambda: next(iterator, end))) is not end:
        where = f"{source}: batch {index}"
        yield where, of_object(one, where)
        index += 1


def of_object(value: Any, where: str) -> dict[str, Bags]:
    """A batch in any form that a function may give."""
    if is_keyed(value):
        return of_keyed(value, where)
    members = members_of(value)
    if any(map(is_keyed, members.values())):
        return of_members(members, isinstance(value, Mapping), where)
    return of_mapping(value, where)


def members_of(value: Any) -> dict[str, Any]:
    """What a dict, tuple, list or data class has, by key, number or field."""
    if isinstance(value, Mapping):
        return {str(key): one for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return dict(zip(getattr(value, "_fields", map(str, range(len(value)))), value))
    if is_dataclass(value) and not isinstance(value, type):
        # One that is not set, as of a class with slots, is left out.
        return {one.name: getattr(value, one.name) for one in fields(value) if hasattr(value, one.name)}
    return {}


def of_members(members: Mapping[str, Any], takes_bags: bool, where: str) -> dict[str, Bags]:
    """Several KeyedJaggedTensors. A key that more than one has is MEMBER/KEY. takes_bags: of others those that
    look like the bags of a feature are such. What is left, as dense inputs and labels, is left out."""
    parts = {name: of_keyed(one, f"{where}: {name}") for name, one in members.items() if is_keyed(one)}
    if takes_bags:
        rest = {name: one for name, one in members.items() if name not in parts and are_bags(one)}
        parts |= {"": of_mapping(rest, where)} if rest else {}
    counts = Counter(key for part in parts.values() for key in part)
    return {f"{name}/{key}" if counts[key] > 1 and name else key: bags_of
            for name, part in parts.items() for key, bags_of in part.items()}


def is_keyed(value: Any) -> bool:
    """Whether it has the interface of a KeyedJaggedTensor."""
    return all(callable(getattr(value, name, None)) for name in ("keys", "lengths", "values",
                                                                 "offset_per_key"))


def of_keyed(value: Any, where: str) -> dict[str, Bags]:
    ids, lengths = to_array(value.values(), where), to_array(value.lengths(), where)
    keys, begin = list(value.keys()), list(value.offset_per_key())
    twice = [key for key, count in Counter(keys).items() if count > 1]
    if twice:
        raise InputError(f"{where}: expected each key once, got: '{twice[0]}' {Counter(keys)[twice[0]]} times; rename "
                         "all but one, and name the features so in the workload")
    strides = list(value.stride_per_key()) if hasattr(value, "stride_per_key") else [
        len(lengths) // len(keys)] * len(keys)
    batch, first = {}, 0
    for index, (key, stride) in enumerate(zip(keys, strides)):
        batch[key] = bags(ids[begin[index]:begin[index + 1]], None,
                          lengths[first:first + stride], f"{where}: {key}")
        first += stride
    return batch


def of_mapping(value: Any, where: str) -> dict[str, Bags]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: expected a KeyedJaggedTensor, a dict by feature, or a dict, tuple or data class "
                         f"with KeyedJaggedTensors, got a {type(value).__name__}")
    batch = {}
    for feature, one in value.items():
        if not isinstance(feature, str):
            raise InputError(f"{where}: expected names of features as keys, got: {feature!r}")
        place = f"{where}: {feature}"
        if isinstance(one, (tuple, list)) and 2 <= len(one) <= 3:
            batch[feature] = bags(to_array(one[0], place), to_array(one[1], place), None, place)
        else:
            batch[feature] = dense_bags(to_array(one, place), place)
    return batch


def are_bags(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and 2 <= len(value) <= 3 or (
        getattr(value, "ndim", 0) == 2 and not str(value.dtype).startswith(("torch.float", "float")))


def to_array(value: Any, where: str) -> numpy.ndarray:
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        return numpy.asarray(value)
    except Exception as error:  # noqa: BLE001, torch has types and devices that numpy lacks
        raise InputError(f"{where}: expected whole numbers as an array: {error}") from error


def bags(ids: numpy.ndarray, offsets: numpy.ndarray | None, lengths: numpy.ndarray | None,
         where: str) -> Bags:
    check_ids(ids, 1, where)
    if lengths is None:
        offsets = counts_of(offsets, "offsets", len(ids), where)
        if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise InputError(f"{where}: expected offsets of all samples and the end, from 0 to "
                             f"{len(ids)} (the number of ids), got: {offsets[:1].tolist()} to "
                             f"{offsets[-1:].tolist()}")
        lengths = numpy.diff(offsets)
        if (lengths < 0).any():
            place = int(numpy.argmax(lengths < 0))
            raise InputError(f"{where}: expected offsets that do not fall, got: {offsets[place]} "
                             f"and then {offsets[place + 1]}")
    else:
        lengths = counts_of(lengths, "lengths", len(ids), where)
        if lengths.sum() != len(ids):
            raise InputError(f"{where}: expected lengths that add up to {len(ids)}, the number of "
                             f"ids, got: {lengths.sum()}")
    return ids, lengths


def dense_bags(ids: numpy.ndarray, where: str) -> Bags:
    check_ids(ids, 2, where)
    return ids.reshape(-1), numpy.full(ids.shape[0], ids.shape[1])


def check_ids(ids: numpy.ndarray, dimensions: int, where: str) -> None:
    # No id for any sample would be any number of samples in no bytes.
    if ids.ndim != dimensions or ids.dtype.kind not in "iu" or 0 in ids.shape[1:]:
        shape = "[ids] with offsets" if dimensions == 1 else "[batch, ids per sample]"
        raise InputError(f"{where}: expected whole numbers {shape}, got: {ids.dtype} of shape "
                         f"{list(ids.shape)}")


def counts_of(values: numpy.ndarray, what: str, most: int, where: str) -> numpy.ndarray:
    """The values as i64. Raises an InputError unless all are whole numbers from 0 to `most`."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(f"{where}: expected {what} as a list of whole numbers, got: "
                         f"{values.dtype} of shape {list(values.shape)}")
    wrong = values[(values < 0) | (values > most)]
    if len(wrong):
        raise InputError(f"{where}: expected {what} from 0 to {most}, the number of ids, got: "
                         f"{wrong[0]}")
    return values.astype(numpy.int64)
