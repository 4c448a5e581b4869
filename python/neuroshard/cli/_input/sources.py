"""Reads workloads and plans, from JSON files or from functions in Python files."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import neuroshard as ns
from neuroshard.cli._failures import InputError, UserCodeError, place_of


def load_workload(source: str, *, topology: str | None = None, batch: int | None = None,
                  optimizer: str | None = None,
                  mean_pooling: Mapping[str, float] | None = None) -> ns.ShardingProblem:
    """The problem of workload.json or model.py:function. topology and batch replace its own;
    optimizer and mean_pooling complete a torch module, which does not have them."""
    if names_function(source):
        made = call(source)
        if not isinstance(made, ns.ShardingProblem):
            made = of_module(made, source, topology, batch, optimizer, mean_pooling)
        elif optimizer or mean_pooling:
            raise InputError(f"{source} gives a whole problem: --optimizer and --mean-pooling are "
                             "for torch modules; set them there")
    elif optimizer or mean_pooling:
        raise InputError(f"{source} says optimizers and pooling itself: --optimizer and "
                         "--mean-pooling are for torch modules")
    else:
        made = ns.ShardingProblem.load(existing(source, "a workload"))
    if topology is not None:
        made = made.replace(topology=topology)
    if batch is not None and batch != made.batch.global_size:
        made = made.replace(batch=made.batch.replace(global_size=batch))
    return made


def with_topology(problem: ns.ShardingProblem, source: str) -> ns.ShardingProblem:
    if problem.topology is None:
        raise InputError(f"{source} names no devices: add --topology, for instance "
                         "--topology 8xH200")
    return problem


def load_plan(path: str) -> ns.Plan:
    return ns.Plan.load(existing(path, "a plan"))


def check_output(path: str | None, inputs: Iterable[str | None]) -> None:
    """Raises if a result could not be written, before planning, which may take minutes."""
    if path is None:
        return
    if any(one is not None and os.path.exists(one) and os.path.exists(path)
           and os.path.samefile(one, path) for one in inputs):
        raise InputError(f"{path} is an input; name another file to write")
    ns._planner.check_writable(path)


def existing(path: str, what: str) -> str:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; expected the file of {what}")
    if not os.path.exists(path):
        raise InputError(f"there is no file {path}; expected {what}")
    return path


def names_function(source: str) -> bool:
    return ".py:" in source or source.endswith(".py")


def function_of(source: str) -> Callable[..., Any]:
    """The function that file.py:name names."""
    path, _, name = source.rpartition(":")
    if not path or not name.isidentifier():
        raise InputError(f"{source}: expected file.py:function, for instance model.py:build")
    path = os.path.abspath(existing(path, "Python code"))
    spec = importlib.util.spec_from_file_location("neuroshard_user_code", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # As with `python file.py`, it may import modules beside it.
    sys.path.insert(0, os.path.dirname(path))
    run_user_code(source, path, lambda: spec.loader.exec_module(module))
    found = getattr(module, name, None)
    if not callable(found):
        there = [key for key, value in vars(module).items()
                 if callable(value) and getattr(value, "__module__", "") == spec.name]
        raise InputError(f"{path} has no function {name}; it has {', '.join(there) or 'none'}")
    return found


def call(source: str) -> Any:
    """The result of the function that file.py:name names."""
    function = function_of(source)
    return run_user_code(source, os.path.abspath(source.rpartition(":")[0]), function)


def run_user_code(source: str, path: str, code: Callable[[], Any]) -> Any:
    try:
        return code()
    except SyntaxError as error:
        raise InputError(f"{source}: line {error.lineno}: {error.msg}") from error
    except ns.Error as error:
        raise InputError(f"{source}: {error} ({place_of(error, path)})") from error
    except Exception as error:
        raise UserCodeError(f"{source}: {type(error).__name__}: {error} "
                            f"({place_of(error, path)})") from error


def of_module(made: object, source: str, topology: str | None, batch: int | None,
              optimizer: str | None, mean_pooling: Mapping[str, float] | None
              ) -> ns.ShardingProblem:
    if not isinstance(made, Mapping) and not hasattr(made, "named_modules"):
        raise InputError(f"{source} gives a {type(made).__name__}; expected a ShardingProblem, a "
                         "torch module, or a dict of nn.EmbeddingBag or nn.Embedding by feature")
    try:
        from neuroshard.distributed import problem_of
    except ImportError as error:
        raise InputError(f"{source} gives a {type(made).__name__}, and reading its tables needs "
                         f"torch: {error}") from error
    if batch is None:
        raise InputError(f"{source} gives a {type(made).__name__}, which names no batch: add "
                         "--batch, the samples over all devices")
    if topology is None:
        raise InputError(f"{source} gives a {type(made).__name__}, which names no devices: add "
                         "--topology, for instance --topology 8xH200")
    tables = tables_in(made, source)
    pooling = dict(mean_pooling or {})
    return problem_of(tables, batch=batch, topology=topology, optimizer=optimizer or "sgd",
                      mean_pooling=pooling.pop("", 1) if set(pooling) <= {""} else pooling)


def tables_in(made: object, source: str) -> object:
    """The modules of a model that have tables: one collection of TorchRec, or all nn.EmbeddingBag
    and nn.Embedding by path."""
    import torch

    if not isinstance(made, torch.nn.Module) or isinstance(made, torch.nn.ModuleDict):
        return made
    collections = {path: one for path, one in made.named_modules()
                   if hasattr(one, "embedding_bag_configs") or hasattr(one, "embedding_configs")}
    inside = {id(part) for one in collections.values() for part in one.modules()}
    single = {path: one for path, one in made.named_modules() if id(one) not in inside
              and isinstance(one, (torch.nn.EmbeddingBag, torch.nn.Embedding))}
    if len(collections) + bool(single) > 1:
        raise InputError(f"{source}: the model has tables in several places "
                         f"({', '.join([*collections, *single])}); give one collection or a dict "
                         "of single modules, or a ShardingProblem of all")
    if collections:
        return next(iter(collections.values()))
    if not single:
        raise InputError(f"{source}: a {type(made).__name__} without tables; expected a "
                         "ShardingProblem, or a torch module with an EmbeddingBagCollection, an "
                         "EmbeddingCollection, nn.EmbeddingBag or nn.Embedding")
    return {path.replace(".", "_") or "table": one for path, one in single.items()}
