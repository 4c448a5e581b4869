"""The words of reports. Their owner is docs/glossary.md, which the package has beside its modules."""

from __future__ import annotations

import re
from typing import NamedTuple

from neuroshard._native.binaries import PACKAGE

FILE = "glossary.md"
ROW = re.compile(r"^\| (?!term \||---)([^|]+) \| ([^|]+) \|$", re.MULTILINE)


class Term(NamedTuple):
    name: str
    meaning: str


def terms() -> list[Term]:
    """In the order of the alphabet; empty if the package lacks the file."""
    try:
        text = (PACKAGE / FILE).read_text(encoding="utf-8")
    except OSError:
        return []
    return [Term(*match) for match in ROW.findall(text)]
