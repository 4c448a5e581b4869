"""A module of PyTorch over the compiled tables of a model."""

from __future__ import annotations

import os
from typing import NoReturn

import torch

from neuroshard import _fields
from neuroshard.cuda import count
from neuroshard.torch_cuda import _operators  # noqa: F401, defines torch.ops.neuroshard
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged, as_jagged, find_feature_begin, fixed_offsets
from neuroshard.torch_cuda._layout import Exchange
from neuroshard.torch_cuda._program import Program, Settings
from neuroshard.torch_cuda._step import Step, to_arguments


def flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got: {_fields.shown(value)}")
    return value


class EmbeddingTables(torch.nn.Module):
    """The tables of an artifact for one device, and all its lookups in one launch.

    In train() mode a backward also updates the tables, with the optimizers the model was
    compiled with: they have no parameters, and other optimizers do not see them. `weights` and
    `states` are the tables' own memory as tensors; state_dict() has them, too.

    artifact: a directory of neuroshard-compile, with --training to train. device: default the
    current CUDA device; "cpu" with the emulator as driver. seed: of the first weights. name:
    what traced programs call the tables; give one to what is exported. concatenate: one tensor
    with the results of all lookups side by side (`columns` says where), else a dict of them.
    check_every: calls between two calls of check(); 0: never. check_offsets: whether the values of
    offsets are checked, which waits for the GPU; on "cpu" they always are. join_sort: whether the
    stream waits for the sort of the ids right after the lookups, not before the update; None: only
    while a CUDA graph is captured."""

    def __init__(self, artifact: str | os.PathLike, *,
                 device: torch.device | str | int | None = None, learning_rate: float = 0.01,
                 seed: int = 0, name: str | None = None, concatenate: bool = False,
                 check_every: int = 100, check_offsets: bool = False,
                 join_sort: bool | None = None) -> None:
        super().__init__()
        learning_rate = _fields.learning_rate(learning_rate)
        settings = Settings(flag(concatenate, "concatenate"), count(check_every, "check_every"),
                            flag(check_offsets, "check_offsets"),
                            None if join_sort is None else flag(join_sort, "join_sort"))
        program = Program(artifact, name, device, seed, settings)
        self._program, self._name, self._layout = program, program.name, program.layout
        self._trainable, self._concatenate = program.trainable, concatenate
        # Plain tensors: optimizers, to() and DistributedDataParallel would change parameters and
        # buffers.
        self._anchor = torch.zeros((), device=program.place, requires_grad=True)
        self._token = torch.zeros((), device=program.place)
        self.set_learning_rate(learning_rate)

    # Properties

    @property
    def name(self) -> str:
        return self._name

    @property
    def device(self) -> torch.device:
        return self._program.place

    @property
    def names(self) -> list[str]:
        """Names of the results: the feature, or feature@table if several lookups read it."""
        return [result.name for result in self._layout.results]

    @property
    def columns(self) -> dict[str, slice]:
        """Where each result is in the tensor that has all (concatenate=True)."""
        return {result.name: slice(result.column, result.column + result.dim)
                for result in self._layout.results}

    @property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """The features of each input, in the order of forward's arguments."""
        return {exchange.key: exchange.features for exchange in self._layout.exchanges}

    @property
    def step(self) -> int:
        """Updates so far."""
        return self._program.step

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The tables' own memory, by table (TABLE.SHARD if it has several). With the emulator
        as driver they end with the tables."""
        return {table: slot["weight"] for table, slot in self._program.open_tables().items()}

    @property
    def states(self) -> dict[str, dict[str, torch.Tensor]]:
        """Optimizer states by table, then by the name that torch.optim has for the state."""
        return {table: {key: value for key, value in slot.items() if key != "weight"}
                for table, slot in self._program.open_tables().items()}

    def extra_repr(self) -> str:
        return f"name={self._name!r}, device={str(self.device)!r}, results={self.names}"

    # Steps

    def forward(self, *inputs: object) -> dict[str, torch.Tensor] | torch.Tensor:
        """One argument for each input of the model: inputs.as_jagged says in which forms."""
        exchanges = self._layout.exchanges
        if len(inputs) != len(exchanges):
            names = "; ".join(exchange.name for exchange in exchanges)
            raise TensorError(f"expected {len(exchanges)} inputs, of the features {names}, found "
                              f"{len(inputs)}")
        training = self.training and self._trainable and torch.is_grad_enabled()
        made = tuple(self._complete(number, as_jagged(given, exchanges[number]), training)
                     for number, given in enumerate(inputs))
        results = torch.ops.neuroshard.embedding_forward(
            self._name, self._anchor if training else None, self._token,
            *to_arguments(Step(self._layout, made)), training)
        if self._concatenate:
            return results[0].to(self._layout.results[0].final)
        return {result.name: results[result.group].to(result.final)
                for result in self._layout.results}

    def _complete(self, number: int, given: Jagged, training: bool) -> Jagged:
        exchange: Exchange = self._layout.exchanges[number]
        if (given.weights is not None) != exchange.weighted:
            raise TensorError(f"input \"{exchange.name}\": expected "
                              f"{'weights' if exchange.weighted else 'no weights'}, as the model "
                              f"was written, found {'none' if exchange.weighted else 'some'}")
        if given.offsets is not None and given.pooling:
            raise TensorError(f"input \"{exchange.name}\": expected either offsets or pooling, "
                              "found both")
        if given.offsets is None and not given.pooling:
            raise TensorError(f"input \"{exchange.name}\": expected offsets, or the ids of every "
                              "bag as pooling, found neither")
        if (training and exchange.weighted and given.offsets is None
                and given.weights.requires_grad and given.ids.dim() == 1):
            # Gradients of sample weights need offsets.
            bags = given.ids.shape[0] // given.pooling
            given = given._replace(offsets=fixed_offsets(bags, given.pooling, given.ids.device),
                                   pooling=0)
        ragged = given.offsets is not None and self._layout.needs_feature_begin(number)
        if ragged and given.feature_begin is None:
            given = given._replace(feature_begin=find_feature_begin(given, exchange))
        return given

    def set_learning_rate(self, learning_rate: float) -> None:
        """Sets the learning rate of the updates that follow; for captured graphs see
        before_replay."""
        self._program.require_open()
        self._program.learning_rate = _fields.learning_rate(learning_rate)
        if not self._program.is_capturing():
            self._program.set_step()

    @property
    def learning_rate(self) -> float:
        return self._program.learning_rate

    def before_replay(self) -> None:
        """To be called before each replay of a CUDA graph that updates: counts the update and
        writes its learning rate and number to the GPU, on the current stream."""
        self._program.advance()

    def check(self) -> None:
        """Waits for the current stream; raises cuda.BadId if an id since the last check was not in
        its table. Its step read the first row instead."""
        self._program.check()

    def close(self) -> None:
        """Closes and frees the tables."""
        self._program.close()

    # Hooks of nn.Module

    def _apply(self, fn, recurse=True):
        """to() and half() do not change tables: device and type are those of the artifact."""
        return self

    def __deepcopy__(self, memo: dict) -> NoReturn:
        raise TensorError("compiled tables cannot be copied; open the artifact again and load "
                          "the state_dict")

    def __reduce_ex__(self, protocol: int) -> NoReturn:
        raise TensorError("compiled tables cannot be pickled; save their state_dict")

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {f"{table}.{key}": value for table, slot in self._program.open_tables().items()
                for key, value in slot.items()}

    def get_extra_state(self) -> dict[str, float]:
        return {"step": self.step, "learning_rate": self.learning_rate}

    def set_extra_state(self, state: dict[str, float]) -> None:
        try:
            step = _fields.whole(state["step"], "step")
            rate = _fields.learning_rate(state["learning_rate"])
        except (KeyError, TypeError, ValueError) as error:
            raise TensorError("_extra_state: expected {\"step\": ..., \"learning_rate\": ...}, as "
                              f"state_dict() of tables has it, found {_fields.shown(state)} "
                              f"({error})") from None
        if step < 0:
            raise TensorError(f"_extra_state: expected a step from 0, found {step}")
        self._program.step = step
        self.set_learning_rate(rate)

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
