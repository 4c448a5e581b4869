"""Tables for serving: quantized, with compiled lookups, in one folder.

    folder = ns.freeze("run/step-1000", problem, "frozen", dtype="int8")
    tables = ns.serve(folder)
    rows = tables({"user_id": ids})["user_id"]

Programs without Python answer from the same folder by include/neuroshard/Runtime/LookupABI.h.
docs/serving.md explains it.
"""

from neuroshard.serving._freeze import freeze, served
from neuroshard.serving._quantize import dequantize, quantize
from neuroshard.serving._served_tables import ServedTables, serve

__all__ = ["ServedTables", "dequantize", "freeze", "quantize", "serve", "served"]
