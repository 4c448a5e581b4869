"""The emulated cluster: shapes, a job on its hosts, what it counts, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from neuroshard.bench._cluster.cores import RANK_GROUPS, Cores
from neuroshard.bench._cluster.network import is_possible
from neuroshard.bench._cluster.shape import Shape, parse_shape
from support.artifact import tool
from support.child import environment

needs_namespaces = pytest.mark.skipif(not is_possible(), reason="needs root and network namespaces")

# Rank 0 sends 4 MB to each rank of the other host, and 9 MB to its neighbour.
JOB = r"""
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for other, count in ((1, 9_000_000), (2, 4_000_000), (3, 4_000_000)):
    values = torch.full((count,), 7, dtype=torch.uint8)
    if rank == 0:
        dist.send(values, other)
    if rank == other:
        dist.recv(values, 0)
        assert (values == 7).all()
if len(sys.argv) > 1 and rank == 3:
    sys.exit(5)
dist.barrier()
sys.stdout.write(f"rank {rank} done\n")
"""


def run(*arguments):
    """How it ended; none of its hosts may stay."""
    process = start(*arguments, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=600)
    if is_possible():
        assert not spaces(process)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start(*arguments, **streams):
    return subprocess.Popen([sys.executable, "-m", "neuroshard.bench.cluster", *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True, **streams,
                            env=environment())


def spaces(process):
    """The hosts of this process; other tests may have some meanwhile."""
    listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines()
            if re.match(f"neuroshard{process.pid}[a-z]", line)]


@needs_namespaces
def test_a_job_on_two_hosts(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    done = run("2x2@400mbit", tmp_path / "job.py")
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line) == [
        f"rank {rank} done" for rank in range(4)]
    sent = [float(line.split()[3]) for line in done.stderr.splitlines() if line.startswith("host ")]
    # Headers, and what the ranks say to begin and end.
    assert 8 <= sent[0] <= 9.5 and sent[1] <= 1.5, done.stderr


def has_own_cores():
    with Cores(3) as cores:
        return cores.are_apart


@pytest.mark.skipif(not has_own_cores(), reason="needs control groups")
def test_each_rank_has_its_share_of_the_cores():
    with Cores(3) as cores:
        path = cores.environment()[RANK_GROUPS]
        program = ("import sys; from neuroshard.bench._cluster.cores import join; join(); "
                   "print(open('/proc/self/cgroup').read())")
        groups = [Path(f"{path}-{rank}") for rank in range(3)]
        for rank, group in enumerate(groups):
            listing = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True,
                env=environment(**cores.environment(), RANK=str(rank))).stdout
            assert f"/{group.name}" in listing
            assert limit_of(group) == pytest.approx(len(os.sched_getaffinity(0)) / 3, rel=0.01)
    assert not any(group.exists() for group in groups)


def limit_of(group):
    """Cores, as the kernel has them."""
    if (group / "cpu.max").exists():
        quota, period = (group / "cpu.max").read_text().split()
    else:
        quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(quota) / int(period)


@needs_namespaces
def test_a_rank_that_fails_ends_the_job(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    done = run("2x2@400mbit", tmp_path / "job.py", "fail")
    assert done.returncode != 0


@needs_namespaces
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_that_is_stopped_leaves_nothing(tmp_path, number):
    (tmp_path / "job.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    process = start("2x1@400mbit", tmp_path / "job.py")
    try:
        assert process.stdout.readline().startswith("begun")
    finally:
        process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not spaces(process)
    running = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True)
    assert not [line for line in running.stdout.splitlines()
                if str(tmp_path) in line and not line.startswith("Z")]


@needs_namespaces
def test_plans_on_a_cluster(tmp_path):
    done = subprocess.run(
        [tool("neuroshard-bench"), "plans", "--python", sys.executable, "--cluster", "2x1@400mbit",
         "--tasks", "1", "--rounds", "4", "--batch", "32", "--megabytes", "1",
         "--algorithms", "default,dim"], capture_output=True, text=True, timeout=1200, check=False,
        env={**os.environ, "NEUROSHARD_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stderr
    assert "1 tasks on 2 ranks" in done.stdout and "host 1 sent" in done.stderr


def test_shapes():
    assert parse_shape("2x4@200mbit") == Shape(2, 4, 200)
    assert parse_shape("16x1@2.5gbit") == Shape(16, 1, 2500)
    for wrong in ("", "2x2", "0x2@1mbit", "2x2@200", "2x2@-1mbit", "999x1@1gbit", "2x0@1gbit",
                  "2x2@1001gbit", "2x2@99999999999999999999mbit"):
        with pytest.raises(ValueError, match="expected HOSTSxRANKS@RATE"):
            parse_shape(wrong)


@pytest.mark.parametrize(("arguments", "text"), [
    (("2x2",), "expected HOSTSxRANKS@RATE"), (("2x2@1gbit",), "expected a script or -m MODULE")])
def test_refuses(arguments, text):
    done = run(*arguments)
    assert done.returncode == 2 and text in done.stderr
