"""Rows of values as the bytes of a table that is served.

The formats are those of include/neuroshard/Model/Types.h and of FBGEMM, and so is the rounding of int8 and
int4: FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf, with scale and bias in front of a row."""

from __future__ import annotations

import torch

from neuroshard._artifact.dtypes import DTYPES
from neuroshard.errors import TensorError

LEVELS = {"int8": 255, "int4": 15}
PREFIX_BYTES = 4  # of a scale and a bias, both f16
LARGEST_FP8 = 448.0


def quantize(values: torch.Tensor, dtype: str, first_row: int = 0) -> torch.Tensor:
    """Bytes [rows, bytes of a row] of values [rows, dim]. dtype: int8, int4, fp8, f16, bf16 or f32. first_row: what
    errors call row 0. Raises a TensorError that names the first row whose values the type cannot hold."""
    if values.dim() != 2 or dtype not in (*DTYPES, *LEVELS, "fp8"):
        raise TensorError(f"expected values [rows, dim] and a type of f32, f16, bf16, int8, int4, fp8, found "
                          f"{list(values.shape)} and {dtype!r}")
    values = values.float()
    if dtype in DTYPES:
        stored = values.to(DTYPES[dtype])
        _require(torch.isfinite(stored).all(1), f"finite values of {dtype}", values, first_row)
        return stored.contiguous().view(torch.uint8).reshape(len(values), -1)
    if dtype == "fp8":
        _require(values.abs().amax(1) <= LARGEST_FP8, f"values from -{LARGEST_FP8:.0f} to {LARGEST_FP8:.0f}",
                 values, first_row)
        return values.to(torch.float8_e4m3fn).view(torch.uint8)
    return _with_scales(values, dtype, first_row)


def dequantize(stored: torch.Tensor, dim: int, dtype: str) -> torch.Tensor:
    """The values, f32 [rows, dim], of bytes as quantize() gives. stored: the bytes, of type dtype. Raises a
    TensorError if they are not those of `dim` columns."""
    if dtype not in (*DTYPES, *LEVELS, "fp8"):
        raise TensorError(f"expected a type of f32, f16, bf16, int8, int4, fp8, found {dtype!r}")
    size = _bytes_of_row(dim, dtype)
    if stored.dim() != 2 or stored.dtype != torch.uint8 or stored.shape[1] != size:
        raise TensorError(f"expected bytes [rows, {size}] of rows of {dim} columns in {dtype}, as quantize() gives, "
                          f"found {stored.dtype} {list(stored.shape)}")
    stored = stored.contiguous()
    if dtype in DTYPES:
        return stored.view(DTYPES[dtype]).float()
    if dtype == "fp8":
        return stored.view(torch.float8_e4m3fn).float()
    scale, bias = stored[:, :PREFIX_BYTES].contiguous().view(torch.float16).float().unsqueeze(2).unbind(1)
    elements = stored[:, PREFIX_BYTES:]
    if dtype == "int4":
        elements = torch.stack([elements & 15, elements >> 4], 2).flatten(1)[:, :dim]
    # One rounding, as a fused multiply-add has.
    return (elements.double() * scale.double() + bias.double()).float()


def _bytes_of_row(dim: int, dtype: str) -> int:
    if dtype in DTYPES:
        return dim * DTYPES[dtype].itemsize
    return {"fp8": dim, "int8": PREFIX_BYTES + dim, "int4": PREFIX_BYTES + (dim + 1) // 2}[dtype]


def _with_scales(values: torch.Tensor, dtype: str, first_row: int) -> torch.Tensor:
    levels = LEVELS[dtype]
    least, most = values.amin(1), values.amax(1)
    bias = least.half()
    scale = ((most - bias.float()) / levels).half()
    _require(torch.isfinite(bias) & torch.isfinite(scale), "values that a scale and a bias of f16 can reach",
             values, first_row)
    # Rows of one value, or of a range that f16 has no scale for.
    scale = torch.where((scale == 0) | torch.isinf(1 / scale.float()), torch.ones_like(scale), scale)
    steps = (values - bias.float()[:, None]) * (1 / scale.float())[:, None]
    elements = steps.round().clamp(0, levels).to(torch.uint8)
    if dtype == "int4":
        if elements.shape[1] % 2:
            elements = torch.nn.functional.pad(elements, (0, 1))
        elements = elements[:, 0::2] | elements[:, 1::2] << 4
    prefix = torch.stack([scale, bias], 1).view(torch.uint8)
    return torch.cat([prefix, elements], 1)


def _require(holds: torch.Tensor, expected: str, values: torch.Tensor, first_row: int) -> None:
    if holds.all():
        return
    row = int((~holds).nonzero()[0])
    raise TensorError(f"expected {expected}, found row {first_row + row} with values from {values[row].min():g} to "
                      f"{values[row].max():g}")
