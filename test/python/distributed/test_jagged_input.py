"""Ids in every form that a step takes: what is wrong in them is refused, not guessed."""

from typing import NamedTuple

import pytest
import torch

from neuroshard._jagged import Jagged, as_jagged, pick_features
from neuroshard.distributed._distinct_ids import RowsOfIds, distinct
from neuroshard.distributed._inputs import Input as ModelInput, as_tensors, padded
from neuroshard.errors import TensorError
from support import matrix


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


@pytest.mark.parametrize(("weights", "message"), [
    (([1.0, 2, 3], [1.0, 2, 3, 4, 5]), 'feature "a": expected a weight for each of its 4 ids, found 3'),
    (([1.0, 2, 3, 4], [1, 2, 3, 4]), 'feature "b": expected weights of a floating-point type, found torch.int64')])
def test_each_feature_has_weights_for_its_own_ids(weights, message):
    offsets = torch.tensor([0, 1, 4])
    given = {name: (IDS, offsets, torch.tensor(one)) for name, one in zip("ab", weights)}
    with pytest.raises(TensorError, match=message):
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


def test_features_have_batches_of_their_own():
    made = as_jagged(keyed([4, 2], [1, 1, 0, 1, 2, 0]), Input())
    assert made.batches == [4, 2] and made.inverse is None
    assert made.offsets.tolist() == [0, 1, 2, 2, 3, 5, 5]
    assert padded(made.offsets, made.batches).tolist() == [0, 1, 2, 2, 3, 5, 5, 5, 5]
    # Also where one feature is read twice, under the names of two tables.
    tables = Input(features=("a@1", "a@2", "b"))
    found = as_jagged(pick_features(keyed([4, 2], [1, 1, 0, 1, 2, 0]), tables,
                                    {"a@1": "a", "a@2": "a"}), tables)
    assert found.batches == [4, 4, 2]


@pytest.mark.parametrize(("lengths", "options", "message"), [
    (3, {}, "expected 2 lengths, as there are bags of the 2 features of the KeyedJaggedTensor, found 3"),
    (6, {"stride_per_key_per_rank": [[3], [4]]}, "expected 7 lengths, as there are bags"),
    (6, {"stride_per_key_per_rank": [[2], [3]]}, "expected 5 lengths, as there are bags")])
def test_lengths_are_as_many_as_bags(lengths, options, message):
    torchrec = pytest.importorskip("torchrec")
    ones = torch.ones(lengths, dtype=torch.int64)
    given = torchrec.KeyedJaggedTensor(["b", "a"], torch.arange(lengths), lengths=ones, **options)
    with pytest.raises(TensorError, match=message):
        pick_features(given, Input(), {"a": "a", "b": "b"})


def test_a_key_of_a_batch_is_there_once():
    torchrec = pytest.importorskip("torchrec")
    twice = torchrec.KeyedJaggedTensor(["a", "c", "b", "c", "a"], IDS.repeat(5), lengths=torch.ones(20, dtype=torch.int64))
    with pytest.raises(TensorError, match=r'input "x": expected each feature once, found a twice among the keys'):
        pick_features(twice, Input(), {"a": "a", "b": "b"})
    # Keys that no feature has may be there twice.
    assert pick_features(twice, Input(features=("b",)), {"b": "b"}).offsets.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("batches", "offsets", "expected"), [
    ([0, 2], [0, 1, 3], [0, 0, 0, 1, 3]), ([2, 0], [0, 1, 3], [0, 1, 3, 3, 3]), ([0, 0], [0], [0]),
    ([1, 3, 2], [0, 2, 2, 3, 5, 5, 6], [0, 2, 2, 2, 2, 3, 5, 5, 6, 6])])
def test_features_with_fewer_bags_get_empty_ones(batches, offsets, expected):
    assert padded(torch.tensor(offsets), batches).tolist() == expected


def test_equal_batches_are_one_batch():
    made = as_jagged(keyed([3, 3], [1, 1, 0, 1, 2, 0]), Input())
    assert made.offsets.tolist() == [0, 1, 2, 2, 3, 5, 5]


def inverse(values, keys=("a", "b")):
    return {"inverse_indices": (list(keys), torch.tensor(values))}


