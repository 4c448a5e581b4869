"""What notebooks show: tables, which _repr_html_() returns, and the progress of searches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from neuroshard._printable import printable_line

MAX_ROWS = 40
MAX_SENTENCES = 12
# The best cost before there is one is above this.
UNKNOWN_MS = 1e30


def html_table(headline: str, columns: Sequence[str], rows: Iterable[Sequence[object]], sentences: Iterable[str] = ()
          ) -> str:
    """A table with its headline as caption, of at most MAX_ROWS rows, and sentences below it, those
    after MAX_SENTENCES folded."""
    rows = list(rows)
    shown = [rows_of(one) for one in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        shown.append(f"<tr><td colspan=\"{len(columns)}\">... {len(rows) - MAX_ROWS} more</td></tr>")
    head = "".join(f"<th scope=\"col\">{text_of(one)}</th>" for one in columns)
    below = [f"<li>{text_of(one)}</li>" for one in sentences]
    said = f"<ul>{''.join(below[:MAX_SENTENCES])}</ul>" if below else ""
    if len(below) > MAX_SENTENCES:
        said += (f"<details><summary>{len(below) - MAX_SENTENCES} more</summary>"
                 f"<ul>{''.join(below[MAX_SENTENCES:])}</ul></details>")
    return (f"<table><caption>{text_of(headline)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(shown)}</tbody></table>{said}")


def rows_of(cells: Sequence[object]) -> str:
    first, *rest = map(text_of, cells)
    return f"<tr><th scope=\"row\">{first}</th>" + "".join(f"<td>{one}</td>" for one in rest) + "</tr>"


def text_of(value: object) -> str:
    return escape(printable_line(str(value)))


def in_notebook() -> bool:
    """Whether a kernel runs this program, whose stderr is no terminal but shown."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def progress_bar() -> Iterator[Callable[[float, float, float, str], object] | None]:
    """A bar of tqdm that shows itself after a second, as a function of seconds, share of the search, best cost in ms
    and what is done; None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(total=100, delay=1, leave=False, bar_format="{desc}{percentage:3.0f}%|{bar}| {elapsed}{postfix}") as bar:

        def show(_: float, share: float, best_ms: float, phase: str) -> None:
            bar.set_description(f"planning: {phase}", refresh=False)
            if best_ms < UNKNOWN_MS:
                bar.set_postfix_str(f"best {best_ms:.3f} ms", refresh=False)
            bar.update(100 * share - bar.n)

        yield show
