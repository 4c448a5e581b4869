"""Ids in every form that a step takes: what is wrong in them is refused, not guessed."""

from typing import NamedTuple

import pytest
import torch

from neuroshard._jagged import as_jagged
from neuroshard.distributed._collection import pick_features
from neuroshard.errors import TensorError


class Input(NamedTuple):
    name: str = "x"
    features: tuple = ("a", "b")
    unpooled: bool = False


IDS = torch.tensor([1, 2, 3, 4])


@pytest.mark.parametrize("offsets", [[0, 1, 9], [0, 1, 2], [1, 2, 4], [0, 1, 0]])
def test_the_offsets_of_a_feature_span_its_ids(offsets):
    given = {"a": (IDS, torch.tensor([0, 1, 4])), "b": (IDS, torch.tensor(offsets))}
    with pytest.raises(TensorError, match=f'feature "b": expected offsets from 0 to 4, the number '
                       f"of its ids, found {offsets[0]} to {offsets[-1]}"):
        as_jagged(given, Input())


def test_traced_offsets_are_checked_in_the_step():
    def join(first, second):
        made = as_jagged({"a": (IDS, first), "b": (IDS, second)}, Input())
        return made.ids + made.offsets[-1]

    good, bad = torch.tensor([0, 1, 4]), torch.tensor([0, 1, 9])
    traced = torch.compile(join, backend="eager", fullgraph=True)
    assert torch.equal(traced(good, good), join(good, good))
    with pytest.raises(RuntimeError, match="expected offsets from 0 to the number of its ids"):
        traced(good, bad)


def keyed(strides, lengths, **options):
    torchrec = pytest.importorskip("torchrec")
    return torchrec.KeyedJaggedTensor(
        ["a", "b"], torch.arange(sum(lengths)), lengths=torch.tensor(lengths),
        stride_per_key_per_rank=[[stride] for stride in strides], **options)


def test_features_with_batches_of_their_own_are_refused():
    given = keyed([4, 2], [1, 1, 0, 1, 2, 0])
    with pytest.raises(TensorError, match=r'input "x": expected features of one batch, found a '
                       r"KeyedJaggedTensor with batches of \[4, 2\]"):
        as_jagged(given, Input())
    # Also where one feature is read twice, under the names of two tables.
    tables = Input(features=("a@1", "a@2", "b"))
    with pytest.raises(TensorError, match=r"batches of \[4, 4, 2\]"):
        as_jagged(pick_features(given, tables, {"a@1": "a", "a@2": "a"}), tables)


def test_equal_batches_are_one_batch():
    made = as_jagged(keyed([3, 3], [1, 1, 0, 1, 2, 0]), Input())
    assert made.offsets.tolist() == [0, 1, 2, 2, 3, 5, 5]


def test_inverse_indices_of_equal_batches_are_refused():
    given = keyed([3, 3], [1, 1, 0, 1, 2, 0], inverse_indices=(
        ["a", "b"], torch.tensor([[2, 1, 0], [0, 0, 1]])))
    with pytest.raises(TensorError, match="KeyedJaggedTensor with inverse indices"):
        as_jagged(given, Input())


def test_inverse_indices_are_refused():
    pytest.importorskip("torchrec")
    from torchrec import KeyedJaggedTensor
    given = KeyedJaggedTensor(["a", "b"], IDS, lengths=torch.tensor([1, 1, 1, 1]),
                              inverse_indices=(["a", "b"], torch.zeros(2, 5, dtype=torch.int64)))
    with pytest.raises(TensorError, match="KeyedJaggedTensor with inverse indices"):
        as_jagged(given, Input())


@pytest.mark.parametrize(("batch", "poolings"), [(4, (1, 3, 2)), (1, (5,)), (3, (0, 2)), (0, (1, 2))])
def test_bags_of_one_size_are_joined_as_pairs_are(batch, poolings):
    """A dict of ids [batch, pooling] takes a path of its own."""
    exchange = Input(features=tuple(f"f{i}" for i in range(len(poolings))))
    ids = {name: torch.arange(batch * pooling).reshape(batch, pooling) + 100 * pooling
           for name, pooling in zip(exchange.features, poolings)}
    pairs = {name: (value.reshape(-1), torch.arange(batch + 1) * value.shape[1])
             for name, value in ids.items()}
    found, expected = as_jagged(ids, exchange), as_jagged(pairs, exchange)
    assert torch.equal(found.ids, expected.ids)
    assert torch.equal(found.offsets, expected.offsets)
    assert found.offsets.dtype == torch.int64 and found.feature_begin == expected.feature_begin


def test_bags_of_different_batches_are_refused():
    with pytest.raises(TensorError, match=r"found batches of \[2, 3\]"):
        as_jagged({"a": torch.zeros(2, 1, dtype=torch.int64),
                   "b": torch.zeros(3, 1, dtype=torch.int64)}, Input())


@pytest.mark.parametrize("culprit", ["a", "b"])
def test_the_feature_on_the_meta_device_is_named(culprit):
    for right, wrong in ((IDS.view(2, 2), IDS.view(2, 2).to("meta")),
                         ((IDS, torch.tensor([0, 1, 4])), (IDS.to("meta"), torch.tensor([0, 1, 4])))):
        given = {name: wrong if name == culprit else right for name in "ab"}
        with pytest.raises(TensorError, match=f'feature "{culprit}": expected tensors with values, '
                           "found one on the meta device"):
            as_jagged(given, Input())
