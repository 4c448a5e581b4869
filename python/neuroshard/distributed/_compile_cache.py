"""Compiles plans, and keeps the artifacts in a cache for the next run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import stat
import tempfile
from collections.abc import Sequence

from neuroshard import _fields, _planner
from neuroshard._native.compiler import compiler_path, run
from neuroshard.errors import CompileError, TensorError
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem


def cache_folder() -> pathlib.Path:
    """NEUROSHARD_CACHE, or neuroshard in the user's cache folder."""
    if named := os.environ.get("NEUROSHARD_CACHE"):
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "neuroshard"


def processor() -> str:
    """The processor's model and features, on which machine code depends: machines of different
    kinds may share one cache."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = {line.split(":")[0].strip(): line for line in file if ":" in line}
    except OSError:
        return ""
    return "".join(lines.get(name, "") for name in ("model name", "flags", "Features"))


def artifact_key(plan: Plan, problem: ShardingProblem, options: Sequence[str] = ()) -> str:
    """A hash of everything the artifact depends on: plan, problem, options, compiler, processor."""
    compiler = compiler_path().stat()
    digest = hashlib.sha256()
    for part in (plan.to_json(), problem.to_json(), processor(),
                 f"{compiler.st_size} {compiler.st_mtime_ns}", *options):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def make_artifact(plan: Plan, problem: ShardingProblem,
                  options: Sequence[str] = ()) -> pathlib.Path:
    """The artifact's folder in the cache; compiles it if it is not there, or not as it was written.

    Ranks on one host share the cache: one of them should call this before the others. Raises a
    CompileError if the cache cannot be written, or belongs to or may be changed by another user:
    artifacts are code that this process runs."""
    folder = cache_folder() / artifact_key(plan, problem, options)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_private(folder.parent)
        if not is_intact(folder):
            compile_into_cache(plan, problem, folder, options)
    except OSError as error:
        raise CompileError(f"cannot keep compiled plans in {folder.parent}: {error.strerror}; "
                           "NEUROSHARD_CACHE names another folder") from error
    return folder


def require_private(folder: pathlib.Path) -> None:
    """Raises a CompileError if another user, who is not root, can put files there."""
    status = folder.stat()
    found = ""
    if status.st_uid not in (os.getuid(), 0):
        found = f"belongs to user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        found = "may be written by other users"
    if found:
        raise CompileError(f"{folder} {found}, and this process would run the code in it; take "
                           "that right away (chmod go-w), or name another folder by "
                           "NEUROSHARD_CACHE")


def is_intact(folder: pathlib.Path) -> bool:
    """Whether the folder holds an artifact as it was written."""
    if not folder.is_dir():
        return False
    require_private(folder)
    try:
        _planner.check_artifact(os.fspath(folder))
    except TensorError:
        return False
    return True


def compile_into_cache(plan: Plan, problem: ShardingProblem, folder: pathlib.Path,
                       options: Sequence[str]) -> None:
    """Puts an intact artifact at `folder` in one step, unless another process has done so."""
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
        made = pathlib.Path(scratch) / "artifact"
        compile_plan(plan, problem, made, options)
        made.chmod(0o700)
        if is_intact(folder):
            return  # another process was faster
        with contextlib.suppress(FileNotFoundError):
            folder.rename(pathlib.Path(scratch) / "before")
        try:
            made.rename(folder)
        except OSError:
            if not is_intact(folder):
                raise


def compile_plan(plan: Plan, problem: ShardingProblem, folder: str | os.PathLike,
                 options: Sequence[str] = (), *, training: bool = True) -> None:
    """Compiles a problem's tables and features by a plan into a folder, which appears once it is complete.
    options: further options of neuroshard-compile. training: with updates. Raises an InvalidPlan for a plan that is
    none of the problem, and a CompileError with what the compiler says."""
    for what, value, wanted in (("plan", plan, Plan), ("problem", problem, ShardingProblem)):
        if not isinstance(value, wanted):
            raise TypeError(f"compile_plan: {what}: expected a {wanted.__name__}, got: {_fields.shown(value)}")
    # Pins and fixed shards would become a second plan in the IR.
    problem = problem.replace(constraints=problem.constraints.replace(pins=(), fixed_shards=()))
    plan.verify(problem)
    compiler = compiler_path()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        problem.save(scratch / "workload.json")
        plan.save(scratch / "plan.json")
        run(compiler.with_name("neuroshard-translate"), "--workload-to-mlir",
            scratch / "workload.json", "-o", scratch / "model.mlir", scratch=scratch)
        run(compiler, scratch / "model.mlir", "--plan", scratch / "plan.json",
            *(["--training"] if training else []), *options, "-o", folder, scratch=scratch)
