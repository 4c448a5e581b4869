"""Samples the ids of a run now and then, and has a plan searched for them."""

from __future__ import annotations

import inspect
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from neuroshard import _fields, planning
from neuroshard._group.agreement import gather, rank_of, require_same, together
from neuroshard._jagged import Jagged
from neuroshard._printable import did_you_mean
from neuroshard.distributed._monitor.advice import Advice
from neuroshard.distributed._monitor.search import Bags, Search
from neuroshard.errors import TensorError
from neuroshard.plans import Plan

if TYPE_CHECKING:
    from neuroshard.distributed._collection import _Sharded


DEFAULT_BATCHES = 16


class PlanMonitor:
    """Says, now and then during training, what another plan would bring for the ids of today.

        monitor = ns.distributed.PlanMonitor(tables, every=1000)
        for batch in loader:
            loss(model(batch.dense, tables(batch.ids)), batch.labels).backward()
            if advice := monitor.step(batch.ids):
                print(advice)

    All ranks make it and call step() alike. It changes nothing: tables.reshard(advice.plan,
    advice.problem) does, between two steps. After ranks have left or joined, all make another.

    tables: a sharded module, or of shard_model those of all collections, views["items"].tables: then
    step() takes {path: ids}, and reshard_model(views, advice.plan, advice.problem) moves them. every:
    steps from one search to the next. batches: the steps before a search whose ids are gathered, on
    rank 0 (None: 16, or `every` where that is less). There a thread measures and plans, from the plan
    in use. horizon_steps: for which a new plan would be used (None: the planner's default). options: of
    neuroshard.plan; threads is 1 unless given."""

    def __init__(self, tables: _Sharded, *, every: int = 1000, batches: int | None = None,
                 horizon_steps: float | None = None, **options: Any) -> None:
        if not hasattr(tables, "local_shards"):
            raise TypeError(f"PlanMonitor: tables: expected a module with sharded tables, got: {_fields.shown(tables)}")
        every = _fields.whole(every, "every")
        if every < 1:
            raise ValueError(f"every: expected a number of steps from 1, got: {every}")
        if batches is None:
            batches = max(1, min(DEFAULT_BATCHES, every))
        if not 1 <= _fields.whole(batches, "batches") <= every:
            raise ValueError("batches: expected at least 1 and at most `every`, got: "
                             f"{batches} of {every}")
        known = inspect.signature(planning.plan).parameters
        for key in options:
            if key not in known:
                raise TypeError(f"PlanMonitor: {key}: expected an option of neuroshard.plan{did_you_mean(key, known)}")
        for key in ("progress", "warm_start"):
            if key in options:
                raise TypeError(f"PlanMonitor: {key}: the monitor's own")
        if hasattr(tables, "member"):
            raise TypeError(f"PlanMonitor: expected the tables of all collections, as they have one plan: .tables of "
                            f"the module at \"{tables.path}\", whose ids step() then takes by path")
        if tables.dynamic_ids:
            raise TensorError("PlanMonitor: ids of tables with dynamic ids are no rows, so that their statistics "
                              "cannot be measured")
        self._tables, self._group = tables, tables.process_group
        self._every, self._batches = every, batches
        self._options = {"threads": 1, **options}
        if horizon_steps is not None:
            self._options["horizon_steps"] = planning.WarmStart(tables.plan, horizon_steps=horizon_steps).horizon_steps
        require_same({"every": str(every), "batches": str(batches)}, self._group,
                     "all ranks must make the same PlanMonitor")
        self._steps = 0
        self._sample: list[list[Bags]] = []  # on rank 0
        self._sampled = 0
        self._plan: Plan | None = None  # in use when the search began that is not over
        self._search: Search | None = None  # on rank 0
        self._is_first = rank_of(self._group) == 0

    def __repr__(self) -> str:
        return f"PlanMonitor(every={self._every}, batches={self._batches}; {self._steps} steps seen)"

    def step(self, features: object) -> Advice | None:
        """Counts a step. features: what the tables were called with. Gives an advice once it is found,
        on all ranks at the same step. A search that fails is a warning on all ranks."""
        if self._tables.process_group is not self._group:
            raise TensorError("the tables have moved to another process group; all of its ranks make "
                              "a new PlanMonitor")
        self._steps += 1
        place = (self._steps - 1) % self._every
        if place >= self._every - self._batches:
            self._add(features)
        advice = self._ask() if self._plan is not None and self._steps % self._batches == 0 else None
        if place == self._every - 1:
            self._begin()
        return advice

    def wait(self) -> Advice | None:
        """Waits for the search that is under way and returns its advice, which step() then does not give again; None if
        there is no search, or no advice. Called on all ranks."""
        return self._take() if self._plan is not None else None

    def close(self) -> None:
        """Ends the search that is under way."""
        if self._search:
            self._end()
        self._search = self._plan = None

    def _add(self, features: object) -> None:
        if self._plan is not None:
            return
        own = together(lambda: bags_of(self._tables._as_jagged(features, counts=False), self._tables.features),
                       self._group, "PlanMonitor.step()")
        parts = gather(own, self._group)
        self._sampled += 1
        if self._is_first:
            self._sample.append(parts)

    def _begin(self) -> None:
        """Begins a search, unless one took so long that the sample is not complete."""
        sample, is_complete = self._sample, self._sampled == self._batches
        self._sample, self._sampled = [], 0
        if self._plan is not None or not is_complete:
            return
        self._plan = self._tables.plan
        if self._is_first:
            self._search = Search(sample, self._plan.complete(self._tables.problem), self._plan,
                                  self._options, self._tables._distinct_ids.asked)
            self._end = weakref.finalize(self, self._search.stop)

    def _ask(self) -> Advice | None:
        is_over = gather(self._search.is_over if self._search else None, self._group)[0]
        return self._take() if is_over else None

    def _take(self) -> Advice | None:
        outcome = self._search.outcome() if self._search else None
        advice, failure = gather(outcome, self._group)[0]
        if self._search:
            self._end.detach()
        was_in_use, self._plan, self._search = self._plan, None, None
        if failure:
            warnings.warn(f"no plan was found for the ids of the last steps: {failure}", stacklevel=3)
        return advice if was_in_use is self._tables.plan else None


def bags_of(ids: Jagged, features: tuple[str, ...]) -> Bags:
    """The ids of each feature, and their number in each sample. Raises a TensorError for offsets that are
    none."""
    values, offsets = ids.ids.cpu().numpy(), ids.offsets.cpu().numpy()
    if ids.offsets.dim() != 1 or len(offsets) % len(features) != 1 % len(features):
        raise TensorError(f"offsets: expected {len(features)} * batch + 1 values, found shape {offsets.shape}")
    batch = (len(offsets) - 1) // len(features)
    lengths = (offsets[1:] - offsets[:-1]).reshape(len(features), batch)
    return {name: (values[offsets[number * batch]:offsets[(number + 1) * batch]], lengths[number])
            for number, name in enumerate(features)}
