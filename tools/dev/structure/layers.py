"""The table of who may use whom, layers.toml, and which part a C++ file belongs to."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from structure.cycles import cycles


@dataclass
class Part:
    """What a part may use: whole parts, single headers, foreign headers."""

    uses: set = field(default_factory=set)
    outside: set = field(default_factory=set)

    def may_use(self, part, header):
        return part in self.uses or header in self.uses


class Layers:
    """The rows of layers.toml. Raises ValueError if the table contradicts itself."""

    def __init__(self, text):
        table = tomllib.loads(text)
        self.cxx = {name: Part(set(row["uses"]), set(row.get("outside", ())))
                    for name, row in table.get("cxx", {}).items()}
        self.python = {name: Part(set(row["uses"])) for name, row in table.get("python", {}).items()}
        self.outside = table.get("outside", {})
        self.tests = table.get("tests", {})
        self.shared_tools = set(table.get("tools", {}).get("shared", ()))
        self._check("cxx", self.cxx)
        self._check("python", self.python)

    def _check(self, kind, parts):
        for name, part in parts.items():
            unknown = {use.split("/")[0] for use in part.uses} - set(parts)
            unknown |= part.outside - set(self.outside)
            if unknown:
                raise ValueError(f"[{kind}.{name}] names unknown parts: {sorted(unknown)}")
        # A single header is no dependency on the part: it may lie below both.
        graph = {name: {use for use in part.uses if "/" not in use} for name, part in parts.items()}
        for circle in cycles(graph):
            raise ValueError(f"parts of [{kind}] use each other in a circle: {circle}")

    def outside_group(self, header):
        for group, prefixes in self.outside.items():
            if any(header.startswith(prefix) for prefix in prefixes):
                return group
        return None


def part_of(path):
    """The part of a C++ file: a library's name, "tools/<tool>", or "test"."""
    folders = Path(path).parts
    if folders[0] == "lib":
        return folders[1]
    if folders[:2] == ("include", "neuroshard"):
        return folders[2] if len(folders) > 3 else Path(folders[2]).stem
    if folders[0] == "include":
        return "CAPI"
    return "/".join(folders[:2]) if folders[0] == "tools" else folders[0]


def is_public(path):
    return path.startswith("include/")
