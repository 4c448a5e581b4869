"""Links that are measured on emulated hosts, and the topology of a machine file."""

import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import neuroshard as ns
from neuroshard.bench._cluster.network import is_possible
from support.child import environment

JOB = r"""
import json, sys, torch.distributed as dist, neuroshard as ns
from neuroshard.calibration._links import hosts_of_ranks, with_measured_links
dist.init_process_group("gloo")
hosts = hosts_of_ranks()
found = with_measured_links(ns.Topology.parse(sys.argv[1]), hosts)
if dist.get_rank() == 0:
    with open(sys.argv[2], "w") as file:
        json.dump([hosts, [[one.name, one.bandwidth_gb_per_s, one.group_bandwidth_gb_per_s,
                            one.latency_us] for one in found.levels]], file)
dist.barrier()
"""


@pytest.mark.skipif(not is_possible(), reason="needs root and network namespaces")
@pytest.mark.parametrize(("shape", "hosts"), [("2x2", [0, 0, 1, 1]), ("2x1", [0, 1])])
def test_the_rate_of_a_card_and_whether_it_is_shared(shape, hosts, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    done = subprocess.run(
        [sys.executable, "-m", "neuroshard.bench.cluster", f"{shape}@200mbit", tmp_path / "job.py",
         f"{shape}xCPU", tmp_path / "found.json"], capture_output=True, text=True, timeout=600,
        check=False, env=environment())
    assert done.returncode == 0, done.stderr
    found, levels = json.loads((tmp_path / "found.json").read_text())
    assert found == hosts
    name, rate, of_group, latency = levels[0]
    assert name == "cluster" and rate == pytest.approx(0.025, rel=0.2) and latency > 0
    if shape == "2x2":
        assert of_group == pytest.approx(0.025, rel=0.2)
        assert levels[1][1] > 4 * rate  # inside a host
    else:
        assert of_group == 0


def test_the_topology_of_a_file(tmp_path):
    topology = ns.Topology.parse("2x2xCPU@200mbit")
    problem = ns.ShardingProblem(tables=[ns.Table("t", 1000, 16)], features=[ns.Feature("f", "t")],
                                 batch=64, topology=topology)
    problem.save(tmp_path / "workload.json")
    file = str(tmp_path / "workload.json")
    assert ns.Topology.load(file) == topology == ns.Topology.parse(file)
    assert problem.replace(topology=file) == problem
    (tmp_path / "text.json").write_text('{"topology": "2x2xCPU@200mbit"}')
    assert ns.Topology.load(tmp_path / "text.json") == topology
    (tmp_path / "none.json").write_text("{}")
    for name, content, said in (
            ("none.json", "{}", "expected a file with a topology"),
            ("missing.json", None, "cannot open"),
            ("other.json", '{"topology": "2xTPU"}', "topology: unknown device class 'TPU'"),
            ("text.json", "{", "line 1"),
            ("wrong.json", file_with_reserve("lots"), "reserves.dense_bytes: expected"),
            ("less.json", file_with_reserve(-1), "reserves.dense_bytes: expected a whole number")):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        with pytest.raises(ns.InvalidProblem, match=f"{name}: .*{re.escape(said)}"):
            ns.Topology.parse(str(path))
        with pytest.raises(ns.InvalidProblem, match=f"{name}: .*{re.escape(said)}"):
            ns.Topology.load(path)


def file_with_reserve(count):
    plain = {"levels": [{"name": "node", "groups": [1], "bandwidth_gb_per_s": 8, "latency_us": 20}],
             "hosts": [{"memory_bytes": 10}],
             "devices": [{"class": "CPU", "memory_bytes": 10, "host": 0,
                          "reserves": {"dense_bytes": count}}]}
    return json.dumps({"topology": plain})
