"""The source files of a tree, and violations of rules."""

import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CXX = (".h", ".cpp", ".cu", ".c")
SOURCES = (*CXX, ".py", ".mlir", ".td")


@dataclass(frozen=True, order=True)
class Violation:
    """A file that breaks a rule, and what to do about it."""

    path: str
    rule: str
    advice: str

    def __str__(self):
        return f"{self.path}: {self.rule}: {self.advice}"


class Tree:
    """The source files below a folder: those that git knows or would add."""

    def __init__(self, root):
        self.root = Path(root)
        self._texts = {}

    @cached_property
    def files(self):
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, check=True, text=True)
        names = {name for name in listing.stdout.split("\0") if name.endswith(SOURCES)}
        return sorted(name for name in names if (self.root / name).is_file())

    @cached_property
    def cxx(self):
        return [name for name in self.files if name.endswith(CXX)]

    @cached_property
    def python(self):
        return [name for name in self.files if name.endswith(".py")]

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(errors="replace")
        return self._texts[path]
