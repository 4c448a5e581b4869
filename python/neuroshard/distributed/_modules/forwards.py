"""The forwards of a model, each of which makes one step for the collections in it."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from neuroshard._group.agreement import rank_of, require_same
from neuroshard._jagged import is_keyed
from neuroshard.distributed._modules.joint import JointTables, Results
from neuroshard.distributed._modules.members import Member
from neuroshard.distributed._modules.places import Place, fetch, find, shown


class Collection(Protocol):
    """The module in the place of a collection (view.py)."""

    path: str
    member: Member

    @property
    def is_trained_now(self) -> bool: ...


class Stamp:
    """Tensors of ids as they were when their step began."""

    def __init__(self, features: object) -> None:
        self._tensors = _tensors_in(features)
        self._versions = _versions_of(self._tensors)

    def holds(self, features: object) -> bool:
        """Whether these are the same tensors, unchanged."""
        tensors = _tensors_in(features)
        return len(tensors) == len(self._tensors) and all(map(operator.is_, tensors, self._tensors)) and (
            _versions_of(tensors) == self._versions)


class Forward:
    """One forward of the model. given: by path, the ids of the collections whose step begins with it."""

    def __init__(self, tables: JointTables, args: tuple, kwargs: Mapping[str, Any], given: dict[str, object]) -> None:
        self.args, self.kwargs, self.given = args, kwargs, given
        self.found: dict[str, Place | None] = {}  # where the ids of those that were called are
        self.num_alone = 0  # steps beside the one of all
        self.has_failed = False  # the step, on all ranks
        self._stamps = {path: Stamp(one) for path, one in given.items()}
        self._results: Results | None = None
        self._pending = tables.start(given) if given else None
        self._learns, self._mode = tables._learns(), torch.is_grad_enabled()

    def results_for(self, view: Collection, features: object) -> Results | None:
        """Those of the step, if it has what a collection is called with."""
        if self.given.get(view.path) is not features or features is None or (view.is_trained_now and not self._learns):
            return None
        if not self._stamps[view.path].holds(features):
            return None
        if self._results is None:
            # What the backward needs is kept as it is, also where activations are computed again.
            self.has_failed = True
            with torch.set_grad_enabled(self._mode), torch.autograd.graph.saved_tensors_hooks(_same, _same):
                self._results = self._pending.wait()  # type: ignore[union-attr]
                self._pending = None
            self.has_failed = False
        return self._results

    def has_changed(self, path: str) -> bool:
        """Whether ids are others than those that were sent."""
        return path in self.given and not self._stamps[path].holds(self.given[path])

    def end(self) -> None:
        self.args, self.kwargs = (), {}
        self._pending = None
        if self._results is not None and self._results.backward:
            self._results.backward.is_whole = not self.num_alone


class Forwards:
    """Begins the step of a model's forward with the ids of all its collections, which it finds among the
    arguments where they were in the first forward. What is not there has steps of its own. The first forward of a
    batch of pipeline() takes what was sent, and with it the error of a rank that could not send its ids."""

    def __init__(self, model: torch.nn.Module, tables: JointTables, one_step: bool) -> None:
        self._tables = tables
        self._places: dict[str, Place | None] | None = None if one_step else {}
        self._one_step = one_step
        self._first: dict[str, Place | None] | None = None  # of the first forward, until ranks agree
        self._current: Forward | None = None
        self._last: Forward | None = None  # whose activations may be computed again
        self._depth = 0
        self._told: set[str] = set()
        model.register_forward_pre_hook(self._begin, with_kwargs=True)
        model.register_forward_hook(self._end, with_kwargs=True, always_call=True)

    def _begin(self, model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if _is_traced(args, kwargs):
            return
        if self._depth and _calls_on_stack(model) == 1:  # an interrupt has ended the forward before without its hooks
            self._depth = 0
            self._end_current()
        self._depth += 1
        if self._depth > 1:
            return
        self._last = None
        if self._places is None and self._first is not None:
            self._learn(self._first)
        places, apart = self._places or {}, self._tables.looked_up_apart()
        given = {path: fetch(place, args, kwargs) for path, place in places.items()
                 if place is not None and path not in apart}
        if self._places is None and not apart:
            given = self._tables.ids_ahead()
        self._current = Forward(self._tables, args, kwargs,
                                {path: one for path, one in given.items() if one is not None})

    def _end(self, model: torch.nn.Module, args: tuple, kwargs: dict[str, Any], output: object) -> None:
        if _is_traced(args, kwargs):
            return
        self._depth -= 1
        if not self._depth:
            self._end_current()

    def _end_current(self) -> None:
        current = self._current
        if current is None:
            return
        current.end()
        self._current, self._last = None, current
        if self._places is None and not current.has_failed:
            self._first = current.found  # also of one that has failed later, so that all ranks compare it

    def forget(self) -> None:
        """Lets go of the last forward, whose activations are not computed again."""
        self._last = None

    def _learn(self, found: Mapping[str, Place | None]) -> None:
        self._first = None
        require_same({f"place of the ids of \"{path}\" among the arguments of the model": shown(found.get(path))
                      for path in self._tables.member_of}, self._tables.process_group,
                     "call the model and its collections alike on all ranks")
        if found:  # else no rank has called a collection
            self._places = {path: found.get(path) for path in self._tables.member_of}

    def call(self, view: Collection, features: object) -> object:
        """What the forward of a collection returns."""
        if torch.compiler.is_compiling():
            return self._tables.start({view.path: features}).wait()[view.path]
        is_again = torch._C._current_graph_task_id() != -1  # in a backward, which computes activations again
        forward = self._last if is_again else self._current
        results = forward.results_for(view, features) if forward else None
        if results is None:
            results = self._alone(view, features, None if is_again else forward)
        elif self._places is None and not is_again:
            forward.found[view.path] = find(features, forward.args, forward.kwargs)  # type: ignore[union-attr]
        if not isinstance(results, Results):  # a compiled part of a forward
            return results[view.path]
        if results.backward and view.is_trained_now:
            return results[view.path]
        tensors = [one.detach() for one in results.tensors]
        return self._tables.output(view.member, results.calls[view.member.index], tensors)

    def _alone(self, view: Collection, features: object, forward: Forward | None) -> Results:
        results = self._tables.start({view.path: features}).wait()
        if isinstance(results, Results) and results.backward:
            results.backward.is_whole = False
        if forward is None or not self._one_step:
            return results
        forward.num_alone += 1
        if self._places is None:
            place = find(features, forward.args, forward.kwargs)
            if view.path in forward.found:
                if forward.found[view.path] != place:
                    self._tell(view.path, "the model calls it several times, with different ids")
                return results
            forward.found[view.path] = place
            if place is None:
                self._tell(view.path, "its ids are not among the arguments of the model's forward")
        elif (known := self._places.get(view.path)) is None:
            self._tell(view.path, "the first forward of the model did not call it, or with ids that were not among its "
                                  "arguments")
        elif view.path in self._tables.looked_up_apart():
            self._tell(view.path, "it does not learn while others do, and its dynamic ids must not become rows")
        elif forward.given.get(view.path) is None:
            self._tell(view.path, f"there were no ids at {shown(known)}, where they were in the first forward")
        elif forward.given[view.path] is not features:
            self._tell(view.path, f"it was called with other ids than those at {shown(known)}, where they were in the "
                                  "first forward")
        elif forward.has_changed(view.path):
            self._tell(view.path, "the model changes its ids in place")
        else:
            self._tell(view.path, "it is to learn in a forward that began without gradients")
        return results

    def _tell(self, path: str, why: str) -> None:
        if path not in self._told and rank_of(self._tables.process_group) == 0:
            warnings.warn(f"shard_model: collection \"{path}\" has steps of its own beside that of the other collections, "
                          f"which take further exchanges: {why} (docs/distributed.md)", stacklevel=5)
        self._told.add(path)


def _calls_on_stack(model: torch.nn.Module) -> int:
    """How many calls of the model this thread is in. A KeyboardInterrupt ends one without hooks, torch's always_call
    among them."""
    frame, count = sys._getframe(), 0
    while frame:
        count += frame.f_code is torch.nn.Module._call_impl.__code__ and frame.f_locals.get("self") is model
        frame = frame.f_back
    return count


def _is_traced(args: tuple, kwargs: Mapping[str, Any]) -> bool:
    return torch.compiler.is_compiling() or any(isinstance(one, torch.fx.Proxy) for one in (*args, *kwargs.values()))


def _tensors_in(features: object) -> list[torch.Tensor]:
    if is_keyed(features):
        return [one for one in (features.values(), features.offsets(), features.weights_or_none())
                if one is not None]
    return [one for one in torch.utils._pytree.tree_leaves(features) if isinstance(one, torch.Tensor)]


def _versions_of(tensors: Sequence[torch.Tensor]) -> list[int | None]:
    return [None if one.is_inference() else one._version for one in tensors]


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
