"""Names and constants that Python writes out are those of include/neuroshard/Model."""

from typing import get_args

import pytest
import torch

from neuroshard import (_planner, constraints, cuda, problem, shards,
                        tables)
from neuroshard._artifact import dtypes, optimizer_states
from neuroshard.collect._measuring.machine import DEVICE_CLASSES, GPUS
from neuroshard.cuda import _step_arguments
from neuroshard.cuda._arrays import ELEMENT_DTYPES

WORDS = _planner.vocabulary()


@pytest.mark.parametrize("literal, word", [
    (tables.ElementType, "element_bytes"), (tables.IdType, "id_bytes"),
    (tables.WireType, "wire_types"), (tables.TableType, "element_types"),
    (tables.OptimizerKind, "optimizers"), (tables.WeightDecayMode, "weight_decay_modes"),
    (tables.Pooling, "poolings"),
    (shards.Tier, "tiers"), (shards.CachePolicy, "cache_policies"),
    (constraints.Kind, "kinds"), (problem.Target, "targets"),
    (problem.MemoryModel, "memory_models"), (problem.Semantics, "semantics")])
def test_literal_types(literal, word):
    assert get_args(literal) == tuple(WORDS[word])


def test_vocabulary_is_not_empty():
    assert WORDS["optimizer_states"]["sgd"] == [[], []]
    assert WORDS["optimizer_states"]["rowwise_adagrad"] == [[], ["sum"]]
    assert WORDS["optimizer_states"]["rowwise_adagrad_with_counter"] == [
        [], ["sum", "prev_iter", "row_counter"]]
    assert WORDS["optimizer_states"]["partial_rowwise_adam"] == [["exp_avg"], ["exp_avg_sq"]]
    assert {name: count for name, count in WORDS["norms_per_row"].items() if count} == {
        "rowwise_adagrad": 1, "partial_rowwise_adam": 1, "rowwise_rmsprop": 1, "lars_sgd": 2, "lamb": 2,
        "partial_rowwise_lamb": 4, "rowwise_adagrad_with_counter": 1}
    assert WORDS["element_bytes"] == {"f32": 4, "f16": 2, "bf16": 2}
    assert WORDS["tiers"] == ["hbm", "dram", "ssd"] and len(WORDS["reuse_bin_upper"]) == 17


def test_optimizer_states():
    states = WORDS["optimizer_states"]
    assert optimizer_states.STATE_NAMES == {
        name: (*per_element, *per_row) for name, (per_element, per_row) in states.items()}
    assert optimizer_states.ROW_STATES == {
        name: tuple(per_row) for name, (_, per_row) in states.items() if per_row}


def test_types_of_tensors():
    for found, word in ((dtypes.DTYPES, "element_bytes"), (dtypes.ID_DTYPES, "id_bytes")):
        assert {name: dtype.itemsize for name, dtype in found.items()} == WORDS[word]


def test_device_classes_of_the_collector():
    assert DEVICE_CLASSES == tuple(_planner.device_classes())
    assert {name for _, _, name in GPUS} == {*DEVICE_CLASSES} - {"CPU"}


def test_types_of_the_gpu_library():
    assert list(cuda.ELEMENT_TYPES) == list(WORDS["element_bytes"])
    assert _step_arguments.ELEMENT_BYTES == WORDS["element_bytes"]
    assert {name: getattr(torch, dtype) for name, dtype in ELEMENT_DTYPES.items()} \
        == dtypes.DTYPES
    assert sorted(_step_arguments.ID_DTYPES) == sorted(WORDS["id_bytes"].values())