def test_inverse_indices_are_those_of_the_features():
    given = keyed([3, 2], [1, 1, 0, 1, 2], **inverse([[2, 1, 0, 0], [0, 0, 1, 1]]))
    made = as_jagged(given, Input())
    assert [one.tolist() for one in made.inverse] == [[2, 1, 0, 0], [0, 0, 1, 1]]
    turned = as_jagged(pick_features(given, Input(features=("b", "a")), {}), Input(features=("b", "a")))
    assert turned.batches == [2, 3]
    assert [one.tolist() for one in turned.inverse] == [[0, 0, 1, 1], [2, 1, 0, 0]]


@pytest.mark.parametrize(("values", "text"), [
    ([[2, 3, 0], [0, 0, 1]], 'feature "a": expected inverse indices from 0 to 2, as it has 3 bags, found 3'),
    ([[2, 1, 0], [0, -1, 1]], 'feature "b": expected inverse indices from 0 to 1, as it has 2 bags, found -1')])
def test_inverse_indices_are_bags(values, text):
    with pytest.raises(TensorError, match=text):
        as_jagged(keyed([3, 2], [1, 1, 0, 1, 2], **inverse(values)), Input())


def test_each_feature_has_inverse_indices():
    with pytest.raises(TensorError, match="inverse indices of all features, found none of b"):
        as_jagged(keyed([3, 2], [1, 1, 0, 1, 2], **inverse([[0], [0]], ("a", "c"))), Input())
    with pytest.raises(TensorError, match=r"expected inverse indices \[2, batch\], .* found 1 rows"):
        as_jagged(keyed([3, 2], [1, 1, 0, 1, 2], **inverse([[0]])), Input())


@pytest.mark.parametrize(("fields", "text"), [
    ({"batches": [3]}, "expected batches as 2 whole numbers"),
    ({"batches": [3, -1]}, "expected batches as 2 whole numbers"),
    ({"batches": [3, 2]}, "expected 5 [+] 1 offsets, as there are bags in batches, found 4"),
    ({"offsets": None, "pooling": 2, "inverse": [IDS, IDS]}, "expected offsets beside inverse, found none"),
    ({"batches": [2, 1], "inverse": [IDS]}, "expected inverse as 2 tensors of one size"),
    ({"batches": [2, 1], "inverse": [IDS, IDS.float()]}, "expected inverse as 2 tensors of one size")])
def test_batches_fit_the_offsets(fields, text):
    with pytest.raises(TensorError, match=text):
        as_jagged(Jagged(**{"ids": IDS, "offsets": torch.tensor([0, 1, 3, 4]), **fields}), Input())


@pytest.mark.parametrize(("fields", "text"), [
    ({"offsets": torch.arange(5), "pooling": 1}, "expected either offsets or pooling, found both"),
    ({}, "expected offsets, or the ids of every bag as pooling, found neither"),
    ({"pooling": 3}, "expected 2 features x batch x 3 ids, as it has no offsets, found 4")])
def test_either_offsets_or_pooling_describe_bags(fields, text):
    with pytest.raises(TensorError, match=text):
        as_tensors(Jagged(IDS, **fields), ModelInput("ids", "x", ("a", "b"), False, False, torch.int64))


@pytest.mark.parametrize(("lengths", "weights", "text"), [
    ([1, 2, 3, 4], 5, "expected 10 values, as the lengths of the KeyedJaggedTensor say, found 5"),
    ([1, 0, 1, 1], 5, "expected 3 values"), ([1, 2, 1, 1], 4, "expected 5 weights, .* found 4"),
    ([4, -1, 1, 1], 5, "lengths: expected numbers from 0, found -1")])
def test_lengths_are_checked_before_keys_are_put_in_order(lengths, weights, text):
    torchrec = pytest.importorskip("torchrec")
    given = torchrec.KeyedJaggedTensor(["a", "b"], torch.arange(5), lengths=torch.tensor(lengths),
                                       weights=torch.ones(weights))
    with pytest.raises(TensorError, match=text):
        pick_features(given, Input(features=("b", "a")), {})


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


