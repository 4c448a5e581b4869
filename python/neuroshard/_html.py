"""Tables for notebooks, which show what _repr_html_() returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from neuroshard._printable import printable_line

MAX_ROWS = 40


def html_table(headline: str, columns: Sequence[str], rows: Iterable[Sequence[object]], sentences: Iterable[str] = ()
          ) -> str:
    """A table with its headline as caption, of at most MAX_ROWS rows, and sentences below it."""
    rows = list(rows)
    shown = [rows_of(one) for one in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        shown.append(f"<tr><td colspan=\"{len(columns)}\">... {len(rows) - MAX_ROWS} more</td></tr>")
    head = "".join(f"<th scope=\"col\">{text_of(one)}</th>" for one in columns)
    below = "".join(f"<li>{text_of(one)}</li>" for one in sentences)
    return (f"<table><caption>{text_of(headline)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(shown)}</tbody></table>" + (f"<ul>{below}</ul>" if below else ""))


def rows_of(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<td>{text_of(one)}</td>" for one in cells) + "</tr>"


def text_of(value: object) -> str:
    return escape(printable_line(str(value)))
