"""Text for people: control characters, which a name may have and a terminal obeys, as escapes.
C++ has the same rule in Support/Printable.h. Ranks by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_ESCAPES = {code: f"\\x{code:02x}" for code in [*range(0x20), *range(0x7F, 0xA0)]}
_ESCAPES_IN_LINES = {code: escape for code, escape in _ESCAPES.items() if chr(code) != "\n"}


def counted(count: int, what: str) -> str:
    """"1 table", "2 tables"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """"; did you mean 'name'?" of the name that is nearest to the word, or nothing if none is near."""
    near = difflib.get_close_matches(word, list(names), 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def printable(text: str) -> str:
    """The text with \\x1b for ESC, and so on; lines stay lines."""
    return text.translate(_ESCAPES_IN_LINES)


def printable_line(text: str) -> str:
    """A name, or one line: no control character stays."""
    return text.translate(_ESCAPES)


def name_ranks(ranks: Sequence[int]) -> str:
    """"rank 1", "ranks 1 and 2", "ranks 0, 1 and 2"."""
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
