"""Console output of the commands: tables, progress bars, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from neuroshard import _planner
from neuroshard._printable import printable

# Columns of the output where it is no terminal.
PIPED_WIDTH = 160


class QuietConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console() -> Console:
    """The console for results."""
    made = QuietConsole(highlight=False, soft_wrap=False)
    if not made.is_terminal:
        made.width = PIPED_WIDTH
    return made


def messages() -> Console:
    """The console for messages: stderr."""
    return QuietConsole(stderr=True, highlight=False)


def print_json(plain: Any) -> None:
    print(json.dumps(plain, indent=1, allow_nan=False))


def table(title: str, *columns: str, left: int = 1, long: tuple[str, ...] = ()) -> Table:
    """The first `left` columns are texts, the others numbers. long: columns whose texts may
    take several lines."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold",
                 box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(columns):
        made.add_column(name, justify="left" if index < left else "right",
                        overflow="fold", no_wrap=index >= left and name not in long,
                        min_width=14 if name in long else None)
    return made


def sentences(out: Console, lines: Any) -> None:
    for line in lines:
        out.print(f"  {line}", markup=False, soft_wrap=True)


def ms(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def size(count: float) -> str:
    return _planner.format_bytes(int(count))


def percent(share: float) -> str:
    return f"{share:+.1%}"


@contextmanager
def searching(what: str, shown: bool = True) -> Iterator[Callable[[Any], None] | bool]:
    """Yields a value for progress= of neuroshard.plan: a progress bar on a terminal, else False."""
    out = messages()
    if not (shown and out.is_terminal):
        yield False
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24),
               TextColumn("{task.fields[best]}"), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(what, total=1.0, best="")

        def report(progress: Any) -> None:
            best = f"best {progress.best_cost_ms:.3f} ms" if progress.best_cost_ms < 1e30 else ""
            bar.update(task, completed=progress.share, best=best,
                       description=f"{what}: {progress.phase}")

        yield report
