"""Opens a plan's tables on this rank, and closes them."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import weakref

import torch
import torch.distributed as dist

from neuroshard._artifact.manifest import Manifest
from neuroshard._group.agreement import host_leaders, rank_of, require_same, size_of, together
from neuroshard._group.host import local_ranks
from neuroshard._group.watched_group import watched_group_of, is_forked
from neuroshard._printable import counted
from neuroshard._native.torch_library import code_version
from neuroshard.distributed import _operators
from neuroshard.distributed._artifact_check import check_artifact
from neuroshard.distributed._caches import CacheFigures, cache_figures
from neuroshard.distributed._compile_cache import make_artifact
from neuroshard.distributed._drift import require_alike
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._inputs import only_input_of, shapes_of
from neuroshard.distributed._shards import LocalShard, local_shards
from neuroshard.errors import TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

_numbers = itertools.count()
_open: "weakref.WeakSet[Session]" = weakref.WeakSet()


class Session:
    """A plan's tables, open on this rank. All ranks of the group open them together: a difference
    between ranks, or a failure on one, is an error on all before anything is built."""

    def __init__(self, plan: Plan, problem: ShardingProblem,
                 process_group: dist.ProcessGroup | None, artifact: str | os.PathLike | None,
                 name: str | None, threads: int | None, tier_directory: pathlib.Path | None,
                 engine: Engine, policy: _operators.GradientPolicy) -> None:
        self.engine, self.policy = engine, policy
        self.threads, self.tier_directory = threads, tier_directory
        self.group = process_group
        self.rank, self.size = rank_of(process_group), size_of(process_group)
        self.name = name or f"neuroshard_{next(_numbers)}"
        problem = plan.complete(problem)
        together(lambda: self._check(plan, problem), process_group, "the check of plan and problem")
        require_same({"code version": code_version(), "torch version": torch.__version__,
                      **fingerprints(plan, problem)}, process_group,
                     "all ranks must build the same model; neuroshard.distributed.plan gives "
                     "the plan of rank 0 to all")
        folder = self._artifact(plan, problem, artifact)
        self.manifest = Manifest.read(folder)
        self.input = only_input_of(self.manifest)
        self.joins = self.manifest.joins
        self._own_groups: list[dist.ProcessGroup] = []
        try:
            together(lambda: self._join(folder, threads, tier_directory), process_group,
                     "opening the tables")
        except BaseException:
            self._leave()  # others may have failed, and this rank not
            raise
        self._shapes = shapes_of(self.manifest)
        self.results = self._shapes.results
        self.result_names = [self.input.features[one.feature] for one in self.results]
        self.table_names = [table["name"] for table in self.manifest.plain["tables"]]
        _operators.add_model(self.name, self._shapes, policy)
        _open.add(self)

    def _check(self, plan: Plan, problem: ShardingProblem) -> None:
        self.engine.load()
        if plan.device_count != self.size:
            raise ValueError(
                f"the plan is for {counted(plan.device_count, 'device')}, but the group has "
                f"{counted(self.size, 'rank')}"
                + ("" if dist.is_initialized() else "; torch.distributed is not initialised"))
        plan.verify(problem)
        own = [feature.name for feature in problem.features
               if feature.batch not in (0, problem.batch.global_size)]
        if own:
            raise ValueError(f"feature \"{own[0]}\" has a batch of its own; all features of a "
                             "collection must have one batch")
        odd = [feature.name for feature in problem.features
               if feature.weighted and feature.pooling != "sum"]
        if odd:
            raise ValueError(f"feature \"{odd[0]}\" has sample weights, which are for pooling "
                             "\"sum\" only")

    def _artifact(self, plan: Plan, problem: ShardingProblem,
                  given: str | os.PathLike | None) -> pathlib.Path:
        if given is not None:
            folder = pathlib.Path(given)
            together(lambda: check_artifact(folder, plan, problem), self.group,
                     "reading the artifact")
            return folder
        leaders = host_leaders(self.group)

        def make() -> pathlib.Path:
            return make_artifact(plan, problem, self.engine.device.compile_options)

        together(make, self.group, "compiling the plan", leaders)
        return together(make, self.group, "compiling the plan")

    def _join(self, folder: pathlib.Path, threads: int | None,
              tier_directory: pathlib.Path | None) -> None:
        if self.size > 1:
            device = self.engine.device
            self._own_groups = make_groups(self.group, device.backend, device.place,
                                           self.manifest.relays)
        if threads is None:
            threads = max(1, (os.cpu_count() or 1) // local_ranks())
        self.engine.join(self.name, folder,
                         [group.group_name for group in self._own_groups], threads,
                         tier_directory=tier_directory)

    def add_group(self) -> dist.ProcessGroup | None:
        """A further group of the ranks, for exchanges between hosts, that is closed with the tables; None
        on one rank."""
        if self.size == 1:
            return None
        self._own_groups.append(watched_group_of(self.group).new_group("gloo"))
        return self._own_groups[-1]

    def shards(self) -> tuple[LocalShard, ...]:
        self.require_open()
        self.engine.settle()
        return local_shards(self.engine.shard_tensors, self.manifest, self.rank)

    def require_alike(self) -> None:
        """Raises a TensorError, on all ranks alike, if copies have drifted apart."""
        self.require_open()
        require_alike(self.manifest, self.engine)

    def caches(self) -> dict[str, CacheFigures]:
        self.require_open()
        return cache_figures(self.engine.cache_figures, self.manifest, self.rank)

    def all_ranks(self, value: bool) -> bool:
        """Whether it is true on all of them."""
        if self.size == 1:
            return value
        return bool(self._reduced(float(value), dist.ReduceOp.MIN))

    def total(self, value: float) -> float:
        """The sum over all ranks."""
        return value if self.size == 1 else self._reduced(value, dist.ReduceOp.SUM)

    def _reduced(self, value: float, operation: dist.ReduceOp) -> float:
        number = torch.tensor(value, dtype=torch.float64, device=self.engine.device.place)
        dist.all_reduce(number, op=operation, group=self._own_groups[0])
        return number.item()

    def refuse(self, text: str) -> None:
        """Ends the step that the other ranks start, with the error of this rank's arguments."""
        if self in _open:
            self.engine.refuse(text)

    def require_open(self) -> None:
        if self not in _open:
            raise TensorError("the tables have been closed")

    def replace(self, other: Session) -> None:
        """Closes another session of this rank and takes its name, by which traced programs know it."""
        other.close()
        _operators.remove_model(self.name)
        self.engine.rename(other.name)
        self.name = other.name
        _operators.add_model(self.name, self._shapes, self.policy)

    def close(self) -> None:
        """Frees the tables; tensors on them must not be used any more. Later calls do nothing."""
        if self not in _open:
            return
        _open.discard(self)
        _operators.remove_model(self.name)
        self._leave()

    def _leave(self) -> None:
        self.engine.close()
        for group in self._own_groups:
            with contextlib.suppress(ValueError):  # if it was destroyed with all groups
                dist.destroy_process_group(group)
        self._own_groups = []


