"""Sharded embedding collections: modules of PyTorch over the tables of a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from neuroshard import _fields
from neuroshard._model_names import key_of
from neuroshard._group.agreement import require_same, size_of, together
from neuroshard.distributed import _arguments
from neuroshard.distributed._caches import CacheFigures
from neuroshard.distributed._device import pick_device
from neuroshard.distributed._distinct_ids import DistinctIds, Sent, check_asked
from neuroshard.distributed._dynamic_ids.ahead import MappingAhead
from neuroshard.distributed._dynamic_ids.arguments import DynamicIds, check_dynamic_ids
from neuroshard.distributed._dynamic_ids.id_table import IdTable
from neuroshard.distributed._dynamic_ids.opening import open_dynamic_ids
from neuroshard.distributed._dynamic_ids.translation import Ahead
from neuroshard.distributed._engine import Engine, tensors_of
from neuroshard.distributed._initial_values import Function, check_initial_values, fill
from neuroshard.distributed._inputs import as_tensors, fill_weights, require_mode, require_values
from neuroshard.distributed._optimizer import FusedOptimizer, Learning
from neuroshard.distributed._out_of_range import ANY, OutOfRange, check_form
from neuroshard.distributed._row_order import RowOrder, check_orders, digest_of
from neuroshard.distributed._outputs import make_keyed, make_jagged_tensors, of_batches, split_rows
from neuroshard.distributed._pending import Pending
from neuroshard.distributed._run_file import save_run
from neuroshard.distributed._sent_ids import SentIds
from neuroshard.distributed._session import Session
from neuroshard.distributed._shards import LocalShard
from neuroshard.distributed._updates import UpdateArguments, Updates
from neuroshard.errors import TensorError
from neuroshard._jagged import Jagged, as_jagged, is_keyed, pick_features, without_unread_weights
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem
from neuroshard.runs import Run

if TYPE_CHECKING:
    from neuroshard.distributed._reshard.meeting import Source
    from neuroshard.distributed._reshard.reshard import Resharded


class _Sharded(Learning, torch.nn.Module):
    """The common base of the two collections."""

    _unpooled: bool  # results have a row for each id
    _policy: type[Updates] = Updates

    def __init__(self, plan: Plan, problem: ShardingProblem, *,
                 learning_rate: float | Sequence[Mapping[str, Any]],
                 process_group: dist.ProcessGroup | None = None, seed: int = 0,
                 artifact: str | os.PathLike | None = None, name: str | None = None,
                 gradient_division: bool = True, threads: int | None = None,
                 device: torch.device | str | int | None = None,
                 tier_directory: str | os.PathLike | None = None,
                 update_at: str = "backward", update_every: int = 1,
                 grad_scaler: torch.amp.GradScaler | None = None,
                 out_of_range: str | int = "error",
                 dynamic_ids: Mapping[str, DynamicIds] | None = None,
                 initial_values: Mapping[str, Function] | None = None,
                 distinct_ids: bool = False,
                 row_order: str | os.PathLike | Mapping[str, torch.Tensor] | None = None) -> None:
        super().__init__()
        self._begin()

        def make() -> tuple[Any, ...]:
            _arguments.types(plan, problem, gradient_division)
            _arguments.frozen_tables(problem, artifact, row_order)
            _arguments.seed(seed)
            _arguments.name(name)
            _arguments.threads(threads)
            self._check_features(problem)
            check_form(out_of_range, self._unpooled, [table.rows for table in problem.tables])
            check_asked(distinct_ids, self._unpooled)
            policies = check_dynamic_ids(dynamic_ids, problem, size_of(process_group))
            return (FusedOptimizer(learning_rate, [table.name for table in problem.tables]),
                    UpdateArguments(update_at, update_every, grad_scaler),
                    Engine(pick_device(device)), _arguments.tier_directory(tier_directory),
                    policies, check_initial_values(initial_values, problem, policies), check_orders(row_order, problem, policies))

        self._optimizer, updates, own_engine, files, policies, functions, orders = together(
            make, process_group, "the check of the arguments")
        require_same({"seed": str(seed), "learning rate": str(learning_rate),
                      "gradient_division": str(gradient_division),
                      "update_at": updates.at, "update_every": str(updates.every),
                      "grad_scaler": "none" if grad_scaler is None else "some",
                      "out_of_range": str(out_of_range), "distinct_ids": str(distinct_ids), "dynamic_ids": str(policies),
                      "initial_values": str(sorted(functions)), "row_order": digest_of(orders),
                      "device": own_engine.device.kind}, process_group, "all ranks must build the same model")
        self._updates = self._policy(updates, self._optimizer, gradient_division)
        self._out_of_range, self._distinct_ids = OutOfRange(out_of_range), DistinctIds(distinct_ids)
        self._policies, self._seed, self._row_order = policies, seed, RowOrder(orders)
        session = Session(plan, problem, process_group, artifact, name, threads, files, own_engine,
                          self._updates)
        self._take(session, plan, problem)
        self._engine.initialize(seed)
        if functions:
            try:
                together(lambda: fill(self.local_shards(), problem, functions, seed), process_group,
                         "filling tables by initial_values")
            except BaseException:
                session.close()
                raise

    def _begin(self) -> None:
        """Makes what depends on no plan."""
        # Plain tensors: optimizers, to() and DistributedDataParallel would change parameters and
        # buffers. They are what operators take, whatever the caller's defaults are.
        self._anchor = torch.zeros((), dtype=torch.float32, device="cpu", requires_grad=True)
        self._frozen = False
        self._policies: Mapping[str, DynamicIds] = {}
        self._seed = 0  # of rows that dynamic ids get
        self._sent_ahead: SentIds[Pending] | None = None

    def _take(self, session: Session, plan: Plan, problem: ShardingProblem) -> None:
        """Goes on with the tables of a session."""
        self._session, self._engine, self._name = session, session.engine, session.name
        self._plan, self._problem = plan, problem
        self._keys = {one.name: key_of(one.name, one.table) for one in problem.features}
        self._updates.use(session.engine, session.table_names, session)
        table_of = {one.name: one.table for one in problem.features}
        rows = [problem.table(table_of[name]).rows for name in session.input.features]
        self._out_of_range.use([ANY if table_of[name] in self._policies else count
                                for name, count in zip(session.input.features, rows)])
        self._row_order.use([table_of[name] for name in session.input.features])
        unpooled = {one.name for one in problem.features if one.pooling == "none"}
        self._distinct_ids.use(rows, [name in unpooled for name in session.input.features])
        self._translation = open_dynamic_ids(self._policies, table_of, session, self._seed)
        self._named_state: Any = None  # once asked for
        self._reset_step = self.step

    def _check_features(self, problem: ShardingProblem) -> None:
        _arguments.features(problem, self._unpooled)

    # Properties

    @property
    def plan(self) -> Plan:
        """The plan by which the tables lie."""
        return self._plan

    @property
    def problem(self) -> ShardingProblem:
        """The problem that it answers."""
        return self._problem

    @property
    def process_group(self) -> dist.ProcessGroup | None:
        """The group that the collection was made with; None: the default one."""
        return self._session.group

    @property
    def name(self) -> str:
        """The name of the tables in traced programs."""
        return self._name

    @property
    def features(self) -> tuple[str, ...]:
        """The features in the order of a Jagged."""
        return self._session.input.features

    def _require_open(self) -> None:
        self._session.require_open()

    def requires_grad_(self, requires_grad: bool = True) -> _Sharded:
        """Freezes the tables (requires_grad=False), or lets them learn again; called alike on all ranks. They are
        no parameters: requires_grad_() of a module around them does not reach them."""
        self._frozen = not requires_grad
        return super().requires_grad_(requires_grad)

    @property
    def step(self) -> int:
        """Updates so far."""
        return self._engine.num_updates()

    @step.setter
    def step(self, count: int) -> None:
        count = _fields.update_count(count, "step")
        self._reset_step += count - self.step
        self._engine.set_num_updates(count)

    def local_shards(self) -> tuple[LocalShard, ...]:
        """This rank's shards as tensors on their own memory: writing to them is allowed. Of a
        shard in a lower tier they are views of it in memory of the host, current until the next
        step: call this again after it."""
        return self._session.shards()

    def caches(self) -> dict[str, CacheFigures]:
        """What the row caches of this rank's shards in lower tiers have done so far, by shard."""
        return self._session.caches()

    @property
    def ids_out_of_range(self) -> int:
        """How many ids of this rank so far no row of their table had, with out_of_range."""
        return self._out_of_range.found

    @property
    def dynamic_ids(self) -> dict[str, IdTable]:
        """The maps of the tables with dynamic ids: this rank's parts."""
        return {table.name: table for table in self._translation.tables} if self._translation else {}

    def phases(self) -> dict[str, tuple[float, int]]:
        """Milliseconds and bytes sent to other ranks, by phase, since reset_phases()."""
        return self._engine.phases()

    def terms(self) -> dict[str, float]:
        """The same milliseconds by the terms of the planner's objective: input, fetch, forward,
        forward_communication, backward_communication and backward, which a device's cost
        (`devices` of a breakdown) has as input_ms and so on. Waiting counts, as what the caller's
        thread takes; an exchange that other work hides takes none."""
        return self._engine.terms()

    def reset_phases(self) -> None:
        """phases(), terms() and save_run() begin anew."""
        self._reset_step = self.step
        self._engine.reset_phases()

    def save_run(self, path: str | os.PathLike[str]) -> Run:
        """Writes what steps took to the file `path`, which `neuroshard explain --run` and `plan --html` put beside
        what is predicted: the mean ms of a step by the terms of the objective, of the steps that were
        trained since reset_phases(), and what the row caches have done since the tables were opened.
        To be called on all ranks; rank 0 writes. Raises a ValueError if no step was trained."""
        return save_run(path, self, self.step - self._reset_step, self._session.rank)

    def reshard(self, plan: Plan, problem: ShardingProblem | None = None,
                process_group: dist.ProcessGroup | None = None, *,
                artifact: str | os.PathLike[str] | None = None) -> Resharded:
        """Moves to another plan between two steps, from memory to memory; called on all ranks that
        have tables, also by those that are not in the new plan, and gives what it took. Weights,
        optimizer states, `step`, the learning rate and `name` stay; row-wise states are merged as
        checkpoints do. Tensors of local_shards() must not be used any more; phases() and caches()
        begin anew.

        problem: the same tables and features, on the devices of the plan; None: as it is.
        process_group: of the new plan's ranks, as new_group() gives it on each rank; None: as it is.
        It has all ranks of the group before, or only such. A rank outside of it ends with closed
        tables; one that was outside calls join_resharded(). artifact: as of the class.

        Raises an error on all ranks, with everything as it was, if a plan or problem does not fit, or
        if a lookup or a backward is under way on some rank, or a pipeline()."""
        from neuroshard.distributed._reshard.id_maps import take_maps
        from neuroshard.distributed._reshard.reshard import Target, reshard
        target = Target(plan, self._problem if problem is None else problem,
                        self.process_group if process_group is None else process_group, artifact)
        session, figures, maps = reshard(self._session, target, self._source, self.dynamic_ids)
        if session:
            self._take(session, plan, target.problem)
            take_maps(self.dynamic_ids, maps)
        return figures

    def _source(self) -> Source:
        """What moves. Raises a TensorError while a pipeline runs."""
        from neuroshard.distributed._reshard.id_maps import moving_maps
        from neuroshard.distributed._reshard.meeting import Source
        if self._sent_ahead:
            raise TensorError("a neuroshard.distributed.pipeline sends ids of this module; end it, or "
                              "close() it, first")
        self._session.require_alike()
        return Source(self._plan, self._problem, self.step, self._frozen, self._optimizer.groups,
                      self._updates.settings, self._out_of_range.form, self._distinct_ids.asked,
                      moving_maps(self.dynamic_ids), self._row_order.orders)

    def close(self) -> None:
        """Frees the tables. Tensors of local_shards() must not be used any more."""
        self._session.close()

    # A step

    def start(self, features: object) -> Pending:
        """Checks the ids and sends them to the owners of their rows without waiting for results.

        features: as in forward(). Ranks must start, and run backwards, in
        the same order. They may wait in any order, or not at all. Ids that pipeline() has sent are
        not sent again."""
        if self._sent_ahead and not torch.compiler.is_compiling():
            pending, is_of_step = self._sent_ahead.start(features)
            if is_of_step:
                pending._sent_ahead = self._sent_ahead
            return pending
        return self._send(features)

    def _send(self, features: object) -> Pending:
        """start(), also of ids that have been sent."""
        try:
            ids, keyed = self._checked(features)
        except Exception as error:
            if not torch.compiler.is_compiling():
                if self._translation:
                    self._translation.fail()
                self._refuse(str(error))
            raise
        if self._translation:
            ids = self._translation.translate(ids, self._learns())
        return self._start(ids, keyed)

    def _refuse(self, text: str) -> None:
        """In place of a step: the others must not wait for this rank."""
        self._session.refuse(text)

    def _checked(self, features: object) -> tuple[Jagged, bool]:
        """The ids, and whether they have the interface of a KeyedJaggedTensor."""
        require_mode(self._learns(), self._problem.mode)
        keyed, ids = is_keyed(features), self._as_jagged(features)
        if keyed:
            self._check_keyed(ids)
        require_values(ids, self._learns() and not torch.compiler.is_compiling(), self._session.input.name)
        return ids, keyed

    def _start(self, ids: Jagged, keyed: bool, ahead: Ahead | None = None) -> Pending:
        """Sends ids, of which dynamic ones are rows by now. ahead: where these come from."""
        sent = self._distinct_ids.apply(ids)
        ticket = self._engine.start(sent.ids)
        if self._translation:
            self._translation.note_step(ticket, ahead)
        return Pending(self, ticket, sent, keyed, self._make_anchor(ticket, sent.ids))

    def forward(self, features: object) -> object:
        """features: a KeyedJaggedTensor, a Jagged or (ids, offsets[, weights]) with all features
        one after the other, or {feature: (ids, offsets[, weights]) or ids [batch, pooling]}.

        Wrong ids, offsets or tensors on any rank raise an error on all ranks that names rank,
        feature, position and id; the tables stay unchanged."""
        if isinstance(features, torch.fx.Proxy):  # symbolic tracing, as by TorchRec's pipelines
            return features.tracer.create_proxy("call_module", features.tracer.path_of_module(self),
                                                (features,), {})
        return self.start(features).wait()

    def send_ahead(self) -> SentIds[Pending]:
        """Lets start() and forward() take what is sent by the result. Called by pipeline() alone.
        Raises a TensorError if another one has been."""
        if self._sent_ahead:
            raise TensorError("another neuroshard.distributed.pipeline sends ids of this module; "
                              "end it, or close() it, first")
        self._sent_ahead = SentIds(self._send, lambda pending: tensors_of([pending._sent.given]),
                                   self._refuse,
                                   MappingAhead(self, self._translation) if self._translation else None)
        return self._sent_ahead

    def _send_again(self) -> None:
        if self._sent_ahead:
            self._sent_ahead.recall()

    def send_no_more(self) -> None:
        """Ends what send_ahead() has begun; drops what was not taken."""
        self._sent_ahead.close()
        self._sent_ahead = None

    def _look_up(self, ticket: torch.Tensor) -> torch.Tensor:
        return self._engine.look_up(ticket)

    def _make_anchor(self, ticket: torch.Tensor, ids: Jagged) -> torch.Tensor | None:
        """Lets the update be apart from the backward of wait, unless no gradients travel or that
        waits for the gradients of sample weights anyway."""
        if self._session.size == 1 or ids.weights is not None or not self._learns():
            return None
        return self._engine.anchor(ticket, ids, anchor=self._anchor)

    def _finish(self, ticket: torch.Tensor, sent: Sent, keyed: bool,
                anchor: torch.Tensor | None) -> object:
        learns, ids = self._learns(), sent.given
        is_apart = learns and anchor is not None
        results = self._engine.wait(
            ticket, sent.ids, updates=not is_apart,
            joined=keyed and self._session.joins and ids.batches is None and ids.inverse is None,
            anchor=anchor if is_apart else self._anchor if learns else None)
        return self._as_output(sent.all_rows(results, self._session.results), ids, keyed)

    def _learns(self) -> bool:
        return torch.is_grad_enabled() and self.training and not self._frozen

    def _as_output(self, results: Sequence[torch.Tensor], ids: Jagged, keyed: bool) -> object:
        raise NotImplementedError

    def _check_keyed(self, ids: Jagged) -> None:
        """Raises a TensorError for ids of a KeyedJaggedTensor whose results fit in none."""

    def _as_jagged(self, features: object, counts: bool = True) -> Jagged:
        """counts: whether ids out of range count."""
        expected = self._session.input
        given = fill_weights(pick_features(features, expected, self._keys), expected)
        ids = as_tensors(as_jagged(given, expected), expected)
        if not expected.weighted:
            ids = without_unread_weights(ids, features, f"input \"{expected.name}\"")
        return self._row_order.apply(self._out_of_range.apply(ids, counts))

    # Hooks of nn.Module

    def __getattr__(self, name: str) -> object:
        """Names of the state dict, for torch.distributed.checkpoint.state_dict."""
        from neuroshard.distributed._checkpoint.state import StateNames, key_of_tables, state_of
        if name != key_of_tables(type(self)) or "_session" not in vars(self):
            return super().__getattr__(name)
        if self._named_state is None:
            self._named_state = StateNames(state_of(self))
        return getattr(self._named_state, name)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        from neuroshard.distributed._checkpoint.state import saved_state_of
        for key, value in saved_state_of(self).items():
            destination[prefix + key] = value

    def _load_from_state_dict(self, state_dict: Mapping, prefix: str, local_metadata: object,
                              strict: bool, missing_keys: list, unexpected_keys: list,
                              error_msgs: list) -> None:
        from neuroshard.distributed._checkpoint.state import load_from_state_dict
        load_from_state_dict(self, state_dict, prefix, strict, missing_keys, unexpected_keys,
                             error_msgs)

    def __reduce_ex__(self, protocol: int) -> object:
        """Refused: a copy would share, or lack, the tables and the process group."""
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled; make another from "
                        "its plan and problem, and load its state_dict()")

    def extra_repr(self) -> str:
        return f"{len(self._problem.tables)} tables, rank {self._session.rank} of " \
               f"{self._session.size}, {len(self._plan.shards_on(self._session.rank))} shards here"