def test_features_of_a_dict_have_batches_of_their_own():
    made = as_jagged({"a": torch.zeros(2, 1, dtype=torch.int64),
                      "b": torch.zeros(3, 2, dtype=torch.int64)}, Input())
    assert made.batches == [2, 3] and made.offsets.tolist() == [0, 1, 2, 4, 6, 8]


@pytest.mark.parametrize("culprit", ["a", "b"])
def test_the_feature_on_the_meta_device_is_named(culprit):
    for right, wrong in ((IDS.view(2, 2), IDS.view(2, 2).to("meta")),
                         ((IDS, torch.tensor([0, 1, 4])), (IDS.to("meta"), torch.tensor([0, 1, 4])))):
        given = {name: wrong if name == culprit else right for name in "ab"}
        with pytest.raises(TensorError, match=f'feature "{culprit}": expected tensors with values, '
                           "found one on the meta device"):
            as_jagged(given, Input())


@pytest.mark.parametrize(("dtype", "offsets"), [(torch.int64, [0, 3, 4, 6, 9]), (torch.int32, [0, 0, 4, 4, 9])])
def test_distinct_ids_are_those_of_their_feature(dtype, offsets):
    """Two features of two bags; ids 5 and 7 are in both."""
    given = Jagged(torch.tensor([7, 5, 7, 5, 7, 0, 5, 5, 0], dtype=dtype), torch.tensor(offsets))
    sent = distinct(given, [8, 9], [True, True])
    features = [ids.unique().tolist() for ids in given.ids.split([offsets[2], 9 - offsets[2]])]
    assert sent.given is given and sent.ids.ids.dtype == dtype
    assert sent.ids.ids.tolist() == sum(features, [])
    count = len(features[0])
    assert sent.ids.offsets.tolist() == [0, count, count, count + len(features[1]), count + len(features[1])]
    rows = [torch.tensor(one)[places].tolist() for one, places in zip(features, sent.places)]
    assert sum(rows, []) == given.ids.tolist()


def test_ids_of_pooled_features_stay_as_they_are():
    weights = torch.arange(9.0)
    given = Jagged(torch.tensor([3, 3, 5, 5, 5, 99, 99, 4, 4]), torch.tensor([0, 1, 2, 4, 5, 7, 9]), weights)
    sent = distinct(given, [8, 8, 8], [False, True, False])
    assert sent.ids.ids.tolist() == [3, 3, 5, 99, 99, 4, 4] and sent.ids.offsets.tolist() == [0, 1, 2, 3, 3, 5, 7]
    assert sent.ids.weights[:2].tolist() == [0, 1] and sent.ids.weights[3:].tolist() == [5, 6, 7, 8]
    assert sent.places[0] is None and sent.places[2] is None and sent.places[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("given", [
    Jagged(torch.tensor([1, 2, 3]), torch.tensor([0, 1, 2])),  # wrong offsets
    Jagged(torch.tensor([1, 1, 8]), torch.tensor([0, 2, 3])),  # an id that no table has
    Jagged(torch.tensor([1, 1, -1]), torch.tensor([0, 2, 3])),
    Jagged(torch.tensor([1, 2, 1]), torch.tensor([0, 2, 3])),  # no repetitions
    Jagged(torch.tensor([], dtype=torch.int64), torch.tensor([0, 0, 0]))])
def test_other_ids_are_left_as_they_are(given):
    sent = distinct(given, [8, 8], [True, True])
    assert sent.ids is given and sent.places is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_gradient_of_a_row_is_the_sum_in_the_order_of_its_ids(dtype):
    generator = torch.Generator().manual_seed(matrix.seed())
    places = torch.randint(0, 50, (20_000,), generator=generator)
    rows = torch.randn(51, 12, generator=generator).to(dtype).requires_grad_()
    gradients = torch.randn(len(places), 12, generator=generator).to(dtype)
    result = RowsOfIds.apply(rows, places)
    assert torch.equal(result, rows[places])
    result.backward(gradients)
    expected = torch.zeros(51, 12)
    for place, one in zip(places.tolist(), gradients.float()):
        expected[place] += one
    assert torch.equal(rows.grad, expected.to(dtype))
