"""Cost models: the base class for a user's own, and how one is chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple, Union

from neuroshard import _planner
from neuroshard._planner import DeviceClass, ShardSet, ShardWork
from neuroshard.errors import CostModelError
from neuroshard.problem import ShardingProblem
from neuroshard.topology import Topology

__all__ = ["CostModel", "DeviceClass", "Direction", "ShardSet", "ShardWork", "Time", "Traffic"]

Direction = Literal["input", "forward", "backward"]
Time = Union[float, tuple[float, float]]


class Traffic(NamedTuple):
    """What the devices exchange in one direction per step, a number per device.

    dims: columns of the device's shards, each counted once per feature that reads it (0 for
    the direction "input"). bytes_out, bytes_in: the part that stays on the device included.
    """

    dims: list[float]
    bytes_out: list[float]
    bytes_in: list[float]
    topology: Topology


class CostModel:
    """Predicts times, in milliseconds. Derive from it and write both methods.

    The search calls them very often, from several threads, one at a time; they must depend on
    nothing but their arguments, or plans will not be repeatable. An exception in one of them
    ends the search and comes out of plan(). name, by default that of the class, goes into the
    plan's provenance. Set monotone
    to True if more shards on a device never make its compute faster, joined pieces are never
    slower, and more to exchange never makes an exchange faster: small problems then get an
    exact lower bound.
    """

    name: str = ""
    monotone: bool = False

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def compute_ms(self, shard_sets: Sequence[ShardSet]) -> Sequence[Time]:
        """Time of one fused run of each set of shards, all on one device.

        One (forward, backward) per set; or always one number for both together, and then the
        model serves only objective="published". No set is empty.
        """
        raise NotImplementedError(f"{type(self).__name__}.compute_ms")

    def communication_ms(self, traffic: Traffic, skews: Sequence[float] | None = None,
                         direction: Direction = "forward") -> Sequence[float]:
        """Time of the exchange for each device.

        direction: "input" (ids to the owners), "forward" (results to the batch) or "backward"
        (gradients to the owners). skews: how much later than the first each device starts;
        None: all at once.
        """
        raise NotImplementedError(f"{type(self).__name__}.communication_ms")


def model_for(cost_model: object, problem: ShardingProblem) -> _planner.Model:
    """The model that `cost_model` names or is, ready for the problem."""
    if isinstance(cost_model, CostModel):
        return _planner.Model.of_python(cost_model, problem.topology, problem._native)
    if isinstance(cost_model, os.PathLike):
        cost_model = os.fspath(cost_model)
    if isinstance(cost_model, (list, tuple)):
        cost_model = ",".join(os.fspath(path) for path in cost_model)
    if isinstance(cost_model, str):
        return _planner.Model.by_name(cost_model, problem._native)
    hint = "; an instance, not the class" if isinstance(cost_model, type) else ""
    raise CostModelError("cost_model: expected a name ('auto', 'roofline', 'reference'), model "
                         f"files, or an object derived from neuroshard.CostModel{hint}, "
                         f"got: {cost_model!r}")