def make_groups(group: dist.ProcessGroup | None, backend: str, place: torch.device,
                relays: bool) -> list[dist.ProcessGroup]:
    """The groups for Engine.join, of the ranks of a group. NCCL sends what one group has to send one
    after the other, and what relays send on needs another. It connects a group at its first
    collective, for which the host waits until all ranks come: here, not in a step."""
    groups = [watched_group_of(group).new_group(backend)]
    if "nccl" in backend:
        if relays:
            groups.append(watched_group_of(group).new_group("nccl"))
        for one in groups:
            dist.all_reduce(torch.zeros(1, device=place), group=one)
    return groups


def fingerprints(plan: Plan, problem: ShardingProblem) -> dict[str, str]:
    """Hashes of everything that must be equal on all ranks. The plan is last: where models or
    topologies differ, their plans do, too."""
    def short(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    plain = json.loads(problem.to_json())
    return {"model": short(json.dumps([plain["tables"], plain["features"], plain["batch"]],
                                      sort_keys=True)),
            "topology": short(json.dumps(plain.get("topology"), sort_keys=True)),
            "plan": short(json.dumps(json.loads(plan.to_json())["shards"])
                          + plan.optimizer_semantics)}


@atexit.register
def _close_all() -> None:
    """Threads of open models must not outlive the interpreter."""
    if is_forked():
        return
    for session in list(_open):
        session.engine.close()
