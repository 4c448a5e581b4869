"""Runs the compiler on models and keeps the artifacts of a test session."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Compiles for the emulator; fast where the tests are a sample, optimised in full where all run.
EMULATED = ("--emulate", "-O", "3" if os.environ.get("NEUROSHARD_ALL") else "0")


def tool(name):
    """A tool of the build under test."""
    folder = os.environ.get("NEUROSHARD_BIN") or Path(os.environ["NEUROSHARD_BUILD_DIR"], "bin")
    return str(Path(folder, name))


def run_tool(name, *arguments):
    """(exit code, standard error) of a tool."""
    done = subprocess.run([tool(name), *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=1200)
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


def compile_model(model, plan, folder, *further, training=True, reference=True):
    options = [*further, "--training"] if training else [*further]
    options += ["--reference"] if reference else []
    return compile_text(model.text(plan), folder, *options)


class Compilations:
    """Models compiled while the tests of others run."""

    def __init__(self, described):
        """`described` maps a key to a function that gives (model, plan), or these and options of
        the compiler."""
        self.described = described
        self.keys = list(described)
        self.futures = {}
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def submit(self, number, folder):
        if number < len(self.keys) and number not in self.futures:
            describe = self.described[self.keys[number]]
            self.futures[number] = self.pool.submit(self.compile, describe,
                                                    folder / f"model{number}")

    @staticmethod
    def compile(describe, folder):
        model, plan, *options = describe()
        return compile_model(model, plan, folder, *options), model, plan

    def get(self, key, folder):
        """(artifact, model, plan); `folder` is where all of them go."""
        number = self.keys.index(key)
        for ahead in range(3):
            self.submit(number + ahead, folder)
        return self.futures[number].result()
