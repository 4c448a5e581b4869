"""An exported model: what neuroshard.export returns."""

from __future__ import annotations

import os
import pathlib
import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from neuroshard import _fields
from neuroshard.export._files.saving import save
from neuroshard.export._options import require_batch
from neuroshard.export._run.compiling import compile_model
from neuroshard.export._run.per_sample import why_not_shared
from neuroshard.export._split_model import SplitModel

if TYPE_CHECKING:
    from neuroshard.export._run.program import Program
    from neuroshard.plans import Plan
    from neuroshard.problem import ShardingProblem
    from neuroshard.topology import Topology


@dataclass
class Exported(SplitModel):
    """A model as a program of NeuroShard. Made by export() and load_export()."""

    def problem(self, topology: Topology | str | None = None, *,
                batch: int | None = None) -> ShardingProblem:
        """The problem to plan. topology: None: to be added for planning. batch: samples over all devices; None: those
        of the example."""
        from neuroshard._native.compiler import compiler_path, run
        from neuroshard.problem import ShardingProblem

        if batch is not None:
            require_batch(batch)
        text = self.text if batch is None else replace(self.text, batch=batch)
        with tempfile.TemporaryDirectory() as folder:
            source, made = pathlib.Path(folder, "model.mlir"), pathlib.Path(folder, "problem.json")
            source.write_text(str(text), encoding="utf-8")
            run(compiler_path().with_name("neuroshard-translate"), "--mlir-to-workload", source,
                "-o", made)
            problem = ShardingProblem.load(str(made))
        return problem if topology is None else problem.replace(topology=topology)

    def compile(self, folder: str | os.PathLike, *, plan: Plan | None = None,
                devices: int = 1, training: bool = False) -> pathlib.Path:
        """Runs neuroshard-compile: an artifact in `folder` for that many devices of this machine, by the
        plan or by one that is made now. If torch runs the dense part, @forward of the artifact
        returns the rows. training: adds @embeddings_update, which takes gradients of rows."""
        return compile_model(self, folder, plan, devices, training)

    def open(self, *, plan: Plan | None = None, devices: int = 1,
             folder: str | os.PathLike | None = None) -> Program:
        """Compiles by the plan (None: one that is made now) and opens the artifact on in-process devices. The result is a context manager
        that is called like the model. folder: for the artifact; None: a temporary one."""
        from neuroshard.export._run.program import open_program

        return open_program(self, plan, devices, folder)

    def save(self, path: str | os.PathLike, *, weights: bool = False) -> list[pathlib.Path]:
        """Writes path.mlir, path.ids.pt2, path.dense.pt2 and path.json, which describes them; with
        weights also path.safetensors. Returns their paths. neuroshard.load_export reads them."""
        return save(self, pathlib.Path(_fields.path(path, "save")), weights)

    def why_not_shared(self) -> str:
        """Why devices cannot share the samples of the dense part, tried on the example; "" if they
        can."""
        return why_not_shared(self)
