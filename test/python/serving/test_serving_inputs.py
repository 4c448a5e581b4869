"""Frozen tables take what TorchRec's collection takes, and answer as it does: features that several tables read,
keys in any order and others beside them."""

import os
import warnings

import pytest
import torch

import neuroshard as ns
from neuroshard.errors import TensorError
from neuroshard.serving._library import Batch, LookupInfo, runtime
from support.torchrec_models import draw

warnings.filterwarnings("ignore")

from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor  # noqa: E402


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def frozen(request, tmp_path_factory):
    """A collection with two tables of one feature, and the folder of its tables."""
    torch.manual_seed(3)
    module = EmbeddingBagCollection(is_weighted=request.param, tables=[
        EmbeddingBagConfig(name="user", num_embeddings=30, embedding_dim=8, feature_names=["user_id"]),
        EmbeddingBagConfig(name="device", num_embeddings=20, embedding_dim=4, feature_names=["device_id"]),
        EmbeddingBagConfig(name="user_x", num_embeddings=30, embedding_dim=5, feature_names=["user_id"])])
    problem = ns.distributed.problem_of(module, batch=4, topology="1xCPU")
    folder = ns.freeze(module, problem, tmp_path_factory.mktemp("frozen") / "tables", dtype="f32")
    return module, folder


def test_a_feature_of_several_tables_and_keys_in_any_order(frozen):
    module, folder = frozen
    ids = draw(module.embedding_bag_configs(), torch.Generator().manual_seed(1), 3, weighted=module.is_weighted())
    wanted = {name: value for name, value in module(ids).to_dict().items()}
    assert set(wanted) == {"user_id@user", "device_id", "user_id@user_x"}
    more = KeyedJaggedTensor(["more"], torch.tensor([99]), torch.ones(1) if module.is_weighted() else None,
                             lengths=torch.tensor([1] + [0] * (ids.stride() - 1)))
    by_feature = {key: (one.values(), one.offsets(), *([one.weights()] if module.is_weighted() else []))
                  for key, one in ids.to_dict().items()}
    with ns.serve(folder) as tables:
        for given in (ids, ids.permute([1, 0]), KeyedJaggedTensor.concat([more, ids]), by_feature,
                      dict(reversed(by_feature.items()))):
            found = tables(given)
            assert list(found) == list(wanted)
            for name, value in wanted.items():
                torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)
        with pytest.raises(TensorError, match="expected the features .*'user_id', 'device_id'.*there is no device_id"):
            tables(ids.permute([0]) if ids.keys()[0] == "user_id" else ids.permute([1]))


def test_weights_that_tables_without_weights_are_given(frozen):
    """Those of a KeyedJaggedTensor are passed over, as by TorchRec's collections."""
    module, folder = frozen
    if module.is_weighted():
        pytest.skip("these tables read weights")
    ids = draw(module.embedding_bag_configs(), torch.Generator().manual_seed(1), 3, weighted=True)
    with ns.serve(folder) as tables:
        found = tables(ids)
        with pytest.raises(TensorError, match="ids: expected no weights, as no lookup reads them"):
            tables({key: (one.values(), one.offsets(), one.weights()) for key, one in ids.to_dict().items()})
    for name, value in module(ids).to_dict().items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)


def test_null_pointers_are_errors(frozen):
    """Of programs in C that do not look whether the tables were opened, too."""
    library = runtime()

    def said():
        return library.nsrt_last_error().decode()

    for path in (None, b""):
        assert not library.nsrt_world_open(path, 1) and said() == "expected the folder of an artifact, found no path"
    assert library.nsrt_world_num_lookups(None) == library.nsrt_world_num_features(None) == 0
    assert library.nsrt_world_feature(None, 0) is None
    world = library.nsrt_world_open(os.fsencode(frozen[1]), 1)
    info = LookupInfo()
    for opened, place in ((None, info), (world, None)):
        assert library.nsrt_world_lookup_info(opened, 0, place) and "found a null pointer" in said()
        assert library.nsrt_look_up(opened, None, None, None) and "found a null pointer" in said()
    assert library.nsrt_world_lookup_info(world, 0, info) == 0 and info.feature == b"user_id@user"
    few = Batch(None, -3, None, 0, None, 0)
    assert library.nsrt_look_up(world, few, None, None) and said() == "expected num_ids of at least 0, found -3"
    library.nsrt_world_close(world)


def test_keyed_tensors_that_lie_in_another_order(frozen):
    """What permute() would read elsewhere, or not at all, is refused first."""
    module, folder = frozen
    weights = torch.ones(3) if module.is_weighted() else None
    ones = torch.ones(2, dtype=torch.int64)
    with ns.serve(folder) as tables:
        for ids, message in ((torch.tensor([1.9, 2]), "expected ids as torch.int64 or torch.int32"),
                             (torch.tensor([True, False]), "expected ids as torch.int64 or torch.int32"),
                             (torch.tensor([1, 2, 3]), "expected 2 values, as the lengths .* found 3")):
            given = KeyedJaggedTensor(["device_id", "user_id"], ids,
                                      None if weights is None else weights[:len(ids)], lengths=ones)
            with pytest.raises(TensorError, match=message):
                tables(given)
