"""What-if planning: one problem on several topologies, a case each, with a plan or an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from neuroshard import _fields, _planner
from neuroshard._html import html_table
from neuroshard.errors import InvalidProblem, PlanningError
from neuroshard.planning import plan
from neuroshard.problem import ShardingProblem
from neuroshard.results import PlanResult
from neuroshard.topology import Topology, as_topology


@dataclass(frozen=True, kw_only=True)
class WhatIfCase(_fields.Record):
    """The outcome for one topology: result, or error when there is no plan. name: as it was asked for. topology: None for a text
    that names none, whose error is an InvalidProblem."""

    name: str
    topology: Topology | None
    result: PlanResult | None = None
    error: PlanningError | None = None

    @property
    def cost_ms(self) -> float | None:
        """Milliseconds per step; None without a plan."""
        return self.result.cost_ms if self.result else None

    @property
    def peak_bytes(self) -> int | None:
        """Bytes on the fullest device; None without a plan."""
        return self.result.memory.peak_bytes if self.result else None


@dataclass(frozen=True)
class WhatIf(_fields.Record):
    """The cases, one per topology, in the order asked; printing it shows a table."""

    cases: tuple[WhatIfCase, ...]

    def __iter__(self) -> Iterator[WhatIfCase]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, index: int) -> WhatIfCase:
        return self.cases[index]

    def __repr__(self) -> str:
        """In short; printing it shows a table."""
        return f"WhatIf({', '.join(f'{case.name}: {_outcome(case)}' for case in self.cases)})"

    def _repr_html_(self) -> str:
        return html_table("What if", ("topology", "devices", "cost, ms", "bound, ms", "fullest device"),
                     [(case.name, case.topology.device_count if case.topology else "",
                       *((f"{case.result.cost_ms:.3f}", _bound(case.result.lower_bound_ms),
                          _planner.format_bytes(case.result.memory.peak_bytes)) if case.result
                         else (_outcome(case), "", "")))
                      for case in self.cases],
                     [f"{case.name}: {case.error.message}" for case in self.cases if case.error])

    def __str__(self) -> str:
        width = max([8, *(len(case.name) for case in self.cases)])
        lines = [f"{'topology':{width}}  devices   cost, ms  bound, ms  fullest device"]
        for case in self.cases:
            count = case.topology.device_count if case.topology else ""
            start = f"{case.name:{width}}  {count:7}"
            if case.result is not None:
                lines.append(f"{start}  {case.result.cost_ms:9.3f}  "
                             f"{_bound(case.result.lower_bound_ms):>9}  "
                             f"{_planner.format_bytes(case.result.memory.peak_bytes)}")
            elif case.error is not None:
                limit = f": {case.error.limit}" if case.topology else ""
                lines.append(f"{start}  {_outcome(case)}{limit}: {case.error.message}")
        return "\n".join(lines)


def _outcome(case: WhatIfCase) -> str:
    """The cost, or what there is in place of a plan."""
    if case.result:
        return f"{case.result.cost_ms:.3f} ms"
    return "no plan" if case.topology else "not known"


def _bound(lower_bound_ms: float | None) -> str:
    return f"{lower_bound_ms:.3f}" if lower_bound_ms is not None else "unknown"


def what_if(problem: ShardingProblem, *,
            topologies: Iterable[Union[str, Topology]] = (),
            devices: Union[int, Iterable[int], None] = None, **options: Any) -> WhatIf:
    """Plans one problem for several topologies.

    topologies: each a Topology or a text such as "2x8xH200". devices: a number or several, of
    devices like those the problem has. options: as for plan(). A topology that has no plan, and a text
    that names none, is a case with an error; every other error is raised.
    """
    if not isinstance(problem, ShardingProblem):
        raise TypeError("what_if: problem: expected a ShardingProblem, "
                        f"got: {_fields.shown(problem)}")
    if isinstance(topologies, (str, Topology)):
        topologies = (topologies,)
    asked: list[tuple[str, Union[Topology, InvalidProblem]]] = [
        (value if isinstance(value, str) else str(value), _topology_of(value))
        for value in _fields.items(topologies, "what_if: topologies", "topologies")]
    counts = () if devices is None else _fields.device_list(devices, "what_if: devices")
    for count in counts:
        if count < 1:
            raise ValueError(f"what_if: devices: expected numbers from 1 on, got: {count}")
        if problem.topology is None:
            raise ValueError("what_if: devices: the problem has no topology to take them from; "
                             "give topologies=[...]")
        asked.append((f"devices={count}", problem.topology.with_devices(count)))
    if not asked:
        raise ValueError("what_if: give topologies=[...] or devices=...")
    return WhatIf(tuple(_case(problem, name, topology, options) for name, topology in asked))


def _topology_of(value: Any) -> Union[Topology, InvalidProblem]:
    try:
        return as_topology(value, "what_if: topologies")
    except InvalidProblem as error:
        return error


def _case(problem: ShardingProblem, name: str, topology: Union[Topology, InvalidProblem],
          options: dict[str, Any]) -> WhatIfCase:
    if isinstance(topology, InvalidProblem):
        return WhatIfCase(name=name, topology=None, error=topology)
    try:
        result = plan(problem.replace(topology=topology), **options)
    except PlanningError as error:
        return WhatIfCase(name=name, topology=topology, error=error)
    return WhatIfCase(name=name, topology=topology, result=result)
