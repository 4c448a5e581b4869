"""Faults on real processes: wrong input, a full disk, errors and kills. Every rank ends, or goes
on, and names one cause, and the last complete checkpoint loads."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import matrix

HERE = Path(__file__).parent
# What a survivor of a lost rank may say.
CAUSE = re.compile(r"rank [\d, ]+(?:of the job )?does not answer|rank \d+ has \w+|"
                   r"rank \d+: its program ended with [^\n]*")


def kill(number):
    """One of the 20 kills: a rank, a point of its program, and how long after it. The first rank
    of a host compiles."""
    draw = random.Random(f"{matrix.seed()} kill {number}")
    points = ("forward", "dense", "backward", "all_reduce", "save", "start", "open", "compile")
    point = points[number % len(points)]
    last = {"save": 3}.get(point, 12)
    return {"case": "killed", "ranks": 3, "options": {
        "victim": draw.randrange(3) if point != "compile" else 0, "point": point,
        "step": 1 if point in ("start", "open", "compile") else draw.randint(2, last),
        "delay_ms": draw.choice([0, draw.uniform(0, 3), draw.uniform(0, 12)])}}


KILLS = {f"kill-{number}": kill(number) for number in matrix.sample(range(20), 3, "kills")}
RAISED = {"error": "rank 1: its program ended with ArithmeticError: the loss is nan",
          "in flight": "rank 1: its program ended with ArithmeticError: the loss is nan",
          "interrupt": "rank 1: its program ended with KeyboardInterrupt",
          "exit": "rank 1 has left"}
RAISES = {f"raises {how}": {"case": "raises", "ranks": 3, "options": {
    "how": how, "finally_destroy": how == "error"}} for how in matrix.sample(RAISED, 1, "raises")}
# Far longer than a rank that beats is kept waiting on a machine with other work.
QUICK = {"NEUROSHARD_SILENCE_S": "12"}
SLOW = {"stopped for good": {"case": "stops", "ranks": 3, "options": {"seconds": 60}, "env": QUICK},
        "stopped": {"case": "stops", "ranks": 3, "options": {"seconds": 5}},
        "busy": {"case": "stops", "ranks": 3, "options": {"seconds": 15, "sleeps": True},
                 "env": QUICK},
        "closes": {"case": "closes", "ranks": 3}}
CHOSEN = matrix.sample(SLOW, 1, "slow ranks")
CASES = {"recoverable": {"case": "recoverable", "ranks": 3}, **KILLS, **RAISES,
         **{name: SLOW[name] for name in CHOSEN}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def results(folder):
    """How each rank of each case ended."""
    environment = {"NEUROSHARD_CACHE": str(folder / "cache"), **os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, HERE / "faults_ranks.py", folder],
                          input=json.dumps(CASES), capture_output=True, text=True, check=False,
                          env=environment, timeout=1000 * len(CASES))
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


def said_by(rank):
    """The cause that a rank names last."""
    found = CAUSE.findall(rank["output"])
    return found[-1] if found else rank["output"]


def assert_ended(ranks, lost, cause):
    """All others have ended with an error, by themselves, and name the cause."""
    for number, rank in enumerate(ranks):
        if number != lost:
            assert rank["status"] == 1, (number, rank)
            assert said_by(rank).startswith(cause), (number, rank["output"])


@pytest.mark.parametrize("name", KILLS)
def test_a_killed_rank_ends_all(results, name):
    ranks, victim = results[name], KILLS[name]["options"]["victim"]
    assert ranks[victim]["status"] == -9
    # Rank 0 has the store of the job, without which no one can say more.
    assert_ended(ranks, victim, f"rank {victim} does not answer" if victim else
                 "rank 0 of the job does not answer")


@pytest.mark.parametrize("name", KILLS)
def test_the_checkpoint_before_a_kill_loads(results, folder, name):
    import faults_cases
    import neuroshard as ns
    from neuroshard.distributed import latest, load

    options = KILLS[name]["options"]
    steps = options["step"] - 1 if options["point"] != "save" else 4 * (options["step"] - 1)
    expected = (0 if options["point"] in ("start", "open", "compile")
                else steps // faults_cases.SAVE_EVERY * faults_cases.SAVE_EVERY)
    path = latest(folder / name)
    assert path or not expected, list((folder / name).iterdir())
    if not path:
        return
    os.environ.setdefault("NEUROSHARD_CACHE", str(folder / "cache"))
    problem = faults_cases.problem(1)
    tables = ns.ShardedEmbeddingBagCollection(faults_cases.plan(problem, 1), problem,
                                              learning_rate=0.1, threads=1)
    state = {"tables": tables, "step": 0}
    load(path, state)
    tables.close()
    assert path.name == f"step-{state['step']}"
    assert state["step"] >= expected


@pytest.mark.parametrize("name", RAISES)
def test_an_error_of_one_rank_ends_all_with_it(results, name):
    ranks = results[name]
    assert ranks[1]["status"] not in (0, -9)
    cause = RAISED[name.removeprefix("raises ")]
    if RAISES[name]["options"]["finally_destroy"]:
        # The group may be gone before its end is told: then the rank alone is named.
        causes = {said_by(ranks[one]) for one in (0, 2)}
        assert len(causes) == 1, causes
        cause = "rank 1"
    assert_ended(ranks, 1, cause)


@pytest.mark.parametrize("name", CHOSEN)
def test_slow_ranks_are_waited_for_and_others_are_named(results, name):
    ranks = results[name]
    if name in ("stopped", "busy"):
        assert [rank["status"] for rank in ranks] == [0, 0, 0], ranks
        assert all("trained" in rank["output"] for rank in ranks)
        return
    cause = "rank 1 has closed its tables" if name == "closes" else "rank 1 does not answer"
    for rank in (ranks[0], ranks[2]):
        assert rank["status"] == 1 and said_by(rank).startswith(cause[:len(said_by(rank))])


def lines_of(rank, name):
    """What a rank printed under a name, as one line."""
    text = rank["output"].partition(f"{name}: ")[2]
    return text.splitlines()[0] if text else rank["output"]


RECOVERABLE = {
    "another plan": "GroupError: rank 1 has another plan than rank 0",
    "another table": "GroupError: rank 1 has another tables than rank 0",
    "another topology": "GroupError: rank 1 has another topology than rank 0",
    "planning": "GroupError: rank 0: planning failed: PlanningError: device memory",
    "id": "ValueError: rank 1: ",
    "loader": "GroupError: rank 1: its loader failed before step 1",
    "full disk": "CheckpointError: saving "}


@pytest.mark.parametrize("name", RECOVERABLE)
def test_all_ranks_get_one_error_and_go_on(results, name):
    said = [lines_of(rank, name) for rank in results["recoverable"]]
    own = {"planning": 0, "loader": 1}.get(name)  # which gets its own error, and not its name
    others = [text for rank, text in enumerate(said) if rank != own]
    assert len(set(others)) == 1 and others[0].startswith(RECOVERABLE[name]), said
    if name == "full disk":
        assert "rank 1: " in others[0]
    if own is not None:
        assert said[own].split(": ")[-1] in others[0] or "the disk is gone" in said[own], said


def test_a_loader_three_steps_short_stops_all_at_the_same_step(results):
    assert [lines_of(rank, "steps") for rank in results["recoverable"]] == ["7", "7", "7"]


def test_after_all_that_training_goes_on(results):
    ranks = results["recoverable"]
    assert [rank["status"] for rank in ranks] == [0, 0, 0], ranks
    assert all(rank["output"].rstrip().endswith("trained") for rank in ranks), ranks
