"""Compiles an exported model for devices of this machine."""

from __future__ import annotations

import os
import pathlib
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

from neuroshard.export._options import device_count
from neuroshard.export._run.per_sample import why_not_shared
from neuroshard.export.errors import ExportError

if TYPE_CHECKING:
    from neuroshard.export._split_model import SplitModel
    from neuroshard.plans import Plan


def compile_model(model: SplitModel, folder: str | os.PathLike, plan: Plan | None, devices: int,
                  training: bool) -> pathlib.Path:
    """See Exported.compile."""
    from neuroshard._native.compiler import compiler_path, run

    count = device_count(plan, devices)
    if model.dense.linalg and count > 1 and (reason := why_not_shared(model)):
        raise ExportError(reason)
    text = model.text if model.dense.linalg else replace(model.text, dense=None)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "model.mlir")
        options = ["--training"] if training else []
        source.write_text(str(text), encoding="utf-8")
        if model.dense.linalg:  # so that work without rows overlaps the exchange of ids
            inlined = source.with_name("inlined.mlir")
            run(compiler_path().with_name("neuroshard-opt"), source, "--inline", "-o", inlined)
            source = inlined
        if plan is not None:
            plan.save(os.path.join(scratch, "plan.json"))
            options += ["--plan", os.path.join(scratch, "plan.json")]
        run(compiler_path(), source, "--topology", f"{count}xCPU", *options, "-o", folder)
    return pathlib.Path(folder)
