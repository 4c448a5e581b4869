"""State dicts and checkpoints of sharded tables on one rank: keys and memory, saving and loading
whole tables, merging of row-wise states, and refusals. Folders: test_checkpoint_files.py."""

import copy
import os
import pickle

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

import checkpoint_tables as tables
from checkpoint_tables import BRICKS, GRID, WHOLE, columns, make
from neuroshard.distributed._checkpoint import checkpoint, row_state_merge, sharded, state
from neuroshard.errors import CheckpointError

pytestmark = pytest.mark.filterwarnings("ignore:.*assuming the intent is to")


# Keys and values


@pytest.mark.parametrize(("optimizer", "names"), [
    ("sgd", []), ("adagrad", ["sum"]), ("rowwise_adagrad", ["sum"]),
    ("adam", ["exp_avg", "exp_avg_sq"]), ("momentum", ["momentum_buffer"]),
    ("partial_rowwise_adam", ["exp_avg", "exp_avg_sq"]), ("ftrl", ["sum", "linear"]), ("lars_sgd", ["momentum_buffer"]), ("lamb", ["exp_avg", "exp_avg_sq"]),
    ("partial_rowwise_lamb", ["exp_avg", "exp_avg_sq"]),
    ("rowwise_adagrad_with_counter", ["sum", "prev_iter", "row_counter"])])
def test_keys_are_those_of_torchrec(optimizer, names):
    found = make(GRID, optimizer).state_dict()
    assert list(found) == [f"embedding_bags.t.{name}" for name in ["weight", *names]] + [
        "step", "learning_rate"]
    assert found["embedding_bags.t.weight"].size() == (6, 16)
    for name in names:
        row_wise = optimizer.startswith("rowwise_adagrad") or (
            optimizer.startswith("partial_rowwise_") and name == "exp_avg_sq")
        shape = (6,) if row_wise else (6, 16)
        assert found[f"embedding_bags.t.{name}"].size() == shape


def test_keys_of_an_unpooled_collection_and_of_an_inner_module():
    inner = make(WHOLE)
    inner.tables_key = "embeddings"
    model = nn.ModuleDict({"sparse": inner, "dense": nn.Linear(2, 2)})
    assert "sparse.embeddings.t.weight" in model.state_dict()


def test_states_of_columns_have_keys_of_their_own_where_each_shard_keeps_one():
    assert [key for key in make(GRID, semantics="per_shard").state_dict() if "sum" in key] == [
        "embedding_bags.t.sum.columns_0_4", "embedding_bags.t.sum.columns_4_16"]
    assert [key for key in make(BRICKS, semantics="per_shard").state_dict() if "sum" in key] == [
        f"embedding_bags.t.sum.columns_{one}" for one in ("0_4", "4_12", "12_16")]
    for cuts, semantics in ((GRID, "exact"), (WHOLE, "per_shard")):
        assert "embedding_bags.t.sum" in make(cuts, semantics=semantics).state_dict()


def test_values_are_the_shards_own_memory():
    module = make(GRID)
    value = module.state_dict()["embedding_bags.t.weight"]
    value.chunks[1].tensor.fill_(7)
    assert module.local_shards()[1].weights.eq(7).all()
    assert value.detach().chunks[1].tensor.data_ptr() == value.chunks[1].tensor.data_ptr()
    for copied in (value.clone(), copy.deepcopy(value)):
        assert copied.chunks[1].tensor.data_ptr() != value.chunks[1].tensor.data_ptr()
        assert torch.equal(copied.chunks[0].tensor, value.chunks[0].tensor)
    assert repr(value).startswith("Sharded([6, 16], torch.float32, here: [2, 4] at [0, 0], ")
    with pytest.raises(NotImplementedError, match="chunks that this rank holds"):
        value + 1


def test_chunks_of_one_rank_are_not_pickled(tmp_path):
    state_dict = make(GRID).state_dict()
    for work in (lambda: torch.save(state_dict, tmp_path / "a.pt"),
                 lambda: pickle.dumps(state_dict)):
        with pytest.raises(TypeError, match="save it with neuroshard.distributed.save or torch"):
            work()


def test_exact_states_are_written_once(monkeypatch):
    monkeypatch.setattr(sharded, "BLOCK_BYTES", 8)
    for cuts in (GRID, BRICKS, columns(0, 4, 8, 16)):
        value = make(cuts).state_dict()["embedding_bags.t.sum"]
        written = [item.tensor_data.chunk for item in value.__create_write_items__("x", value)]
        assert [(*one.offsets, *one.sizes) for one in written] == [(0, 2), (2, 2), (4, 2)]
        assert len(value.__create_chunk_list__()) == len(cuts)


# nn.Module.load_state_dict


