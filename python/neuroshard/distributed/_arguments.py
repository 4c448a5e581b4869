"""Arguments that the modules have in common. Each function raises a TypeError or ValueError for what is
none, and else gives the value."""

from __future__ import annotations

from pathlib import Path

from neuroshard import _fields
from neuroshard._artifact.dtypes import DTYPES
from neuroshard._artifact.manifest import load_manifest
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem

MOST_THREADS = 1024  # As lib/Runtime/World takes.


def types(plan: object, problem: object, gradient_division: object) -> None:
    for what, value, wanted in (("plan", plan, Plan), ("problem", problem, ShardingProblem),
                                ("gradient_division", gradient_division, bool)):
        if not isinstance(value, wanted):
            raise TypeError(f"{what}: expected a {wanted.__name__}, found {_fields.shown(value)}")


def frozen_tables(problem: ShardingProblem, artifact: object, row_order: object) -> None:
    """Checks that tables whose rows no step trains have weights: those of a frozen folder, which are by id."""
    odd = [table for table in problem.tables if table.type not in DTYPES]
    if odd and artifact is None:
        raise ValueError(f"table \"{odd[0].name}\" has rows of {odd[0].type}, which are not trained: expected artifact= "
                         f"of a folder of neuroshard.freeze, which has its weights, or a table of {', '.join(DTYPES)}")
    if row_order and artifact is not None and load_manifest(artifact).get("weights"):
        raise ValueError(f"row_order: the tables frozen in {artifact} have their ids as rows, whatever order they were "
                         "trained in; leave row_order out, and plan with statistics by id, which neuroshard profile "
                         "makes without --reorder")


def features(problem: ShardingProblem, unpooled: bool) -> None:
    """Checks those of one collection. Of lookups alone, features without weights read none."""
    for feature in problem.features:
        if (feature.pooling == "none") != unpooled:
            said, other = ("pooled", "Bag") if unpooled else ("not pooled", "")
            raise ValueError(f"feature \"{feature.name}\" is {said}; use ShardedEmbedding{other}Collection")
    if problem.mode == "training" and len({feature.weighted for feature in problem.features}) > 1:
        raise ValueError("some features have sample weights and some have none; all features of a collection must, or "
                         "none, to be trained")


def seed(value: object) -> int:
    if not is_whole(value) or not -2**63 <= value < 2**63:
        raise ValueError(f"seed: expected a number of 64 bits with sign, found {_fields.shown(value)}")
    return value


def name(value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and value and value.isprintable()):
        raise ValueError(f"name: expected printable text, or None, found {_fields.shown(value)}")
    return value


def threads(value: object) -> int | None:
    if value is not None and not (is_whole(value) and 1 <= value <= MOST_THREADS):
        raise ValueError(f"threads: expected a number from 1 to {MOST_THREADS}, or None, "
                         f"found {_fields.shown(value)}")
    return value


def tier_directory(value: object) -> Path | None:
    if value is None:
        return None
    named = _fields.path(value, "tier_directory")
    try:
        found = bool(named) and Path(named).is_dir()
    except OSError:  # no name that the system has
        found = False
    if not found:
        raise ValueError(f"tier_directory: expected a directory, found {_fields.shown(named)}")
    return Path(named).resolve()


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
