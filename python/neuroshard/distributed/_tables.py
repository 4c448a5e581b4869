"""The tables of an artifact for one device, as a module of PyTorch."""

from __future__ import annotations

import itertools
import os
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from neuroshard import _fields
from neuroshard._artifact.manifest import Manifest
from neuroshard._jagged import Jagged, as_jagged, without_unread_weights
from neuroshard.distributed import _arguments, _operators
from neuroshard.distributed._caches import CacheFigures, cache_figures
from neuroshard.distributed._device import pick_device
from neuroshard.distributed._engine import Engine
from neuroshard.distributed._inputs import (Input, as_tensors, inputs_of, names_of_results,
                                            shapes_of)
from neuroshard.distributed._optimizer import FusedOptimizer, Learning
from neuroshard.distributed._outputs import of_batches
from neuroshard.distributed._shards import LocalShard, local_shards
from neuroshard.distributed._updates import OneRank, UpdateArguments, Updates
from neuroshard.errors import TensorError

_numbers = itertools.count()


class EmbeddingTables(Learning, torch.nn.Module):
    """The tables of an artifact for one device: a model that is compiled, with any inputs, plan of
    one device and optimizers, and needs no process group.

    Called with one argument for each input of the model it gives {name: result}, whose backward
    also updates the tables: they are no parameters, and other optimizers do not see them.

    artifact: a folder of neuroshard-compile, with --training to train. device: of ids, tables and
    results, as for the sharded collections (docs/devices.md). seed: of the first weights. name: what
    traced programs call the tables; give one to what is exported. threads: None: the machine's.
    tier_directory: where files of shards in tier "ssd" are made; None: where
    NEUROSHARD_TIER_DIRECTORY says (docs/tiers.md). learning_rate, update_at, update_every, grad_scaler: as of
    ShardedEmbeddingBagCollection.

    check_every: calls between two calls of check(). On GPUs kernels read ids where they are and
    check them then, so that the host waits for nothing in a step; a wrong id reads the first row
    of its table until check() tells of it. 0: never; 1: ids are checked before they are used, as
    on CPUs always: then a wrong one ends the step at once, and nothing changes."""

    def __init__(self, artifact: str | os.PathLike, *,
                 device: torch.device | str | int | None = None,
                 learning_rate: float | Sequence[Mapping[str, Any]] = 0.01,
                 seed: int = 0, name: str | None = None, check_every: int = 100,
                 threads: int | None = None,
                 tier_directory: str | os.PathLike | None = None,
                 update_at: str = "backward", update_every: int = 1,
                 grad_scaler: torch.amp.GradScaler | None = None) -> None:
        super().__init__()
        folder = Path(_fields.path(artifact, "artifact"))
        self._check_every = _fields.whole(check_every, "check_every")
        if self._check_every < 0:
            raise ValueError(f"check_every: expected a number from 0, found {check_every}")
        # Plain tensors: optimizers, to() and DistributedDataParallel would change parameters and
        # buffers.
        self._anchor = torch.zeros((), dtype=torch.float32, device="cpu", requires_grad=True)
        updates = UpdateArguments(update_at, update_every, grad_scaler)
        self._engine = Engine(pick_device(device))
        self._name = _arguments.name(name) or f"embedding_tables_{next(_numbers)}"
        self._calls = 0
        self._open(folder, _arguments.seed(seed), _arguments.threads(threads),
                   _arguments.tier_directory(tier_directory))
        self._manifest = Manifest.read(folder)
        self._inputs, self._names = inputs_of(self._manifest), names_of_results(self._manifest)
        self._trainable = any(table["optimizer"] for table in self._manifest.plain["tables"])
        names = [table["name"] for table in self._manifest.plain["tables"]]
        self._optimizer = FusedOptimizer(learning_rate, names)
        self._updates = Updates(updates, self._optimizer, division=False)
        self._updates.use(self._engine, names, OneRank())
        self._shapes = shapes_of(self._manifest)
        _operators.add_model(self._name, self._shapes, self._updates)

    def _open(self, folder: Path, seed: int, threads: int | None,
              tier_directory: Path | None) -> None:
        self._engine.load()
        try:
            self._engine.join(self._name, folder, (), threads or os.cpu_count() or 1,
                              checks_late=self._check_every != 1,
                              tier_directory=tier_directory)
        except ValueError as error:  # whatever is wrong with the artifact
            raise TensorError(str(error)) from None
        self._end = weakref.finalize(self, close, self._engine, self._name)
        self._is_open = True  # tracers cannot look at _end
        self._engine.initialize(seed)

    # Properties

    @property
    def name(self) -> str:
        """The name of the tables in traced programs."""
        return self._name

    @property
    def device(self) -> torch.device:
        """Where ids, tables and results are."""
        return self._engine.device.place

    @property
    def names(self) -> list[str]:
        """Names of the results: the feature, or feature@table if several lookups read it."""
        return list(self._names)

    @property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """The features of each input, in the order of forward's arguments."""
        return {one.key: one.features for one in self._inputs}

    @property
    def step(self) -> int:
        """Updates so far."""
        self._require_open()
        return self._engine.num_updates()

    def shards(self) -> tuple[LocalShard, ...]:
        """The shards as tensors on their own memory: writing to them is allowed. Of a shard in
        a lower tier they are views of it in memory of the host, current until the next step: call
        this again after it."""
        self._require_open()
        self._engine.settle()
        return local_shards(self._engine.shard_tensors, self._manifest, rank=0)

    def caches(self) -> dict[str, CacheFigures]:
        """What the row caches of shards in lower tiers have done so far, by shard."""
        self._require_open()
        return cache_figures(self._engine.cache_figures, self._manifest, rank=0)

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The tables' own memory, by table (TABLE.SHARD if it has several)."""
        return {name: shard.weights for name, shard in self._named_shards()}

    @property
    def states(self) -> dict[str, dict[str, torch.Tensor]]:
        """Optimizer states by table, then by the name that torch.optim has for the state."""
        return {name: shard.states for name, shard in self._named_shards()}

    def _named_shards(self) -> list[tuple[str, LocalShard]]:
        shards = self.shards()
        count = Counter(shard.table for shard in shards)
        return [(shard.table if count[shard.table] == 1 else f"{shard.table}.{shard.name}", shard)
                for shard in shards]

    def extra_repr(self) -> str:
        return f"name={self._name!r}, device={self._engine.device.name!r}, results={self._names}"

    # Steps

    def forward(self, *inputs: object) -> dict[str, torch.Tensor]:
        """inputs: of each input of the model a KeyedJaggedTensor, a Jagged or (ids, offsets[, weights])
        with all its features one after the other, or {feature: (ids, offsets[, weights]) or ids
        [batch, pooling]}."""
        self._require_open()
        if len(inputs) != len(self._inputs):
            names = "; ".join(one.name for one in self._inputs)
            raise TensorError(f"expected {len(self._inputs)} inputs, of the features {names}, "
                              f"found {len(inputs)}")
        made = [complete(as_jagged(given, one), given, one) for given, one in zip(inputs, self._inputs)]
        self._check_now_and_then()
        ticket = self._engine.start(*made)
        # A backward of weights says that the artifact has no update, if it has none.
        asks = self._trainable or any(one.weights is not None and one.weights.requires_grad for one in made)
        learns = self.training and asks and torch.is_grad_enabled()
        results = self._engine.wait(ticket, *made,
                                    anchor=self._anchor if learns else None)
        rest, own = iter(results), []
        for ids, shapes in zip(made, self._shapes.inputs):
            own += of_batches([next(rest) for _ in shapes.results], shapes.results, ids)
        return dict(zip(self._names, own))

    def _check_now_and_then(self) -> None:
        if torch.compiler.is_compiling() or self._check_every <= 1:
            return
        self._calls += 1
        if self._calls % self._check_every == 0 and not is_capturing():
            self.check()

    def check(self) -> None:
        """Waits for the steps so far. Raises a ValueError if ids or offsets since the last check
        were wrong."""
        self._require_open()
        self._engine.settle()

    def before_replay(self) -> None:
        """To be called before each replay of a CUDA graph that updates: counts the update and sets
        its learning rate, on the current stream."""
        self._require_open()
        self._engine.advance(self._updates.rates())

    def close(self) -> None:
        """Frees the tables; tensors on them must not be used any more. Later calls do nothing."""
        self._is_open = False
        self._end()

    def _require_open(self) -> None:
        if not self._is_open:
            raise TensorError(f"the embedding tables \"{self._name}\" are closed")

    # Hooks of nn.Module

    def _apply(self, fn, recurse=True):
        """to() and half() do not change tables: device and type are those of the artifact."""
        return self

    def __reduce_ex__(self, protocol: int) -> object:
        """Refused: a copy would share the tables."""
        raise TypeError("EmbeddingTables cannot be copied or pickled; open the artifact again, and "
                        "load its state_dict()")

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {f"{name}.{key}": value for name, shard in self._named_shards()
                for key, value in {"weight": shard.weights, **shard.states}.items()}

    def get_extra_state(self) -> dict[str, float]:
        rates = self._optimizer.learning_rates
        return {"step": self.step, "learning_rate": rates if len(rates) > 1 else rates[0]}

    def set_extra_state(self, state: Mapping[str, float]) -> None:
        try:
            step = _fields.update_count(state["step"], "step")
            rate = state["learning_rate"]
            if not isinstance(rate, (list, tuple)):
                rate = _fields.learning_rate(rate)
        except (KeyError, TypeError, ValueError) as error:
            raise TensorError("_extra_state: expected {\"step\": ..., \"learning_rate\": ...}, as "
                              f"state_dict() of tables has it, found {_fields.shown(state)} "
                              f"({error})") from None
        self.set_learning_rate(rate)
        self._engine.set_num_updates(step)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({prefix + key: value for key, value in self._tensors().items()})

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):
        tensors = {prefix + key: value for key, value in self._tensors().items()}
        rest = {key: value for key, value in state_dict.items() if key not in tensors}
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)
        for key, value in tensors.items():
            given = state_dict.get(key)
            if given is None:
                missing_keys.append(key)
            elif not isinstance(given, torch.Tensor) or given.device.type == "meta":
                error_msgs.append(f"{key}: expected a tensor with values, found "
                                  f"{_fields.shown(given)}")
            elif given.shape != value.shape or given.dtype != value.dtype:
                error_msgs.append(f"{key}: expected {tuple(value.shape)} {value.dtype}, found "
                                  f"{tuple(given.shape)} {given.dtype}")
            else:
                value.copy_(given)


def close(engine: Engine, name: str) -> None:
    _operators.remove_model(name)
    engine.close()


def complete(ids: Jagged, features: object, expected: Input) -> Jagged:
    """The ids of an input as operators take them. Raises a TensorError for what does not fit. features: what the ids
    were given as."""
    if not expected.weighted:
        ids = without_unread_weights(ids, features, f"input \"{expected.name}\"")
    elif ids.weights is None:
        raise TensorError(f"input \"{expected.name}\": expected weights, as the model was written, found none")
    return as_tensors(ids, expected)


def is_capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
