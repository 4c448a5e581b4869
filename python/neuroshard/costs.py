"""Cost models: the base class for a user's own, and how one is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import metadata
from typing import Any, Literal, NamedTuple, Union

from neuroshard import _fields, _planner
from neuroshard._html import html_table
from neuroshard._planner import DeviceClass, ShardSet, ShardWork, device_classes, read_device_classes
from neuroshard.errors import CostModelError, UnknownCostModel
from neuroshard.problem import ShardingProblem
from neuroshard.topology import Topology

__all__ = ["CostModel", "DeviceClass", "Direction", "ModelChoice", "ShardSet", "ShardWork", "Time",
           "Traffic", "device_classes", "load_device_classes"]

Direction = Literal["input", "forward", "backward"]
Time = Union[float, tuple[float, float]]


def load_device_classes(path: str | os.PathLike[str]) -> dict[str, DeviceClass]:
    """The device classes that a file defines, by name. path: of a file of classes, a machine file or a workload.
    Raises an Error for a file that cannot be read, or has a class that is none."""
    return {one.name: one for one in read_device_classes(_fields.path(path, "load_device_classes"))}


def restored_device_class(definition: dict[str, Any]) -> DeviceClass:
    """The class with this definition(), for copies and pickles."""
    return device_classes().get(definition["name"]) or DeviceClass(**definition)


def _class_html(one: DeviceClass) -> str:
    return html_table(f"{one.name}, {one.kind}" + (f", like {one.like}" if one.like else ""),
                      ("figure", "value", "what", "source"),
                      [(field, f"{value:,}" if isinstance(value, int) else f"{value:g}", meaning, source)
                       for field, value, meaning, source in one.figures()])


DeviceClass._repr_html_ = _class_html  # type: ignore[attr-defined]


class Traffic(NamedTuple):
    """What the devices exchange in one direction per step, a number per device.

    dims: columns of the device's shards, each counted once per feature that reads it (0 for
    the direction "input"). bytes_out, bytes_in: the part that stays on the device included. topology: the
    devices and their links.
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

        shard_sets: what is asked for, each a ShardSet that is not empty. One (forward, backward) per set; or always
        one number for both together, and then the model serves only objective="published".
        """
        raise _missing(self, "compute_ms")

    def communication_ms(self, traffic: Traffic, skews: Sequence[float] | None = None,
                         direction: Direction = "forward") -> Sequence[float]:
        """Time of the exchange for each device.

        traffic: what they exchange. direction: "input" (ids to the owners), "forward" (results to the
        batch) or "backward" (gradients to the owners). skews: how much later than the first each device starts;
        None: all at once.
        """
        raise _missing(self, "communication_ms")


# The group of entry points by which installed packages name cost models.
ENTRY_POINTS = "neuroshard.cost_models"

# What cost_model= may be: a name, a model file or several, a user's own model.
ModelChoice = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], CostModel]


def _missing(model: CostModel, method: str) -> NotImplementedError:
    return NotImplementedError(f"{type(model).__name__}.{method}: the cost model does not have "
                               "this method; derive from neuroshard.CostModel and write it")


def model_for(cost_model: ModelChoice, problem: ShardingProblem) -> _planner.Model:
    """The model that `cost_model` names or is, ready for the problem."""
    if isinstance(cost_model, CostModel):
        return _own(cost_model, "", problem)
    if isinstance(cost_model, (str, os.PathLike)):
        cost_model = (cost_model,)
    if isinstance(cost_model, (list, tuple)):
        names = [_fields.path(one, "cost_model") for one in cost_model]
        installed = _installed(names[0]) if len(names) == 1 else None
        if installed is not None:
            return _own(*installed, problem)
        return _named(",".join(names), problem)
    hint = "; an instance, not the class" if isinstance(cost_model, type) else ""
    raise TypeError("cost_model: expected a name ('auto', 'roofline', 'reference'), model "
                    f"files, or an object derived from neuroshard.CostModel{hint}, "
                    f"got: {_fields.shown(cost_model)}")


def _named(name: str, problem: ShardingProblem) -> _planner.Model:
    """One of ours, one of a library (NEUROSHARD_COST_MODEL_PLUGINS), or a file's."""
    try:
        return _planner.Model.by_name(name, problem._native)
    except UnknownCostModel as error:
        others = sorted({point.name for point in metadata.entry_points(group=ENTRY_POINTS)})
        if not others:
            raise
        (where, message), *rest = error.diagnostics
        message += f"; installed packages have {', '.join(others)}"
        raise UnknownCostModel([(where, message), *rest]) from None


def _installed(name: str) -> tuple[CostModel, str] | None:
    """The cost model that an installed package gives this name, if one does, and where it comes from, for errors."""
    if _planner.is_built_in_cost_model(name):
        return None
    points = tuple(metadata.entry_points(group=ENTRY_POINTS, name=name))
    if not points:
        return None
    where = f"cost model {name!r}"
    packages = sorted({point.dist.name if point.dist else point.value for point in points})
    if len(points) > 1:
        raise CostModelError(f"{where}: expected one package with this name, got: "
                             f"{', '.join(packages)}; uninstall all but one")
    where += f" (entry point {points[0].value} of the package {packages[0]})"
    with _blamed(f"{where}: cannot be loaded"):
        model = points[0].load()
        if not isinstance(model, CostModel) and callable(model):
            model = model()
    if not isinstance(model, CostModel):
        raise CostModelError(f"{where}: expected an object derived from neuroshard.CostModel, or a class or function "
                             f"that makes one when called without arguments, got: {_fields.shown(model)}")
    return model, where


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    """Whatever a package raises, SystemExit too, is a CostModelError that says what went wrong."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CostModelError(": ".join(filter(None, (what, type(error).__name__, str(error))))) from error


def _own(model: CostModel, origin: str, problem: ShardingProblem) -> _planner.Model:
    """The planner's handle of a model. origin: of an installed one, where it comes from; else empty."""
    with _blamed(f"{origin}: cannot be read") if origin else nullcontext():
        name, monotone = model.name, model.monotone
    kind = type(model).__name__
    try:
        _fields.text(name, f"{kind}.name")
    except (TypeError, ValueError) as error:
        raise CostModelError(str(error)) from None
    if _planner.is_built_in_cost_model(name):
        raise CostModelError(f"{kind}.name: expected another name than those of NeuroShard's own models and of files, "
                             f"which the plan would seem to be made with, got: {name!r}")
    if not isinstance(monotone, bool):
        raise CostModelError(f"{kind}.monotone: expected True or False, "
                             f"got: {_fields.shown(monotone)}")
    return _planner.Model.of_python(model, name, monotone, origin, problem.topology, problem._native)
