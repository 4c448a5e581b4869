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
    from neuroshard.export._parts import Parts
    from neuroshard.plans import Plan


def compile_parts(parts: Parts, folder: str | os.PathLike, plan: Plan | None, devices: int,
                  training: bool) -> pathlib.Path:
    """See Exported.compile."""
    from neuroshard._compiler import compiler_path, run

    count = device_count(plan, devices)
    if parts.dense.linalg and count > 1 and (reason := why_not_shared(parts)):
        raise ExportError(reason)
    text = parts.text if parts.dense.linalg else replace(parts.text, dense=None)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "model.mlir")
        options = ["--training"] if training else []
        source.write_text(str(text), encoding="utf-8")
        if parts.dense.linalg:  # what needs no row then runs while ids are on their way
            inlined = source.with_name("inlined.mlir")
            run(compiler_path().with_name("neuroshard-opt"), source, "--inline", "-o", inlined)
            source = inlined
        if plan is not None:
            plan.save(os.path.join(scratch, "plan.json"))
            options += ["--plan", os.path.join(scratch, "plan.json")]
        run(compiler_path(), source, "--topology", f"{count}xCPU", *options, "-o", folder)
    return pathlib.Path(folder)