def test_whole_tables_are_taken_from_an_unsharded_state_dict():
    module = make(BRICKS, "adagrad", type="bf16")
    weights = torch.arange(96.0).view(6, 16)
    module.load_state_dict({
        "embedding_bags.t.weight": weights, "embedding_bags.t.sum": nn.Parameter(weights + 1),
        "step": 3, "learning_rate": 0.5})
    found = tables.whole(module)
    assert torch.equal(found["t.weight"], weights.double())
    assert torch.equal(found["t.sum"], weights.double() + 1)
    assert (module.step, module.learning_rate) == (3, 0.5)


def test_a_state_dict_of_the_same_plan_is_taken():
    one, other = make(BRICKS), make(BRICKS)
    one.train(2)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert all(torch.equal(tables.whole(other)[key], value)
               for key, value in tables.whole(one).items())


@pytest.mark.parametrize(("change", "message"), [
    ({"embedding_bags.t.weight": torch.zeros(5, 16)},
     r"t\.weight: expected \[6, 16\], got: \[5, 16\]"),
    ({"embedding_bags.t.weight": 1}, r"t\.weight: expected a tensor of \[6, 16\], got: int"),
    ({"embedding_bags.t.sum": None}, r"t\.sum: expected a tensor"),
    ({"embedding_bags.t.weight": torch.zeros(6, 16).to_sparse()},
     r"t\.weight: expected a dense tensor, got one of layout torch.sparse_coo; pass its to_dense"),
    ({"embedding_bags.t.weight": torch.zeros(6, 16, device="meta")},
     r"t\.weight: expected a tensor with values, got one on the device meta"),
    ({"embedding_bags.t.weight": torch.zeros(6, 16, dtype=torch.complex64)},
     r"t\.weight: expected real numbers, got a tensor of torch.complex64"),
    *(({"step": wrong}, rf"\n\tstep: expected {said}") for wrong, said in (
        ("many", "a whole number, got: 'many'"), (None, "a whole number, got: None"),
        (1.5, r"a whole number, got: 1\.5"), (torch.tensor(True), "a whole number, got: True"),
        (-1, r"a whole number from 0 to 2\^62, the number of updates, got: -1"),
        (torch.tensor((1 << 62) + 1), r"a whole number from 0 to 2\^62"),
        (10 ** 40, "a whole number of less than 30 digits"),
        (torch.zeros(2), r"one number, got: a tensor of \[2\]"),
        (torch.zeros((), device="meta"), "a tensor with values, got one on the device meta"))),
    *(({"learning_rate": wrong}, rf"\n\tlearning_rate: expected {said}") for wrong, said in (
        ("fast", "a number, got: 'fast'"), (-1.0, "a number from 0"),
        (float("nan"), "a finite number"), (torch.tensor(1j), "real numbers, got a tensor of"),
        (torch.zeros(2), "one number, got: a tensor"))),
    ({"embedding_bags.u.weight": 1}, r"Unexpected key\(s\).*embedding_bags\.u\.weight"),
    ({"embedding_bags.t.weight": make(GRID).state_dict()["embedding_bags.t.weight"]},
     "made under another plan"),
])
def test_wrong_state_dicts_are_refused(change, message):
    module = make(BRICKS)
    before = tables.whole(module)
    with pytest.raises(RuntimeError, match=message):
        module.load_state_dict(copy.deepcopy(module.state_dict()) | change)
    assert all(torch.equal(tables.whole(module)[key], value) for key, value in before.items())
    assert (module.step, module.learning_rate) == (0, 0.1)


def test_nothing_is_loaded_where_one_value_does_not_fit():
    """Each error has its own key, also in a module inside another."""
    model = nn.ModuleDict({"sparse": make(BRICKS)})
    before = tables.whole(model.sparse)
    given = {"sparse.embedding_bags.t.weight": torch.ones(6, 16),
             "sparse.embedding_bags.t.sum": torch.ones(5), "sparse.learning_rate": 0.5,
             "sparse.step": -1}
    with pytest.raises(RuntimeError) as raised:
        model.load_state_dict(given)
    assert str(raised.value).split("\n\t")[1:] == [
        "sparse.embedding_bags.t.sum: expected [6], got: [5]",
        "sparse.step: expected a whole number from 0 to 2^62, the number of updates, got: -1"]
    assert all(torch.equal(tables.whole(model.sparse)[key], value)
               for key, value in before.items())
    assert (model.sparse.step, model.sparse.learning_rate) == (0, 0.1)


@pytest.mark.parametrize("step", [1 << 62, torch.tensor(1 << 62), 7.0, torch.tensor([7.0])])
def test_steps_of_other_types_are_taken(step):
    module = make(WHOLE)
    module.load_state_dict(module.state_dict() | {"step": step, "learning_rate": 1})
    assert (module.step, module.learning_rate) == (int(step), 1.0)


