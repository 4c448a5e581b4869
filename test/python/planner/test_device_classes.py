"""Device classes of users: in Python, in files, in texts of topologies, through problems and plans."""

import copy
import json
import os
import pickle
import subprocess

import pytest

import neuroshard as ns
from support.commands import make_runner
from support.planning import small_problem

CARD = ns.DeviceClass("MYCARD", like="H100", memory_bytes="96GiB", memory_bandwidth_gb_per_s=3300,
                      network_group_bandwidth_gb_per_s=100)


@pytest.fixture
def cards(tmp_path):
    """A file with CARD, and a CPU whose kernels take 2 and 3 times as long."""
    slow = {"name": "SLOWBOX", "like": "CPU", "forward_scale": 2, "backward_scale": 3}
    path = tmp_path / "cards.json"
    path.write_text(json.dumps({"schema": "neuroshard.machine.v1",
                                "device_classes": [{**CARD.definition(), "memory_bytes": "96GiB"}, slow]}))
    return path


def test_what_is_not_stated_is_that_of_the_class_it_is_like():
    like = {field: value for field, value, _, _ in ns.device_classes()["H100"].figures()}
    for field, value, _, source in CARD.figures():
        if field in CARD.definition():
            assert value == CARD.definition()[field] and source == "stated by its definition"
        else:
            assert value == like[field] == getattr(CARD, field) and source == "as H100"
    assert "96.0 GiB at 3300 GB/s" in repr(CARD) and "as H100" in CARD._repr_html_()


def test_copies_pickles_and_equal_definitions_are_equal():
    for one in (CARD, ns.device_classes()["H200"]):
        assert copy.deepcopy(one) == one and pickle.loads(pickle.dumps(one)) == one
    assert ns.DeviceClass(**CARD.definition()) == CARD
    assert ns.DeviceClass("MYCARD", like="H100") != CARD


def test_a_topology_names_it_by_text_file_and_problem(cards, tmp_path):
    topology = ns.Topology.parse("2x8xMYCARD", [CARD])
    assert topology == ns.Topology.parse(f"2 x 8 x mycard @ {cards}")
    assert ns.load_device_classes(cards)["MYCARD"] == CARD
    assert topology.devices[0].memory_bytes == 96 * 2**30
    assert topology.levels[0].group_bandwidth_gb_per_s == 100
    problem = small_problem(topology=topology)
    assert ns.ShardingProblem.from_json(problem.to_json()).topology == topology
    problem.save(tmp_path / "workload.json")
    assert ns.load_device_classes(tmp_path / "workload.json") == {"MYCARD": CARD}
    assert problem.replace(topology="4xMYCARD").topology.with_devices(16).device_classes == (CARD,)


def test_scaled_kernels_take_the_stated_multiples(cards):
    problem = small_problem(topology="2xCPU")
    plan = ns.plan(problem, algorithm="dim", progress=False).plan
    slow = problem.replace(topology=f"2xSLOWBOX@{cards}")
    for model in ("auto", "roofline"):
        before = ns.evaluate(problem, plan, cost_model=model).devices
        after = ns.evaluate(slow, plan, cost_model=model).devices
        for one, other in zip(before, after):
            assert other.forward_ms == pytest.approx(2 * one.forward_ms)
            assert other.backward_ms == pytest.approx(3 * one.backward_ms)
    remarks = ns.inspect(slow, plan).remarks
    assert sum("2 (forward) and 3 (backward) times those of CPU" in one for one in remarks) == 1
    bound = ns.inspect(slow, plan, cost_model="roofline")
    assert bound.lower_bound_ms <= bound.cost_ms


@pytest.mark.parametrize(("fields", "message"), [
    ({"name": "h100"}, "is the built-in class H100"),
    ({"name": "A", "like": "H10O"}, "did you mean 'H100'?"),
    ({"name": "A", "like": "H100", "memory_bandwith_gb_per_s": 1}, "did you mean 'memory_bandwidth_gb_per_s'?"),
    ({"name": "A", "kind": "gpu"}, "missing: memory_bytes, host_memory_bytes"),
    ({"name": "A", "like": "H100", "memory_bytes": -1}, "memory_bytes: expected a whole number from 1"),
    ({"name": "A", "like": "H100", "forward_scale": 2}, "backward_scale: is missing"),
    ({"name": "A", "like": "H100", "cache_bytes": "1 parsec"}, "cache_bytes: expected a size with its unit"),
])
def test_bad_definitions_get_one_error(fields, message, tmp_path):
    with pytest.raises(ns.InvalidProblem) as error:
        ns.DeviceClass(**fields)
    assert message in str(error.value) and len(error.value.diagnostics) == 1
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"device_classes": [fields]}))
    with pytest.raises(ns.InvalidProblem) as error:
        ns.Topology.parse(f"4xA@{path}")
    assert message in str(error.value) and "device_classes[0]" in str(error.value)
    assert len(error.value.diagnostics) == 1


@pytest.mark.parametrize(("arguments", "fields"), [((), {}), (("A", "B"), {}), (("A",), {"name": "B"})])
def test_a_class_has_one_name(arguments, fields):
    with pytest.raises(TypeError, match="DeviceClass: expected one name and figures by keyword, as DeviceClass"):
        ns.DeviceClass(*arguments, **fields)


