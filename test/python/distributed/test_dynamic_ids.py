"""Tables of dynamic ids on 1, 2, 3 and 4 ranks. Each number of ranks is one job; cases are in
distributed_dynamic.py and distributed_dynamic_checkpoints.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from distributed_models import KINDS
from neuroshard.distributed._dynamic_ids.dealing import deal
from support.dynamic_batches import POLICIES
from support.ranks import Ranks, chosen_cases

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam")


def same_bits(**options):
    return ":".join(["dynamic.same_bits", *(f"{key}={value}" for key, value in options.items())])


POLICY = [same_bits(policy=one) for one in POLICIES]
CUT = [same_bits(kind=kind, optimizer=OPTIMIZERS[(number + 2) % 4])
       for number, kind in enumerate(KINDS)]
EMULATED = [same_bits(kind=kind, optimizer=OPTIMIZERS[number % 4], device="emulator", steps=8)
            for number, kind in enumerate(("rows", "columns", "rows_and_columns", "replicated", "copies"))]
EVERY = [same_bits(kind=kind, optimizer=optimizer, type=type, device=device) for kind in KINDS
         for optimizer in OPTIMIZERS for type in ("f32", "bf16") for device in ("cpu", "emulator")]
FORMS = [same_bits(pooling="none"), same_bits(kind="rows", optimizer="ftrl"), same_bits(type="bf16", kind="columns", optimizer="adam"),
         same_bits(kind="columns", optimizer="partial_rowwise_lamb"),
         same_bits(kind="columns", optimizer="rowwise_adagrad_with_counter"), same_bits(tier="ssd", kind="rows"),
         same_bits(tier="dram", kind="columns", device="emulator", optimizer="rowwise_adagrad", steps=8)]
HELD = [*(f"dynamic.held:way={way}" for way in ("accumulate", "two_forwards", "step")),
        "dynamic.held:policy=lfu", "dynamic.held:policy=age:way=two_forwards", "dynamic.started"]
MODES = [*(f"dynamic.modes:mode={mode}" for mode in ("eval", "no_grad", "frozen")),
         "dynamic.modes:device=emulator"]
ERRORS = ["dynamic.refuse", "dynamic.errors", "dynamic.wrong_steps", "dynamic.static_errors"]
OTHERS = ["dynamic.threads", "dynamic.compiled", "dynamic.memory", "trace.id_maps", "dynamic.two_tables"]
SAVED = [*(f"dynamic_checkpoints.resume:policy={one}" for one in POLICIES),
         "dynamic_checkpoints.resume:by=state_dict", "dynamic_checkpoints.whole",
         "dynamic_checkpoints.errors"]
FEWER = [f"dynamic_checkpoints.other_ranks:policy={one}:first={first}:second={second}"
         for one, first, second in (("lru", 4, 3), ("lfu_after", 4, 3), ("share", 3, 4), ("lfu", 1, 4))]
MOVED = [*(f"dynamic_checkpoints.moved_same_ranks:policy={one}" for one in ("lru", "lfu_after")),
         "dynamic_checkpoints.never_moved:policy=age", "dynamic_checkpoints.moved_too_many"]
OTHERS_MOVED = [f"dynamic_checkpoints.moved_other_ranks:policy={one}:first={first}:second={second}"
                for one, first, second in (("lru", 4, 3), ("lfu_after", 4, 3), ("share_after", 3, 4), ("age", 1, 4))]
PIPED = [*(f"dynamic.pipelined:policy={one}" for one in POLICIES), "dynamic.pipelined:depth=3:policy=lfu",
         "dynamic.pipelined:kind=copies:optimizer=adam", "dynamic.pipelined:tier=ssd",
         "dynamic.pipelined:tier=dram:device=emulator:kind=columns:steps=8",
         "dynamic.pipelined:device=emulator:optimizer=rowwise_adagrad:kind=rows_and_columns:steps=8",
         *(f"dynamic.pipelined_otherwise:way={way}"
           for way in ("other_ids", "no_grad", "skipped", "accumulate", "loaded", "break")),
         "dynamic.pipelined_otherwise:way=other_ids:depth=3", "dynamic.pipelined_kept", "dynamic.pipelined_errors"]

CASES = {1: [POLICY[0], POLICY[3], HELD[0], MODES[0], ERRORS[0], ERRORS[2], SAVED[0], MOVED[0], *PIPED[::4]],
         2: [*POLICY, *CUT, *EMULATED, *FORMS, *HELD, *MODES, *ERRORS, *OTHERS, *SAVED, *MOVED, *PIPED],
         3: [*POLICY[1::2], *CUT[::3], HELD[1], *ERRORS, OTHERS[-1], *SAVED[::3], *MOVED[::2], *PIPED[1::3]],
         4: [POLICY[3], CUT[5], EMULATED[2], *FEWER, *OTHERS_MOVED]}
if ALL:
    CASES = {ranks: list(dict.fromkeys([*cases, *EVERY])) for ranks, cases in CASES.items()}


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """By number of ranks, the selected cases."""
    folder = tmp_path_factory.mktemp("dynamic")
    return {ranks: Ranks(ranks, some, folder, environment={"NEUROSHARD_CACHE": str(folder / "cache")},
                         modules=("neuroshard.distributed", "torch._dynamo"))
            for ranks, some in chosen_cases(request, CASES).items()}


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(runs, ranks, case):
    runs[ranks].check(case)


@pytest.mark.parametrize(("used", "free", "shares"), [
    ([0, 0, 0], 7, [3, 2, 2]), ([5, 0, 1], 6, [0, 4, 2]), ([9, 1, 2], 3, [0, 2, 1]), ([4, 4], 0, [0, 0]),
    ([10, 2, 7], 100, [29, 38, 33])])
def test_deal(used, free, shares):
    """Ranks with the fewest used rows get free ones, until all have as many."""
    assert deal(used, free) == shares


def three_ranks(folder, does):
    """The end of ranks of which the second alone does something: (return codes, texts of errors)."""
    worker = Path(__file__).with_name("dynamic_ids_alone.py")
    ranks = [subprocess.Popen([sys.executable, worker, str(rank), folder / "store", does], text=True,
                              env={**os.environ, "NEUROSHARD_CACHE": str(folder / "cache"),
                                   "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE)
             for rank in range(3)]
    texts = [one.communicate(timeout=100)[1] for one in ranks]
    return [one.returncode for one in ranks], texts


def test_killed(tmp_path):
    """When a rank is killed the others end with an error that names it, before the timeout of the group."""
    codes, texts = three_ranks(tmp_path, "killed")
    assert codes == [1, -9, 1], texts
    for rank in (0, 2):
        assert "rank 1" in texts[rank] and "DistBackendError" in texts[rank], texts[rank]


@pytest.mark.parametrize("does", ("evaluates", "others", "skips") if ALL else ("evaluates",))
def test_alone(tmp_path, does):
    """A rank that alone departs from what was mapped ahead is one error on all, before the timeout."""
    codes, texts = three_ranks(tmp_path, does)
    assert codes == [1, 1, 1], texts
    causes = {re.search(r"DistBackendError: (rank 1 does not begin its step as its ids were mapped ahead, and "
                        r"rank [02] does; .*)", text).group(1) for text in texts}
    assert len(causes) == 1, texts
