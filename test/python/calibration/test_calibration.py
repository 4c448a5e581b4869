"""neuroshard calibrate on two ranks, its file in a plan; the fit on numbers with known answers."""

import json
import mmap
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import neuroshard as ns
from neuroshard.calibration import (TERMS, Fit, Run, Steps, errors_of, exposed_exchange_ms, fit,
                                    fit_line, fit_scale, interval, left_out, ratios_of, run_of)
from neuroshard.calibration._capacity import (Place, control_group_bytes, limited, physical_bytes,
                                              this_place)
from neuroshard.calibration._memory import (Memory, Use, peak_bytes, proportional_bytes,
                                            reset_peak, resident_bytes)
from neuroshard.calibration._memory import fit as fit_memory
from support.child import environment


def calibrate(*arguments, ranks=2):
    """Without torchrun, which takes its time, where there is one rank."""
    launcher = () if ranks == 1 else ("-m", "torch.distributed.run", "--standalone",
                                      "--nproc-per-node", str(ranks))
    return subprocess.run(
        [sys.executable, *launcher, "-m", "neuroshard", "calibrate", *map(str, arguments)],
        capture_output=True, text=True, timeout=900, check=False,
        env=environment())


def test_a_machine_file_prices_plans(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSHARD_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "machine.json"
    done = calibrate("-o", file, "--minutes", "0.05", "--batch", "64")
    assert done.returncode == 0, done.stderr
    assert "torchrun has not started this" not in done.stderr
    assert "12 plans of 4 models" in done.stdout and "left out of the fit" in done.stdout
    plain = json.loads(file.read_text())
    assert (plain["device_class"], plain["devices"], plain["groups"]) == ("CPU", 2, 1)
    assert set(plain["terms"]) == set(TERMS)
    problem = ns.ShardingProblem(tables=[ns.Table("t", 1000, 16)],
                                 features=[ns.Feature("f", "t")], batch=64, topology="2xCPU")
    parts = ns.plan(problem, cost_model=str(file)).breakdown
    assert parts.fixed_ms == plain["step_fixed_ms"]
    bounds = plain["step_interval"]
    assert 0 < bounds["low"] <= 1 <= bounds["high"]
    assert (parts.low_ms, parts.high_ms) == pytest.approx(
        (bounds["low"] * parts.cost_ms, bounds["high"] * parts.cost_ms))
    assert parts.cost_ms == pytest.approx(
        parts.input_ms + parts.fetch_ms + parts.max_forward_ms + parts.exposed_forward_communication_ms
        + parts.dense_ms + parts.backward_communication_ms + parts.max_backward_ms
        + parts.fixed_ms)
    assert "machine:" in ns.plan(problem, cost_model=str(file)).plan.provenance.cost_model
    assert "memory of a rank" in done.stdout and "memory of a device: " in done.stdout
    assert 0 < sum(one["memory_bytes"] for one in plain["topology"]["devices"]) <= this_place().total
    assert 0 < plain["topology"]["hosts"][0]["memory_bytes"] <= this_place().total
    reserves, = {device.reserves for device in ns.Topology.load(file).devices}
    assert reserves.dense_bytes is None and reserves.fragmentation_bytes >= 0
    assert 2**26 < reserves.communicator_bytes < 2**31
    least, most = plain["measured"]["memory_over_predicted"]
    assert 0 < least <= most
    memory = ns.plan(problem.replace(topology=str(file)), cost_model=str(file)).memory.devices[0]
    assert memory.communicator_bytes == reserves.communicator_bytes
    assert memory.fragmentation_reserve_bytes == reserves.fragmentation_bytes
    assert memory.dense_reserve_bytes == 2**28
    check_class(file, plain, done.stdout, problem)


def check_class(file, plain, said, problem):
    """The class that the file defines has the measured figures, and a cluster of it is planned by them."""
    own = ns.load_device_classes(file)["MEASURED"]
    device, level = plain["topology"]["devices"][0], plain["topology"]["levels"][0]
    assert (own.like, own.kind, own.devices_per_node) == ("CPU", "cpu", 2)
    assert (own.memory_bytes, own.node_bandwidth_gb_per_s, own.node_latency_us) == (
        device["memory_bytes"], level["bandwidth_gb_per_s"], level["latency_us"])
    assert own.communicator_reserve_bytes == device["reserves"]["communicator_bytes"]
    sources = {field: source for field, _, _, source in own.figures()}
    assert sources["forward_scale"] == sources["node_latency_us"] == "stated by its definition"
    measured, rest = (next(line for line in said.splitlines() if line.startswith(start)).split(": ")[1].split(", ")
                      for start in ("  measured: ", "  as CPU: "))
    assert set(measured) == {field for field, source in sources.items() if source == "stated by its definition"}
    assert "network_bandwidth_gb_per_s" in rest and not set(measured) & set(rest)
    cluster = problem.replace(topology=ns.Topology.parse(f"2x2xMEASURED@{file}"))
    plain_cluster = problem.replace(topology="2x2xCPU")
    plan = ns.plan(cluster)
    parts, other = (ns.evaluate(one, plan.plan) for one in (cluster, plain_cluster))
    assert parts.max_forward_ms == pytest.approx(plain["terms"]["forward"]["scale"] * other.max_forward_ms)
    assert parts.max_backward_ms == pytest.approx(plain["terms"]["backward"]["scale"] * other.max_backward_ms)
    twice = ns.plan(cluster, cost_model=str(file))
    assert any("'MEASURED' states how much longer its kernels take" in remark for remark in twice.remarks)


def test_one_rank_without_torchrun_is_a_warning(tmp_path):
    done = calibrate("-o", tmp_path / "machine.json", "--topology", "2xCPU", ranks=1)
    assert done.returncode == 1 and "the group has 1 rank" in done.stderr, done.stderr
    assert "warning: torchrun has not started this, so that one rank is measured" in done.stderr


def test_a_machine_file_of_torchrec(tmp_path):
    """Models 8 and 9: the second has Adam, which TorchRec lacks on CPUs."""
    file = tmp_path / "machine.json"
    done = calibrate("-o", file, "--minutes", "0.05", "--batch", "64", "--seed", "8", "--engine",
                     "torchrec")
    assert done.returncode == 0, done.stderr
    plain = json.loads(file.read_text())
    assert plain["target"] == "torchrec-1.9"
    scales = {term: one["scale"] for term, one in plain["terms"].items()}
    assert scales["forward"] == scales["backward"]
    assert len({scales[term] for term in set(TERMS) - {"forward", "backward"}}) == 1
    problem = ns.ShardingProblem(tables=[ns.Table("t", 1000, 16)], target="torchrec-1.9",
                                 features=[ns.Feature("f", "t")], batch=64, topology="2xCPU")
    result = ns.plan(problem, cost_model=str(file))
    assert result.breakdown.fixed_ms == plain["step_fixed_ms"]
    assert not any("--engine" in remark for remark in result.remarks)
    other = ns.plan(problem.replace(target="native"), cost_model=str(file))
    assert any("calibrate with its --engine" in remark for remark in other.remarks)


@pytest.mark.parametrize(("ranks", "arguments", "text"), [
    (2, ("--topology", "4xCPU"), "has 4 devices, but the group has 2 ranks"),
    (2, ("--topology", "2x1xCPU"), "has nodes of 1+1 devices, but torchrun has started 2 ranks"),
    (2, ("--batch", "33"), "a batch of 33 does not divide among 2 ranks"),
    (1, ("--topology", "1xH200"), "expected CPUs, whose steps run here; found H200"),
    (1, ("--cost-model", "guess"), "expected auto, roofline"),
    (1, ("--cost-model", "old.json"), "is a machine file; expected the model"),
    (1, ("--minutes", "nan"), "expected a finite number, got: nan"),
    (1, ("--minutes", "inf"), "is not in the range 0.05<=x<=1440"),
    (1, ("--class-name", "h100"), "is the built-in class H100"),
    (1, ("-o", "none/machine.json"), "there is no folder")])
def test_wrong_arguments_end_at_once(tmp_path, ranks, arguments, text):
    done = calibrate("-o", tmp_path / "machine.json", *arguments, ranks=ranks)
    assert done.returncode != 0
    assert text in done.stderr
    assert not (tmp_path / "machine.json").exists()


def test_a_file_that_cannot_be_replaced_is_found_before_measuring(tmp_path):
    file = tmp_path / "machine.json"
    file.write_text("{}")
    if not shutil.which("chattr") or subprocess.run(["chattr", "+i", file], check=False).returncode:
        pytest.skip("needs root, and a file system with the attribute i")
    try:
        done = calibrate("-o", file, ranks=1)
    finally:
        subprocess.run(["chattr", "-i", file], check=True)
    assert done.returncode == 1 and "machine.json: cannot write: Operation not permitted" in done.stderr
    assert "links of level" not in done.stdout


def test_lines_through_known_points():
    assert fit_line([(p, 2 * p + 0.5) for p in (1, 3, 9)]) == pytest.approx((2, 0.5))
    scale, fixed = fit_line([(1, 3.0), (2, 2.0), (3, 1.0)])  # a scale that is not above 0
    assert scale == 0.001 and fixed > 0
    scale, fixed = fit_line([(1, 0.5), (2, 2.5), (4, 7.0)])  # a fixed part below 0
    assert fixed == 0 and scale > 0
    assert fit_line([(0, 5.0), (3, 0.0)]) == (1, 0)


def test_scales_are_medians_of_ratios():
    assert fit_scale([(1, 3.0), (2, 2.0), (4, 100.0), (0, 5.0), (3, 0.0)]) == 3
    assert fit_scale([(0, 5.0)]) == 1
    assert fit_scale([(1e9, 1e-9)]) == 1e-3


def made_run(model, predicted, step, skew=0.0, results=2.5):
    pairs = {term: [(predicted, 2 * predicted + 1)] for term in TERMS}
    pairs["forward_communication"] = [(predicted, results * predicted)]
    return Run(model, "default", pairs, step, skew,
               lambda scales: predicted * sum(scales.values()))


def test_the_rest_of_a_step_is_its_fixed_part():
    runs = [made_run(model, predicted, 5 * (2 * predicted + 1) + 3)
            for model, predicted in enumerate((1.0, 2.0, 5.0))]
    fitted = fit(runs)
    # 10 x the predicted and 8: five terms of twice the predicted and 1, and 3.
    assert fitted == Fit({term: pytest.approx(2) for term in TERMS}, pytest.approx(8))
    assert max(errors_of(fitted, runs)) < 1e-9
    assert max(left_out(runs, errors_of)) < 1e-9
    assert ratios_of(fitted, runs) == pytest.approx([1, 1, 1])


def test_steps_alone_have_two_scales_and_a_fixed_part():
    """Kernels of 1, 2 and 5 ms and exchanges of 3, 1 and 2 take 2 and 8 times that, and 3 ms."""
    def run(model, kernels, exchanges):
        return Run(model, "default", {}, 2 * kernels + 8 * exchanges + 3, 0.0,
                   lambda scales: kernels * scales["forward"] + exchanges * scales["input"])
    runs = [run(0, 1, 3), run(1, 2, 1), run(2, 5, 2), run(3, 1, 1), run(4, 4, 1)]
    fitted = fit(runs)
    assert fitted.step_fixed == pytest.approx(3)
    assert {term: fitted.scales[term] for term in TERMS} == {
        term: pytest.approx(2 if term in ("forward", "backward") else 8) for term in TERMS}
    assert max(left_out(runs, errors_of)) < 1e-9


def test_results_are_timed_where_ranks_start_together():
    runs = [made_run(0, 1.0, 10.0, skew=0.5, results=9.0), made_run(0, 1.0, 10.0, skew=0.1)]
    scales = fit(runs).scales
    assert scales["forward_communication"] / scales["input"] == pytest.approx(2.5 / 3)


def two_ranks():
    phases = dict.fromkeys(("ids_exchange", "lookup", "results_exchange", "gradients_exchange",
                            "norm_exchange", "sort", "update"), 0.0)
    return Steps([40.0, 50.0, 42.0], [
        phases | {"ids_exchange": 3.0, "lookup": 10.0, "results_exchange": 4.0,
                  "gradients_exchange": 6.0, "update": 5.0},
        phases | {"ids_exchange": 2.0, "lookup": 2.0, "results_exchange": 14.0,
                  "gradients_exchange": 9.0, "norm_exchange": 1.0, "sort": 1.0, "update": 1.0}])


def test_exchanges_count_beside_the_slowest_kernels():
    # Ids 3; results are there at 16, 6 after the slowest lookups; the update ends at 12, 7 later
    # than its kernels alone would.
    assert exposed_exchange_ms(two_ranks()) == 3 + 6 + 7


def test_a_run_has_the_terms_of_its_ranks():
    problem = ns.ShardingProblem(tables=[ns.Table("a", 1000, 16), ns.Table("b", 1000, 16)],
                                 features=[ns.Feature("f", "a"), ns.Feature("g", "b")], batch=64,
                                 topology="2xCPU")
    predicted = ns.plan(problem).breakdown
    run = run_of(0, "default", predicted, two_ranks(), lambda scales: 0.0)
    assert run.step_ms == 42 and run.skew == pytest.approx(8 / 9)
    assert [measured for _, measured in run.pairs["forward"]] == [10, 2]
    assert [measured for _, measured in run.pairs["backward"]] == [5, 2]
    assert [run.pairs[term][0][1] for term in ("input", "forward_communication",
                                               "backward_communication")] == [3, 9, 10]


def test_memory_is_what_ranks_have_beside_predicted_tables():
    """Libraries are loaded with the first plan, which does not count, unless it is alone."""
    uses = [Use([200, 210], [420, 380], [100, 100]), Use([500, 510], [90, 95], [100, 100]),
            Use([520, 505], [80, 120], [100, 100])]
    found = fit_memory(uses)
    assert found == Memory(process=510, beyond=20, least=0.8, most=1.2)
    assert found.reserves == ns.Reserves(fragmentation_bytes=20, communicator_bytes=510)
    assert fit_memory(uses[1:2]) == Memory(process=510, beyond=0, least=0.9, most=0.95)


def test_the_peak_of_a_process_is_measured():
    """100 MB that are there for a moment, and not of what malloc had kept."""
    if not reset_peak():
        pytest.skip("the system lets no process reset its peak")
    before = resident_bytes()
    with mmap.mmap(-1, 100_000_000) as held:
        held.write(b"x" * len(held))
    assert 90e6 < peak_bytes() - before < 250e6
    assert reset_peak() and peak_bytes() - before < 50e6
    assert 0 < proportional_bytes() <= resident_bytes() * 1.1


def test_devices_have_no_more_memory_than_their_machine():
    """Three hosts, two of them emulated on one machine of 8 GiB, and one on a machine of 100 GiB."""
    given = ns.Topology.parse("3x2xCPU")
    assert [host.memory_bytes for host in given.hosts] == [64 * 2**30] * 3
    places = [Place("a", 8 * 2**30 + 1)] * 4 + [Place("b", 100 * 2**30)] * 2
    found = limited(given, places)
    assert {device.memory_bytes for device in found.devices} == {2 * 2**30}
    assert [host.memory_bytes for host in found.hosts] == [4 * 2**30, 4 * 2**30, 64 * 2**30]
    roomy = limited(given, [Place("b", 200 * 2**30)] * 6)
    assert roomy.devices == given.devices
    assert [host.memory_bytes for host in roomy.hosts] == [64 * 2**30] * 3
    small = ns.Topology.parse("2xCPU@1GiB")
    assert limited(small, places[:2]).devices == small.devices


def test_a_container_limits_memory(tmp_path):
    file = tmp_path / "memory.max"
    for text, expected in (("1048576\n", 2**20), ("max\n", 2**62)):
        file.write_text(text)
        assert control_group_bytes(str(file)) == expected
    assert control_group_bytes(str(tmp_path / "none")) == 2**62
    assert 0 < this_place().total <= physical_bytes()


def test_intervals_hold_nine_of_ten():
    assert interval([0.9, 1.1, 1.3]) == (0.9, 1.3)
    assert interval([1.1, 1.3]) == (1.0, 1.3)
    ratios = [one / 100 for one in range(51, 151)]
    assert interval(ratios) == (0.55, 1.46)
    assert sum(0.55 <= one <= 1.46 for one in ratios) == 92
