"""Runs the compiler on models and keeps the artifacts of a test session."""

import os
import subprocess
from pathlib import Path


def tool(name):
    """A tool of the build under test."""
    folder = os.environ.get("NEUROSHARD_BIN") or Path(os.environ["NEUROSHARD_BUILD_DIR"], "bin")
    return str(Path(folder, name))


def run_tool(name, *arguments):
    """(exit code, standard error) of a tool."""
    done = subprocess.run([tool(name), *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=300)
    return done.returncode, done.stderr


def compile_text(text, folder, *options):
    """Compiles logical IR with a complete plan into `folder`."""
    folder.mkdir(parents=True)
    source = folder / "model.mlir"
    source.write_text(text)
    artifact = folder / "artifact"
    code, messages = run_tool("neuroshard-compile", source, "-o", artifact, *options)
    assert code == 0, f"neuroshard-compile failed on {source}:\n{messages}"
    return artifact


def compile_model(model, plan, folder, training=True, reference=True):
    options = ["--training"] if training else []
    options += ["--reference"] if reference else []
    return compile_text(model.text(plan), folder, *options)
