"""Text for people: control characters, which a name may have and a terminal obeys, and controls of the direction of
writing, with which a name looks like another, as escapes. C++ has the same rule in Support/Printable.h. Ranks by
name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_LAYOUT_CONTROLS = [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {**{code: f"\\x{code:02x}" for code in _CONTROLS}, **{code: f"\\u{code:04x}" for code in _LAYOUT_CONTROLS}}
_ESCAPES_IN_LINES = {code: escape for code, escape in _ESCAPES.items() if chr(code) != "\n"}
_LONG_WORD = re.compile(r"([^ \n]{120})[^ \n]{21,}([^ \n]{60})")


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


def of_error(text: str) -> str:
    """The text of an error, of lines: printable, with long words shortened, as names and paths may be of any length."""
    return with_short_words(printable(text))


def with_short_words(text: str) -> str:
    """The text with the middle of words of more than 200 characters left out."""
    return _LONG_WORD.sub(r"\1...\2", text)


def name_ranks(ranks: Sequence[int]) -> str:
    """"rank 1", "ranks 1 and 2", "ranks 0, 1 and 2"."""
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
