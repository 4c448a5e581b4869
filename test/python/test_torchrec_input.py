"""What nobody should pass to neuroshard.torchrec: each argument is refused by its name."""

import re

import pytest

pytest.importorskip("torchrec")

import neuroshard as ns
from neuroshard.torchrec import to_torchrec

PLAN = ns.Plan(shards=[ns.Shard(table="m.t", rows=(0, 60), cols=(0, 8), devices=3)],
               device_count=4)


def refused(kind, text, work):
    with pytest.raises(kind, match=re.escape(text)) as caught:
        work()
    assert caught.type is kind


@pytest.mark.parametrize(("kind", "text", "arguments"), [
    (ValueError, "local_ranks: expected a divisor of the plan's 4 ranks, as all hosts have as "
     "many; got: -1", {"local_ranks": -1}),
    (ValueError, "got: 0", {"local_ranks": 0}),
    (ValueError, "got: 3", {"local_ranks": 3}),
    (ValueError, "got: 8", {"local_ranks": 8}),
    (TypeError, "local_ranks: expected a whole number, got: 2.0", {"local_ranks": 2.0}),
    (TypeError, "local_ranks: expected a whole number, got: True", {"local_ranks": True}),
    (ValueError, "unpooled: expected paths of the modules ('m'), got: 'n'", {"unpooled": ["n"]}),
    (TypeError, "unpooled: expected a list of texts, got: 'm'", {"unpooled": "m"}),
    (TypeError, "modules: expected the names of each module's tables by its path, got: ['m']",
     {"modules": ["m"]}),
    (TypeError, "modules['m']: expected a list of texts, got: 't'", {"modules": {"m": "t"}}),
    (ValueError, 'device: expected a type of devices without a number, "cuda" or "cpu", got: '
     "'cuda:0'", {"device": "cuda:0"}),
    (ValueError, "device: expected", {"device": "gpu"}),
    (TypeError, "device: expected a type of devices", {"device": None}),
    (TypeError, "plan: expected a neuroshard.Plan, got: None", {"plan": None})])
def test_to_torchrec_refuses(kind, text, arguments):
    arguments = {"plan": PLAN, "modules": {"m": ["t"]}, **arguments}
    refused(kind, text, lambda: to_torchrec(**arguments))


def test_to_torchrec_takes_every_divisor():
    for local in (1, 2, 4, None):
        shard = to_torchrec(PLAN, {"m": ["t"]}, local_ranks=local,
                            unpooled=["m"]).plan["m"]["t"].sharding_spec.shards[0]
        assert str(shard.placement) == f"rank:3/cuda:{3 % (local or 4)}"