@pytest.mark.parametrize(("field", "value"), [("name", 3), ("like", None), ("kind", b"gpu")])
def test_texts_are_texts(field, value):
    with pytest.raises(TypeError, match=f"DeviceClass.{field}: expected a text, got: "):
        ns.DeviceClass(**{"name": "A", field: value})
    assert ns.DeviceClass(name="A", like="h100") == ns.DeviceClass("A", like="H100")


@pytest.mark.parametrize(("rest", "message"), [
    ({"schema": "neuroshard.plan.v1"}, "schema: expected 'neuroshard.machine.v1' or 'neuroshard.workload.v1', "
                                       "got: 'neuroshard.plan.v1'"),
    ({"schema": "neuroshard.machine.v2"}, "got: 'neuroshard.machine.v2'"),
    ({"schema": 1}, "schema: expected a text"),
    ({"schema": "neuroshard.machine.v1", "device_clases": []}, "device_clases: unknown field"),
    ({"comment": "ours"}, "comment: unknown field"),
])
def test_the_rest_of_a_file_of_classes_is_checked(rest, message, tmp_path):
    path = tmp_path / "cards.json"
    path.write_text(json.dumps({"device_classes": [{"name": "A", "like": "H100"}], **rest}))
    for read in (ns.load_device_classes, lambda file: ns.Topology.parse(f"4xA@{file}")):
        with pytest.raises(ns.InvalidProblem) as error:
            read(path)
        assert message in str(error.value) and len(error.value.diagnostics) == 1


def test_a_file_of_another_ending_is_told_in_a_topology(cards):
    cards.rename(other := cards.with_suffix(".txt"))
    assert set(ns.load_device_classes(other)) == {"MYCARD", "SLOWBOX"}
    with pytest.raises(ns.InvalidProblem, match="a file with device classes, whose name ends in .json"):
        ns.Topology.parse(f"8xH100@{other}")
    with pytest.raises(ns.InvalidProblem, match="8xMYCARD@cards.json has a class of your own, in a file whose name ends"):
        ns.Topology.parse(f"8xMYCARD@{other}")


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_refused(cards, tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(ns.InvalidProblem, match="pipe: is a pipe that nobody writes to"):
        ns.load_device_classes(pipe)
    with subprocess.Popen(["cp", cards, pipe]):
        assert set(ns.load_device_classes(pipe)) == {"MYCARD", "SLOWBOX"}


def test_commands_take_the_file_and_list_the_class(cards, capsys, tmp_path):
    run = make_runner(capsys, tmp_path)
    small_problem().save(tmp_path / "small.json")
    for command, option in (("plan", "--topology"), ("explain", "--topology"), ("what-if", "-c")):
        done = run(command, tmp_path / "small.json", option, f"4xMYCARD@{cards}")
        assert done.code == 0 and "MYCARD" in done.out, done.out
    listed = run("devices", "MYCARD", "--file", cards)
    assert "3300" in listed.out and "stated by its definition" in listed.out and "as H100" in listed.out
    assert "did you mean 'H200'?" in run("devices", "H20O").err
    assert "'aws:p5.48xlarge' is a node of 8 H100" in run("devices", "p5.48xlarge").err
    assert {"name", "meaning"} == set(json.loads(run("devices", "--fields", "--json").out)["fields"][0])
    assert "leave out CLASS" in run("devices", "--fields", "H200").err
    assert json.loads(run("devices", "--json").out)["classes"][0]["figures"]["memory_bytes"]["source"] == "of data sheets"


def test_assumptions_are_what_the_problem_does_not_say():
    problem = small_problem(topology="2xH200")
    result = ns.plan(problem, progress=False)
    about = {one.about for one in result.assumptions}
    assert {"access", "memory", "reserves", "links", "dense"} <= about
    assert result.assumptions == ns.inspect(problem, result.plan).assumptions
    said = problem.replace(
        tables=[table.replace(access=ns.Access(reuse=[1] + [0] * 16, batch=64)) for table in problem.tables],
        features=[one.replace(mean_pooling=2, p99_pooling=3) for one in problem.features],
        topology="2xH200@100GiB",
        constraints=ns.Constraints(reserves=ns.Reserves(dense_bytes=0, fragmentation_bytes=0, communicator_bytes=0)))
    left = ns.plan(said, progress=False, objective=ns.Objective(dense_rest_ms=1)).assumptions
    assert {one.about for one in left} == {"links"}
    def reserves_of(problem):
        return {one.text.split(": ", 1)[1] for one in ns.plan(problem, progress=False).assumptions if one.about == "reserves"}

    cpus = problem.replace(topology="2xCPU")
    assert reserves_of(problem) == {"'neuroshard calibrate' measures them from the memory statistics of a run"}
    assert reserves_of(cpus) == {"'neuroshard calibrate' measures them but for the dense model, which is set by "
                                 "constraints.reserves.dense_bytes of the workload"}
    measured = ns.Reserves(fragmentation_bytes=5, communicator_bytes=5)  # as calibrate does on CPUs
    assert reserves_of(cpus.replace(constraints=ns.Constraints(reserves=measured))) == {
        "set it by constraints.reserves.dense_bytes of the workload"}
    assert reserves_of(cpus.replace(constraints=ns.Constraints(reserves=ns.Reserves(dense_bytes=5)))) <= {
        "'neuroshard calibrate' measures them"}
    ones = problem.replace(features=[one.replace(mean_pooling=1, p99_pooling=0, presence=1) for one in problem.features])
    text = next(one.text for one in ns.plan(ones, progress=False).assumptions if one.about == "pooling")
    assert f"1 id of all {len(problem.features)} features" in text
