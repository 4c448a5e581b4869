"""Checkpoints of sharded tables between 4, 3 and 2 ranks: bits, the matrix of
optimizers and kinds of sharding, conversions, full disks, damage, killed ranks."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import matrix
from support.ranks import LAUNCHER, tail

HERE = Path(__file__).parent
WORKER = HERE / "checkpoint_worker.py"
TIMEOUT_S = 900
MODULES = "neuroshard.distributed,torch.distributed.checkpoint,torch._dynamo"
SEED = matrix.seed()
# Rotation r loads a table that was sharded in kind k in kind k + r, so that all rotations
# together load every kind in every kind. A sample is named by the names of its tests.
ROTATIONS = {ranks: matrix.sample(range(5), 1, f"checkpoint rotations on {ranks} ranks")
             for ranks in (2, 3)}
SEMANTICS = ("exact", "per_shard")
KILLS = {"write": "another rank while it writes", "complete": "rank 0 before the last file",
         "rename": "rank 0 between the names", "remove": "rank 0 after the names"}

CASES = {
    4: [f"matrix_save:seed={SEED}",
        *(f"bits_save:semantics={one}" for one in SEMANTICS), "plain", "asynchronous",
        "subgroups", "full_disk", "disagreement"],
    3: [*(f"matrix_load:seed={SEED}:rotation={one}" for one in ROTATIONS[3]),
        "bits_load:semantics=exact", "unsharded", "training_state", "damage",
        *(f"per_shard:source={one}:target={other}" for one in SEMANTICS for other in SEMANTICS),
        "per_shard:real=1",
        *(f"after_killed:where={where}" for where in KILLS)],
    2: [*(f"matrix_load:seed={SEED}:rotation={one}" for one in ROTATIONS[2]),
        "bits_load:semantics=exact", "blocks",
        *(["plain:real=1", "asynchronous:real=1"] if os.environ.get("NEUROSHARD_ALL") else [])],
}


def run_cases(ranks, folder):
    """Runs the cases of a number of ranks; gives, by case, what went wrong on which rank."""
    logs = folder / f"logs-{ranks}"
    logs.mkdir()
    output = run([LAUNCHER, str(ranks), logs, MODULES, WORKER, folder, *CASES[ranks]], folder,
                 logs)
    found = [json.loads((folder / f"results-{ranks}-{rank}.json").read_text())
             for rank in range(ranks)]
    return {case: [one.get(case, f"not reached\n{output}") for one in found]
            for case in CASES[ranks]}


def run(arguments, folder, logs=None):
    """The output of a Python program, with the ends of its logs if it failed; none of its
    processes outlives the test."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env={**os.environ, "OMP_NUM_THREADS": "1",
                                    "NEUROSHARD_CACHE": str(folder / "cache")})
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output + "".join(map(tail, sorted(logs.iterdir()) if logs
                                                         else ()))
    return output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def killed(folder):
    """Saves in which a rank is killed; gives which one."""
    victims = dict.fromkeys(KILLS, 0) | {"write": random.Random(SEED).randrange(1, 3)}
    output = run([WORKER, "--fork", "3", folder, *(
        f"killed:where={where}:victim={victim}" for where, victim in victims.items())], folder)
    return victims, output


@pytest.fixture(scope="module")
def results(folder, killed):
    return {ranks: run_cases(ranks, folder) for ranks in (4, 3, 2)}


@pytest.mark.parametrize(("ranks", "case"),
                         [(ranks, case) for ranks, cases in CASES.items() for case in cases])
def test_ranks(results, ranks, case):
    wrong = {rank: text for rank, text in enumerate(results[ranks][case]) if text}
    assert not wrong, next(iter(wrong.values()))


@pytest.mark.parametrize("where", KILLS, ids=KILLS.get)
def test_a_killed_rank_ends_the_others_with_one_error(folder, killed, where):
    victims, output = killed
    for rank in {0, 1, 2} - {victims[where]}:
        error = folder / f"killed-{where}" / f"error-{rank}"
        assert error.exists(), output
        cause = (f"rank {victims[where]} does not answer" if victims[where] else
                 "rank 0 of the job does not answer")  # it had the store
        assert error.read_text().startswith(
            f"saving {folder / f'killed-{where}' / 'step-1'}: {cause}")
