"""The functions of libneuroshard_runtime.so that answer lookups (Runtime/LookupABI.h)."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int32, c_int64, c_void_p
from functools import cache

from neuroshard._native.torch_library import load_runtime


class LookupInfo(ctypes.Structure):
    _fields_ = [("feature", c_char_p), ("table", c_char_p), ("rows", c_int64), ("dim", c_int64),
                ("feature_index", c_int32), ("pooling", c_int32), ("weighted", c_int32)]


class Batch(ctypes.Structure):
    _fields_ = [("ids", c_void_p), ("num_ids", c_int64), ("offsets", c_void_p), ("batch", c_int64),
                ("weights", c_void_p), ("drop_unknown", c_int32)]


@cache
def runtime() -> ctypes.CDLL:
    return load_runtime((
        ("nsrt_last_error", c_char_p, []),
        ("nsrt_world_open", c_void_p, [c_char_p, c_int32]),
        ("nsrt_world_close", None, [c_void_p]),
        ("nsrt_world_num_features", c_int32, [c_void_p]),
        ("nsrt_world_feature", c_char_p, [c_void_p, c_int32]),
        ("nsrt_world_id_bytes", c_int32, [c_void_p]),
        ("nsrt_world_num_lookups", c_int32, [c_void_p]),
        ("nsrt_world_lookup_info", c_int32, [c_void_p, c_int32, POINTER(LookupInfo)]),
        ("nsrt_look_up", c_int32,
         [c_void_p, POINTER(Batch), POINTER(POINTER(c_float)), POINTER(c_int64)]),
        ("nsrt_look_up_by_feature", c_int32,
         [c_void_p, POINTER(Batch), POINTER(c_void_p), POINTER(POINTER(c_float)), POINTER(c_int64)])))
