"""Checks and converts the arguments of steps of neuroshard.cuda for the C library."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import c_int64
from typing import Any, NamedTuple

from neuroshard import _fields
from neuroshard.cuda._arrays import (ELEMENT_DTYPES, ELEMENT_TYPES, address, check_rows, length,
                                     take)
from neuroshard.cuda._library import CudaError, Gradient, Lookup, Part, _Input, _Output

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
ID_DTYPES = {4: "int32", 8: "int64"}
MAX_COUNT = 2**40  # of ids


class Input(NamedTuple):
    """A jagged input with the ids of whole tables (nsc_input). feature_begin: host numbers."""

    ids: object
    offsets: object = None
    batch: int = 0
    pooling: int = 0
    num_ids: int | None = None
    sample_weights: object = None
    feature_begin: Sequence[int] | None = None


def within(value: Any, name: str, least: int, most: int) -> int:
    """A whole number that fits into what the library takes."""
    number = _fields.whole(value, name)
    if not least <= number <= most:
        raise CudaError(f"{name}: expected a number from {least} to {most}, found {number}")
    return number


def count(value: Any, name: str) -> int:
    return within(value, name, 0, MAX_COUNT)


def output_dtype(lookup: Lookup) -> str:
    return ELEMENT_DTYPES[ELEMENT_TYPES[lookup.output_type]]


# Whole inputs


class Reading(NamedTuple):
    """What the lookups of a device need from an input. features: the least number. weighted: a
    feature that is looked up with weights, or None."""

    id_types: tuple[str, ...]
    features: int
    weighted: str | None


def reading_of(lookups: Sequence[Lookup]) -> Reading:
    weighted = [lookup.feature.decode() for lookup in lookups if lookup.weighted]
    return Reading(tuple(sorted({ID_DTYPES[lookup.id_bytes] for lookup in lookups})
                         or ID_DTYPES.values()),
                   1 + max((lookup.feature_index for lookup in lookups), default=0),
                   weighted[0] if weighted else None)


def native_input(given: object, number: int, reading: Reading, place: str) -> _Input:
    name = f"inputs[{number}]"
    if not isinstance(given, Input):
        raise TypeError(f"{name}: expected a cuda.Input, got: {_fields.shown(given)}")
    batch = count(given.batch, f"{name}.batch")
    num_ids = (length(given.ids, f"{name}.ids") if given.num_ids is None
               else count(given.num_ids, f"{name}.num_ids"))
    if given.sample_weights is None and reading.weighted is not None:
        raise CudaError(f"{name}.sample_weights: expected weights, as a lookup of feature "
                        f"\"{reading.weighted}\" reads them, found None")
    return _Input(
        take(given.ids, f"{name}.ids", reading.id_types, place, num_ids),
        take(given.offsets, f"{name}.offsets", ("int64",), place,
             reading.features * batch + 1),
        take(given.sample_weights, f"{name}.sample_weights", ("float32",), place, num_ids),
        native_begin(given.feature_begin, f"{name}.feature_begin"), num_ids, batch,
        count(given.pooling, f"{name}.pooling"))


def native_begin(begin: Sequence[int] | None, name: str) -> ctypes.Array | None:
    """The numbers and a last -1, which the library refuses if it would read too far."""
    if begin is None:
        return None
    numbers = [count(one, name) for one in _fields.items(begin, name, "numbers")]
    return (c_int64 * (len(numbers) + 1))(*numbers, -1)


def native_outputs(outputs: Iterable[tuple[object, int]]) -> tuple[list[_Output], list[object]]:
    """(outputs for the library, the arrays for check_outputs)."""
    native, arrays = [], []
    for number, pair in enumerate(_fields.items(outputs, "outputs", "(array, stride)")):
        array, stride = pair_of(pair, "outputs", number, 2)
        plain = array is None or type(array) is int and 0 <= array < 2**64
        native.append(_Output(array if plain else address(array, f"outputs[{number}]"),
                              stride_of(stride, "outputs", number)))
        arrays.append(array)
    return native, arrays


# These run for hundreds of lookups, so error texts are made only for errors.


def pair_of(given: Any, name: str, number: int, most: int) -> Sequence[Any]:
    if isinstance(given, (tuple, list)) and 2 <= len(given) <= most:
        return given
    expected = "(array, stride)" if most == 2 else "(array, stride[, gradient of the weights])"
    raise TypeError(f"{name}[{number}]: expected {expected}, got: {_fields.shown(given)}")


def stride_of(stride: Any, name: str, number: int) -> int:
    if type(stride) is int and 0 <= stride <= MAX_COUNT:
        return stride
    return within(stride, f"{name}[{number}]: its stride", 0, MAX_COUNT)


def check_outputs(parts: Sequence[Part], arrays: Sequence[object], lookups: Sequence[Lookup],
                  place: str) -> None:
    for number, array in enumerate(arrays):
        if array is not None and not isinstance(array, int):
            part, lookup = parts[number], lookups[number]
            check_rows(array, f"outputs[{number}]", (output_dtype(lookup),), place,
                       rows_of(part, lookup), lookup.dim, part.out_stride)


def rows_of(part: Part, lookup: Lookup) -> int:
    return part.bags if lookup.pooled else part.id_end - part.id_begin


# Parts and gradients


def part(lookup: int, ids: object, offsets: object, out: object, out_stride: int, *,
         bags: int = 0, pooling: int = 0, feature: int = 0, id_begin: int = 0,
         id_end: int | None = None, exact: bool = True, sample_weights: object = None) -> Part:
    """One part; arrays may be numbers, and must outlive the step. Device.part also checks the types
    and devices of arrays."""
    return make_part(None, "", lookup, ids, offsets, out, out_stride, bags=bags, pooling=pooling,
                     feature=feature, id_begin=id_begin, id_end=id_end, exact=exact,
                     sample_weights=sample_weights)


def make_part(spec: Lookup | None, place: str, lookup: int, ids: object, offsets: object,
              out: object, out_stride: int, *, bags: int, pooling: int, feature: int,
              id_begin: int, id_end: int | None, exact: bool, sample_weights: object) -> Part:
    id_types = ID_DTYPES.values() if spec is None else (ID_DTYPES[spec.id_bytes],)
    out_types = ELEMENT_DTYPES.values() if spec is None else (output_dtype(spec),)
    end = length(ids, "ids") if id_end is None else count(id_end, "id_end")
    made = Part(within(lookup, "lookup", 0, 2**31 - 1), bool(exact),
                within(feature, "feature", 0, 2**31 - 1), 0)
    made.id_begin, made.id_end = count(id_begin, "id_begin"), end
    made.bags, made.pooling = count(bags, "bags"), count(pooling, "pooling")
    made.out_stride = count(out_stride, "out_stride")
    made.ids = take(ids, "ids", tuple(id_types), place, end)
    made.offsets = take(offsets, "offsets", ("int64",), place, made.bags + 1)
    made.sample_weights = take(sample_weights, "sample_weights", ("float32",), place, end)
    made.out = address(out, "out")
    rows = made.bags if offsets is not None else 0
    if spec is not None:
        rows = rows_of(made, spec)
    check_rows(out, "out", tuple(out_types), place, rows, 1 if spec is None else spec.dim,
               made.out_stride)
    return made


def parts_of(parts: Iterable[Part]) -> ctypes.Array:
    """An array of parts, as Device.forward takes it."""
    return array_of(Part, parts, "parts")


def array_of(kind: type, values: object, name: str) -> ctypes.Array:
    """The values as an array of the C library, if they are none yet."""
    if isinstance(values, ctypes.Array) and values._type_ is kind:
        return values
    listed = _fields.items(values, name, f"cuda.{kind.__name__}")
    for number, value in enumerate(listed):
        if not isinstance(value, kind):
            raise TypeError(f"{name}[{number}]: expected a cuda.{kind.__name__}, got: "
                            f"{_fields.shown(value)}")
    return (kind * len(listed))(*listed)


def native_gradients(gradients: object, parts: Sequence[Part], lookups: Sequence[Lookup],
                     place: str) -> ctypes.Array:
    """parts: of the forward."""
    if isinstance(gradients, ctypes.Array):
        return array_of(Gradient, gradients, "gradients")
    given = _fields.items(gradients, "gradients", "(array, stride)")
    native = (Gradient * len(given))()
    for number, one in enumerate(given):
        array, stride, *more = pair_of(one, "gradients", number, 3)
        name = f"gradients[{number}]"
        made = native[number]
        made.gradient = address(array, name)
        made.stride = stride_of(stride, "gradients", number)
        part = parts[number] if number < len(parts) else None
        if part is not None and made.gradient and not isinstance(array, int):
            lookup = lookups[part.lookup]
            check_rows(array, name, ("float32",), place, rows_of(part, lookup), lookup.dim,
                       made.stride)
        if more:
            made.weight_gradient = take(more[0], f"{name}: of the sample weights", ("float32",),
                                        place, 0 if part is None else part.id_end)
    return native
