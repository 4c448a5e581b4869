"""Row-wise Adagrad with FBGEMM's counters of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    CounterBasedRegularizationDefinition, CounterWeightDecayMode, LearningRateMode, WeightDecayMode)

from neuroshard._torchrec_checks import expect
from neuroshard.errors import Unsupported
from neuroshard.tables import Optimizer, WeightDecayMode as OurMode

KIND = "rowwise_adagrad_with_counter"
_MODES: dict[CounterWeightDecayMode, OurMode] = {
    CounterWeightDecayMode.L2: "l2", CounterWeightDecayMode.DECOUPLE: "decoupled",
    CounterWeightDecayMode.ADAGRADW: "adagradw"}


def has_counters(settings: Mapping[str, Any]) -> bool:
    """Whether FBGEMM's kernels with these arguments keep counters. settings: fused_params."""
    return (settings.get("optimizer") == EmbOptimType.EXACT_ROWWISE_ADAGRAD
            and settings.get("weight_decay_mode") in (WeightDecayMode.COUNTER, WeightDecayMode.COWCLIP))


def counter_optimizer(definition: CounterBasedRegularizationDefinition, *, weight_decay: float = 0,
                      eps: float = 1e-8) -> Optimizer:
    """The optimizer of a table that FBGEMM trains by EXACT_ROWWISE_ADAGRAD and WeightDecayMode.COUNTER.

    definition: FBGEMM's counter_based_regularization. weight_decay, eps: its arguments of these names. Raises a
    TypeError for another definition, Unsupported for a learning_rate_mode that is not EQUAL, and a ValueError for
    numbers that cannot be."""
    where = "counter_based_regularization"
    expect(definition, where, CounterBasedRegularizationDefinition,
           "a CounterBasedRegularizationDefinition of fbgemm_gpu")
    mode = LearningRateMode(definition.learning_rate_mode)
    if mode != LearningRateMode.EQUAL:
        raise Unsupported(
            f"{where}: learning_rate_mode {mode.name} is not supported, nor are tail_id_threshold and "
            "max_counter_update_freq, which it reads: the largest count is one over the tables that a device "
            "happens to hold, so that training would depend on the plan; expected EQUAL")
    chosen = CounterWeightDecayMode(definition.counter_weight_decay_mode)
    if chosen == CounterWeightDecayMode.NONE:
        return Optimizer(KIND, eps=eps, counter_halflife=definition.counter_halflife)
    return Optimizer(KIND, eps=eps, weight_decay=weight_decay, weight_decay_mode=_MODES[chosen],
                     counter_halflife=definition.counter_halflife,
                     adjustment_iter=definition.adjustment_iter, adjustment_ub=definition.adjustment_ub)