def test_a_wrong_step_in_a_checkpoint_is_named(tmp_path):
    module = make(WHOLE)
    module.step = -1
    checkpoint.save(tmp_path / "a", {"x": module})
    with pytest.raises(CheckpointError, match=r"step: expected a whole number from 0 to 2\^62"):
        checkpoint.load(tmp_path / "a", {"x": make(WHOLE)})


def test_missing_keys_are_named_unless_that_is_allowed():
    module = make(WHOLE)
    weights = {"embedding_bags.t.weight": torch.ones(6, 16)}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\).*embedding_bags\.t\.sum"):
        module.load_state_dict(weights)
    module.load_state_dict(weights, strict=False)
    assert tables.whole(module)["t.weight"].eq(1).all()


def test_other_keys_are_left_alone():
    module = make(WHOLE)
    state.load_state(module, {"optimizer.lr": 1, "step": 4})
    assert module.step == 4


# Merging


@pytest.mark.parametrize("after", [WHOLE, GRID, BRICKS, columns(0, 8, 12, 16)])
@pytest.mark.parametrize("before", [WHOLE, GRID, BRICKS, columns(0, 4, 8, 16),
                                    columns(0, 4, 12, 16)])
@pytest.mark.parametrize(("source", "target"), [
    ("per_shard", "per_shard"), ("exact", "per_shard"), ("per_shard", "exact")])
def test_a_new_state_is_the_mean_of_the_old_ones_over_its_columns(tmp_path, before, after, source,
                                                                   target):
    old, new = make(before, semantics=source), make(after, semantics=target)
    generator = torch.Generator().manual_seed(1)
    rows = torch.rand(6, generator=generator)
    for shard in old.local_shards():
        values = rows[slice(*shard.rows)] if source == "exact" else torch.rand(
            shard.rows[1] - shard.rows[0], generator=generator)
        shard.states["sum"].copy_(values)
    checkpoint.save(tmp_path / "a", {"x": old})
    checkpoint.load(tmp_path / "a", {"x": new})
    element = tables.whole(old)["t.sum"]
    for shard in new.local_shards():
        cols = (0, 16) if target == "exact" else shard.cols
        mean = element[slice(*shard.rows), slice(*cols)].mean(1)
        torch.testing.assert_close(shard.states["sum"], mean.float(), rtol=1e-7, atol=0)
    if before == after and source == target:
        assert torch.equal(tables.whole(new)["t.sum"], element)


def test_a_merged_state_is_the_one_of_training_under_the_new_plan(tmp_path):
    """Fewer cuts: the states of both plans are means of the same squares."""
    old, new = (make(cuts, semantics="per_shard") for cuts in (columns(0, 4, 16), WHOLE))
    old.train(3)
    new.train(3)
    expected = tables.whole(new)["t.sum"]
    checkpoint.save(tmp_path / "a", {"x": old})
    checkpoint.load(tmp_path / "a", {"x": new})
    torch.testing.assert_close(tables.whole(new)["t.sum"], expected, rtol=1e-6, atol=0)


def test_merges_go_by_rows_in_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(row_state_merge, "MERGED_ROWS", 4)
    test_a_new_state_is_the_mean_of_the_old_ones_over_its_columns(
        tmp_path, BRICKS, GRID, "per_shard", "per_shard")


def test_columns_that_leave_a_gap_are_missing(tmp_path):
    module = make(WHOLE, semantics="per_shard")
    values = {f"embedding_bags.t.sum.columns_{one}": torch.zeros(6) for one in ("0_4", "8_16")}
    values["embedding_bags.t.weight"] = torch.zeros(6, 16)
    dcp.save({"x": values | {"step": torch.tensor(1), "learning_rate": torch.tensor(1.0)}},
             checkpoint_id=tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"x\.embedding_bags\.t\.sum is not in"):
        checkpoint.load(tmp_path / "a", {"x": module})


# To and from unsharded files


def test_a_checkpoint_becomes_an_ordinary_file_of_whole_tables_and_back(tmp_path):
    module = make(GRID, type="f16")
    module.train(2)
    expected = tables.whole(module)
    checkpoint.save(tmp_path / "a", {"x": module, "note": "text"})
    dcp_to_torch_save(tmp_path / "a", tmp_path / "whole.pt")
    found = torch.load(tmp_path / "whole.pt")
    assert found["note"] == "text" and found["x"]["step"] == 2
    weights = found["x"]["embedding_bags.t.weight"]
    assert weights.dtype == torch.float16
    assert torch.equal(weights.double(), expected["t.weight"])
    assert torch.equal(found["x"]["embedding_bags.t.sum"].double(), expected["t.sum"][:, 0])

    torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "b")
    other = make(BRICKS, type="f16")
    checkpoint.load(tmp_path / "b", {"x": other})
    assert all(torch.equal(tables.whole(other)[key], value) for key, value in expected.items())