class ShardedEmbeddingBagCollection(_Sharded):
    """Tables sharded by a plan, whose features are pooled (sum or mean) per sample.

    A drop-in for torchrec's EmbeddingBagCollection and for a dict of nn.EmbeddingBag: called
    with a KeyedJaggedTensor it gives a KeyedTensor, else {feature: [batch, dim]}. Each rank
    calls it with its own samples, any number of them. A backward also updates the tables, with
    the optimizers of the problem.

    All ranks of process_group (None: the default one) make it together, with the same plan and problem; that is
    checked. learning_rate: see also set_learning_rate and optimizer. seed: of the first weights,
    which are uniform in +-1/sqrt(rows) and depend on seed, table, row and column alone. artifact:
    a folder of neuroshard-compile --training for this plan; None: compiled now, or taken from the
    cache (NEUROSHARD_CACHE). name: the name in exported programs. gradient_division: divides
    gradients by the number of ranks, so that a loss that is the mean over a rank's samples trains
    the tables by the mean over all ranks' samples (as TorchRec does). Gradients of sample weights
    are not divided, as they belong to the rank. threads: of this rank; None: the machine's,
    divided by the ranks on it. device: of ids, tables and results, "cpu" or a GPU; or
    "emulator", which runs the kernels for GPUs on ids of the CPU (docs/devices.md).
    tier_directory: where files of shards in tier "ssd" are made, on this rank's host; None: where
    NEUROSHARD_TIER_DIRECTORY says (docs/tiers.md).

    learning_rate: a number, or groups as torch.optim has them, [{"tables": [...], "lr": ...}, ...].
    update_at: "backward"; or "step": by tables.optimizer.step(), from the gradients of all backwards
    since. update_every: every so many backwards there is one update, from the gradients of all of them.
    grad_scaler: what scales the loss: gradients are divided by its scale, and those of a backward that
    are not finite on some rank are dropped on all.

    out_of_range: what becomes of ids that are negative, or not below the rows of their table: "error"
    ends the step on all ranks; "drop" leaves them out of their bags; "modulo" takes the remainder by
    the rows; a number takes that row for all of them, with a negative one counted from the last.

    dynamic_ids: by table, a DynamicIds: ids of the table are any numbers of 64 bits, to which its rows
    are given as they are seen (docs/dynamic-ids.md).

    initial_values: by table, a function that fills a tensor, as those of torch.nn.init and TorchRec's
    init_fn (docs/distributed.md). distinct_ids: False; see ShardedEmbeddingCollection. row_order: by table, the
    row of each id, int64 [rows], or a file of neuroshard profile --reorder (docs/row-order.md).

    Raises the same error on all ranks where plan, problem, artifact or ranks do not fit each other (docs/faults.md)."""

    _unpooled = False

    def _check_keyed(self, ids: Jagged) -> None:
        if ids.batches is not None and ids.inverse is None:
            raise TensorError(
                f"expected features of one batch, or inverse indices, found a KeyedJaggedTensor with "
                f"batches of {list(ids.batches)}: a KeyedTensor has a row of each feature for each sample. "
                "Give {feature: (ids, offsets)} for results of different batches")

    def _as_output(self, results: Sequence[torch.Tensor], ids: Jagged, keyed: bool) -> object:
        names = self._session.result_names
        if ids.batches is not None or ids.inverse is not None:
            results = of_batches(results, self._session.results, ids)
        if not keyed:
            return dict(zip(names, results))
        return make_keyed(names, [one.dim for one in self._session.results], results)


class ShardedEmbeddingCollection(_Sharded):
    """Tables sharded by a plan, whose features are not pooled: a row per id.

    Called with a KeyedJaggedTensor it gives {feature: JaggedTensor} as torchrec's
    EmbeddingCollection, else {feature: (values [ids, dim], offsets [batch + 1])}. Arguments and
    methods are those of ShardedEmbeddingBagCollection, and

    distinct_ids: each rank sends, and gets the row of, each id of a feature once, however often its samples
    have it (docs/distributed.md)."""

    tables_key = "embeddings"
    _unpooled = True

    def _as_output(self, results: Sequence[torch.Tensor], ids: Jagged, keyed: bool) -> object:
        offsets = split_rows(ids, len(self.features))
        rows = {self.features[one.feature]: (values, offsets[one.feature])
                for one, values in zip(self._session.results, results)}
        return make_jagged_tensors(rows) if keyed else rows
