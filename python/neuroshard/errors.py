"""Exceptions. Every one is a neuroshard.Error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from neuroshard._printable import of_error, printable_line, with_short_words


class Diagnostic(NamedTuple):
    """One thing that is wrong. where: the place, such as "tables[3].rows". message: the rule it breaks."""

    where: str
    message: str

    def __str__(self) -> str:
        return with_short_words(printable_line(f"{self.where}: {self.message}" if self.where else self.message))


class Error(Exception):
    """Base class. Its text shows control characters of names as escapes, and long names shortened."""

    def __str__(self) -> str:
        return of_error(super().__str__())


class PlanningError(Error):
    """There is no plan, and why.

    limit: "device memory", "host memory", "disk", "constraint", "target", "algorithm" (it found no
    placement) or "bad input". message: the binding limit in one sentence, with numbers.
    details: the evidence. advice: what to change.
    """

    def __init__(self, limit: str, message: str, details: Iterable[str] = (),
                 advice: str = "") -> None:
        super().__init__(limit, message, tuple(details), advice)
        self.limit = limit
        self.message = message
        self.details = tuple(details)
        self.advice = advice

    def __str__(self) -> str:
        lines = [f"{self.limit}: {self.message}", *(f"  {line}" for line in self.details)]
        if self.advice:
            lines.append(self.advice)
        return "\n".join(with_short_words(printable_line(line)) for line in lines)


class _Listing(Error, ValueError):
    """An error that lists everything that is wrong; see diagnostics."""

    def __init__(self, diagnostics: Iterable[tuple[str, str]]) -> None:
        self.diagnostics = tuple(Diagnostic(*item) for item in diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


class InvalidProblem(PlanningError, _Listing):
    """A problem, a topology or their text is wrong; diagnostics has everything that is."""

    def __init__(self, diagnostics: Iterable[tuple[str, str]]) -> None:
        _Listing.__init__(self, diagnostics)
        lines = [str(diagnostic) for diagnostic in self.diagnostics]
        self.limit = "bad input"
        self.message = lines[0] if lines else ""
        self.details = tuple(lines[1:])
        self.advice = ""

    __str__ = _Listing.__str__


class InvalidPlan(_Listing):
    """A plan's text is wrong, or the plan does not answer the problem; diagnostics says all."""


class CostModelError(Error):
    """A cost model returned invalid values, or cannot serve the objective."""


class UnknownCostModel(_Listing, CostModelError):
    """No cost model has this name, or its file cannot be used."""


class UnknownPolicy(_Listing):
    """The file of a placement policy (algorithm="dreamshard") cannot be used."""


class InputError(Error):
    """What a command, or a measurement, was given is wrong; the text says what, where and what was
    expected."""


class TensorError(Error, ValueError):
    """A tensor or an artifact does not fit the tables; the text says what is expected."""


class MissingLibrary(Error, ImportError):
    """A library or tool of NeuroShard was not found. The text says where it was looked for and how
    to install it."""


class CompileError(Error, RuntimeError):
    """A plan could not be compiled; the text is the compiler's."""


class GroupError(Error, RuntimeError):
    """Something failed, or differs, on some rank of a process group; the text names the rank
    and the cause. It is raised on all ranks."""


class CheckpointError(GroupError):
    """A checkpoint could not be saved or loaded; the same on all ranks."""


class Unsupported(Error, ValueError):
    """A module, a constraint or a plan that TorchRec cannot run; the text names it, what it has,
    and what is expected."""