@pytest.mark.filterwarnings("ignore")
def test_weights_go_to_torchrec_and_come_from_it(tmp_path):
    import torchrec
    config = torchrec.EmbeddingBagConfig(name="t", num_embeddings=6, embedding_dim=16,
                                         feature_names=["f"])
    theirs, others = (torchrec.EmbeddingBagCollection(tables=[config]) for _ in range(2))
    dcp.save({"model": theirs}, checkpoint_id=tmp_path / "theirs")
    ours = make(GRID)
    checkpoint.load(tmp_path / "theirs", {"model": ours}, only="weights")
    weights = theirs.state_dict()["embedding_bags.t.weight"]
    assert torch.equal(tables.whole(ours)["t.weight"], weights.double())
    checkpoint.save(tmp_path / "ours", {"model": ours})
    dcp.load({"model": others}, checkpoint_id=tmp_path / "ours")
    assert torch.equal(others.state_dict()["embedding_bags.t.weight"], weights)


def test_one_module_has_no_name_in_its_keys(tmp_path):
    module, other = make(GRID), make(BRICKS)
    module.train(1)
    checkpoint.save(tmp_path / "a", module)
    found = other.state_dict()
    dcp.load(found, checkpoint_id=tmp_path / "a")
    other.load_state_dict(found)
    assert torch.equal(tables.whole(other)["t.weight"], tables.whole(module)["t.weight"])
    checkpoint.load(tmp_path / "a", make(WHOLE))


def test_weights_or_optimizer_alone(tmp_path):
    module = make(GRID, "adam")
    module.train(2)
    dense = nn.Linear(2, 2)
    momentum = torch.optim.SGD(dense.parameters(), lr=0.5)
    checkpoint.save(tmp_path / "a", {"x": module, "dense": dense, "momentum": momentum})
    saved = tables.whole(module)
    for only in ("weights", "optimizer"):
        other = make(BRICKS, "adam")
        fresh = tables.whole(other)
        model, optimizer = nn.Linear(2, 2), torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        checkpoint.load(tmp_path / "a", {"x": other, "dense": model, "momentum": optimizer},
                        only=only)
        for key, values in tables.whole(other).items():
            taken = key.endswith(".weight") == (only == "weights")
            assert torch.equal(values, saved[key] if taken else fresh[key])
        assert other.step == (2 if only == "optimizer" else 0)
        assert torch.equal(model.weight, dense.weight) == (only == "weights")
        assert optimizer.param_groups[0]["lr"] == (0.5 if only == "optimizer" else 0.1)
    with pytest.raises(ValueError, match="expected 'weights' or 'optimizer', got: 'all'"):
        checkpoint.load(tmp_path / "a", {"x": module}, only="all")


# What does not fit


@pytest.mark.parametrize(("other", "message"), [
    ({"rows": 5, "cuts": columns(0, 16, rows=5)},
     r"x\.embedding_bags\.t\.weight: expected \[5, 16\] of torch.float32, the checkpoint has "
     r"\[6, 16\] of torch.float32"),
    ({"type": "bf16"}, r"expected \[6, 16\] of torch.bfloat16, the checkpoint has \[6, 16\] of "),
    ({"optimizer": "adagrad"}, r"t\.sum: expected \[6, 16\] of .* the checkpoint has \[6\] of"),
    ({"optimizer": "adam"}, r"t\.exp_avg is not in the checkpoint; only='weights' loads"),
    ({"name": "u"}, "x.embedding_bags.u.weight is not in the checkpoint.*"
                    "the checkpoint has a table 't', but the module does not"),
])
def test_other_tables_are_refused_before_anything_is_written(tmp_path, other, message):
    checkpoint.save(tmp_path / "a", {"x": make(GRID)})
    module = make(**{"cuts": WHOLE, **other})
    before = tables.whole(module)
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(tmp_path / "a", {"x": module})
    assert all(torch.equal(tables.whole(module)[key], value) for key, value in before.items())


def test_other_values_are_refused(tmp_path):
    checkpoint.save(tmp_path / "a", {"n": 1, "mask": torch.zeros(3)})
    for state, message in (({"m": 1}, "m is not in the checkpoint"),
                           ({"mask": torch.zeros(4)}, r"mask: expected \[4\]"),
                           ({"n": torch.zeros(1)}, r"n: expected a tensor of \[1\]")):
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(tmp_path / "a", state)


def test_spread_optimizers_are_refused(tmp_path):
    class Spread:
        def state_dict(self):
            return {"momentum": make(GRID).state_dict()["embedding_bags.t.weight"]}

        def load_state_dict(self, _):
            raise AssertionError

    with pytest.raises(CheckpointError, match="'o' has tensors that are spread over ranks"):
        checkpoint.save(tmp_path / "a", {"o": Spread()})
    assert os.listdir(tmp_path) == []
