"""Faults on real processes. Every rank ends and names one cause, or goes on, no process stays, and
the last complete checkpoint loads."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import matrix

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from faults_kinds import IN_STEP, KINDS, draw  # noqa: E402

IN_A_STEP = {"ranks": 3, "point": "forward", "count": 3, "shape": "one module", "delay_ms": 0}
DRAWN = {"the store's rank is stopped": {**IN_A_STEP, "kind": "stop", "victim": 0},
         "a rank hangs": {**IN_A_STEP, "kind": "hang", "victim": 1},
         "a rank is killed while tables move": {**IN_A_STEP, "kind": "kill", "victim": 1,
                                                "point": "move", "count": 2, "delay_ms": 8},
         **{f"fault-{number}": draw(matrix.seed(), number)
            for number in matrix.sample(range(200), 5, "faults")}}
CASES = {**{name: {"case": name, "ranks": 3}
            for name in ("recoverable", "save_at_exit", "two_leave", "broken_gpu")}, **DRAWN}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def results(folder):
    """How each rank of each case ended."""
    environment = {**os.environ, "NEUROSHARD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, HERE / "faults_ranks.py", folder],
                          input=json.dumps(CASES), capture_output=True, text=True, check=False,
                          env=environment, timeout=1000 * len(CASES))
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("name", DRAWN)
def test_a_fault_ends_all_ranks_or_none(results, name):
    spec, ranks = DRAWN[name], results[name]
    kind, victim = KINDS[spec["kind"]], spec["victim"]
    said = f"{spec}\n" + "\n".join(f"-- {one['status']}\n{one['output']}" for one in ranks)
    if not kind.cause:
        assert all(one["status"] == 0 for one in ranks), said
        assert sum(one["output"].count("trained") for one in ranks) == spec["ranks"], said
        return
    cause = re.compile(kind.cause.replace("{v}", str(victim)))
    alone = kind.launcher != "fork"
    for rank, one in enumerate(ranks):
        if rank != victim or alone:
            assert one["status"] not in (0, "did not end") and cause.search(one["output"]), said
        if not alone:
            expected = kind.status if rank == victim else (1,)
            assert expected is None or one["status"] in expected, (rank, said)
    assert "did not end" not in [one["status"] for one in ranks], said


def saved_before(spec):
    """The step of the last checkpoint that was complete before a fault."""
    if spec["point"] == "save":
        return 4 * (spec["count"] - 1)
    if spec["point"] == "move":
        return 4 * spec["count"]
    return (spec["count"] - 1) // 4 * 4 if spec["point"] in IN_STEP else 0


@pytest.mark.parametrize("name", DRAWN)
def test_the_checkpoint_before_a_fault_loads(results, folder, monkeypatch, name):
    import faults_job
    import neuroshard as ns
    from neuroshard.distributed import latest, load

    path = latest(folder / name)
    expected = saved_before(DRAWN[name])
    assert path or not expected, list((folder / name).iterdir())
    if not path:
        return
    monkeypatch.setenv("NEUROSHARD_CACHE", str(folder / "cache"))
    problem = faults_job.problem(1)
    tables = ns.ShardedEmbeddingBagCollection(faults_job.plan(problem, 1), problem,
                                              learning_rate=0.1, threads=1)
    state = {"tables": tables, "step": 0}
    load(path, state)
    tables.close()
    assert path.name == f"step-{state['step']}"
    assert state["step"] >= expected


def test_exit_handlers_of_failed_programs_run_to_their_end(results, folder):
    assert all(one["status"] for one in results["save_at_exit"]), results["save_at_exit"]
    assert sorted(one.name for one in (folder / "save_at_exit").glob("saved-*")) == [
        "saved-0", "saved-1", "saved-2"]


def test_all_ranks_that_have_left_are_named(results):
    assert lines_of(results["two_leave"][0], "alone") == (
        "DistBackendError: ranks 1 and 2 have left: their programs have ended")


def test_a_gpu_that_fails_in_a_step_ends_it_on_all_ranks(results):
    said = [[lines_of(rank, name) for name in ("broken", "next")] for rank in results["broken_gpu"]]
    assert all("CUDA_ERROR_ILLEGAL_ADDRESS" in text for one in said for text in one), said
    assert all("rank 1: " in text for rank in (0, 2) for text in said[rank]), said


def lines_of(rank, name):
    """What a rank printed under a name, as one line."""
    text = rank["output"].partition(f"{name}: ")[2]
    return text.splitlines()[0] if text else rank["output"]


RECOVERABLE = {
    "another plan": "GroupError: rank 1 has another plan than rank 0",
    "another table": "GroupError: rank 1 has another model than rank 0",
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
