"""From models of PyTorch to NeuroShard's IR.

    exported = neuroshard.export(model, (dense, ids, offsets))
    print(exported.mlir)
    with exported.open(devices=2) as program:
        program(dense, ids, offsets)
    exported.save("model", weights=True)
    exported = neuroshard.load_export("model")  # in any process

It needs torch, which the first call imports; running needs neuroshard-compile and the runtime,
dense="torch-mlir" the package torch-mlir. docs/export.md explains it.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroshard.export._exported import Exported
    from neuroshard.export._exporter import export
    from neuroshard.export._files.loading import load_export
    from neuroshard.export._run.program import Program
    from neuroshard.export.errors import ExportError

__all__ = ["ExportError", "Exported", "Program", "export", "load_export"]

_PLACES = {"ExportError": "errors", "Exported": "_exported", "Program": "_run.program",
           "export": "_exporter", "load_export": "_files.loading"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'neuroshard.export' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"neuroshard.export.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"neuroshard.export.{name} needs torch, which is not installed: pip "
                          "install \"neuroshard[torch]\"") from None


class _Callable(types.ModuleType):
    """neuroshard.export is the package and, called, its function."""

    def __call__(self, *args: object, **kwargs: object) -> Exported:
        return __getattr__("export")(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
