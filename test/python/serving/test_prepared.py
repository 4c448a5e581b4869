"""Prepared lookups read the tensors that they were prepared for, and no other memory."""

import pytest
import torch

import neuroshard as ns
from neuroshard.distributed import Jagged
from neuroshard.errors import TensorError


@pytest.mark.parametrize("part", ["ids", "offsets"])
@pytest.mark.parametrize("replace", [
    lambda one: one.set_(one.clone()), lambda one: one.resize_(one.numel() * 1000), lambda one: one.resize_(1),
    lambda one: setattr(one, "data", one.clone())], ids=["set", "grown", "shrunk", "data"])
def test_prepared_lookups_refuse_replaced_memory(small, part, replace):
    """The memory that was prepared may be freed, so nothing of it is read."""
    with ns.serve(small[2]) as tables:
        ids = Jagged(torch.tensor([1, 2]), torch.tensor([0, 1, 2]))
        prepared = tables.prepare(ids)
        prepared()
        replace(getattr(ids, part))
        with pytest.raises(TensorError, match="other memory than when this lookup was prepared.*prepare it again"):
            prepared()


def test_results_of_prepared_lookups_keep_their_memory(small):
    with ns.serve(small[2]) as tables:
        prepared = tables.prepare(Jagged(torch.tensor([1, 2]), torch.tensor([0, 1, 2])))
        first = prepared()
        (name, result), before = next(iter(first.items())), {key: value.clone() for key, value in first.items()}
        with pytest.raises(RuntimeError, match="resiz"):
            result.resize_(result.numel() * 1000)
        result.data = torch.zeros(1)  # The memory that is written stays.
        for key, value in prepared().items():
            assert key == name or torch.equal(value, before[key])


def test_prepared_lookups_read_tensors_anew(small):
    ids = Jagged(torch.tensor([1, 2]), torch.tensor([0, 1, 2]))
    with ns.serve(small[2]) as tables:
        prepared = tables.prepare(ids)
        before = {name: value.clone() for name, value in prepared().items()}
        ids.ids[:] = torch.tensor([4, 5])
        assert not any(torch.equal(value, before[name]) for name, value in prepared().items())
        for other in ({"u": torch.tensor([[1]]), "i": torch.tensor([[1]])}, ids._replace(ids=ids.ids.int()),
                      ids._replace(ids=torch.arange(4)[::2])):
            with pytest.raises(TensorError, match="prepare: expected a Jagged of contiguous tensors"):
                tables.prepare(other)
