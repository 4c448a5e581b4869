"""Lowers the dense part to linalg by torch-mlir, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import torch

from neuroshard.export.errors import ExportError

_NAME = "dense"


class Signature(NamedTuple):
    """The types of a function's arguments and results, as text."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


def to_linalg(module: torch.fx.GraphModule, example: Sequence[torch.Tensor],
              shapes: Sequence[object]) -> str:
    """module(*example) as a module of MLIR with one function @dense; shapes: the dynamic ones of
    each argument, as torch.export takes them."""
    if find_spec("torch_mlir") is None:
        raise ExportError("dense=\"torch-mlir\" needs the package torch-mlir; without it "
                          "dense=\"external\" leaves the dense part to torch")
    program = torch.export.export(module, tuple(example), dynamic_shapes=tuple(shapes))
    program.example_inputs = None  # would be written to the file
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "dense.pt2")
        torch.export.save(program, source)
        done = subprocess.run(
            [sys.executable, "-m", "neuroshard.export._graph.torch_mlir_process", source, _NAME],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    if done.returncode:
        raise ExportError("torch-mlir cannot lower the dense part, which dense=\"external\" leaves "
                          f"to torch:\n{_reason(done.stderr)}")
    return done.stdout


def _reason(text: str) -> str:
    """The lines with errors, without the trace and the IR around them."""
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    return "\n".join(dict.fromkeys(lines[:4])) or text.strip()[-400:]


def signature_of(text: str) -> Signature:
    """The signature of @dense in a module's text."""
    begin = text.index(f"@{_NAME}(")
    end = text.index("{\n", begin)
    arguments, _, results = text[begin:end].partition("->")
    found = (tuple(re.findall(r"tensor<[^<>]*>", part)) for part in (arguments, results))
    return Signature(*found)


def split_linalg(text: str) -> tuple[list[str], list[str]]:
    """(lines before and after the module, such as aliases; lines inside it). Its functions become
    private."""
    lines = text.rstrip().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("module"))
    end = next(number for number in range(len(lines) - 1, -1, -1) if lines[number].startswith("}"))
    inside = [re.sub(r"^  func\.func @", "  func.func private @", line)
              for line in lines[begin + 1:end]]
    return [*lines[:begin], *lines[end + 1:]], inside
