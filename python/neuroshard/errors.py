"""What the planner raises. Every exception is a neuroshard.Error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One thing that is wrong: the place, such as "tables[3].rows", and the rule it breaks."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def _diagnostics(items: Iterable[tuple[str, str]]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(*item) for item in items)


class Error(Exception):
    """Base class."""


class PlanningError(Error):
    """There is no plan, and why.

    limit: "device memory", "host memory", "constraint", "target", "algorithm" (it found no
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
        return "\n".join(lines)


class InvalidProblem(PlanningError, ValueError):
    """A problem, a topology or their text is wrong; diagnostics has everything that is."""

    def __init__(self, diagnostics: Iterable[tuple[str, str]]) -> None:
        self.diagnostics = _diagnostics(diagnostics)
        lines = [str(diagnostic) for diagnostic in self.diagnostics]
        super().__init__("bad input", lines[0] if lines else "", lines[1:])
        self.args = (self.diagnostics,)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


class InvalidPlan(Error, ValueError):
    """A plan's text is wrong, or the plan does not answer the problem; diagnostics says all."""

    def __init__(self, diagnostics: Iterable[tuple[str, str]]) -> None:
        self.diagnostics = _diagnostics(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)


class CostModelError(Error):
    """A cost model answers what no cost model may, or cannot serve the objective."""


class UnknownCostModel(CostModelError, ValueError):
    """No cost model has this name, or its file cannot be used."""

    def __init__(self, diagnostics: Iterable[tuple[str, str]]) -> None:
        self.diagnostics = _diagnostics(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)
