"""neuroshard explain --run and plan --given --run put what steps took beside what is predicted."""

import json

import pytest

import neuroshard as ns
from neuroshard.runs import TERMS
from support import accessible_html
from support.commands import make_runner
from support.planning import small_problem

MODEL = ("--cost-model", "roofline")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = small_problem(tables=[ns.Table("a", 100_000, 16, optimizer="adagrad"),
                                    ns.Table("b", 100, 8)],
                            features=[ns.Feature("f", "a", mean_pooling=5), ns.Feature("g", "b")],
                            topology="1xCPU")
    plan = ns.Plan(device_count=1, shards=[
        ns.Shard(name="cold", table="a", rows=(0, 100_000), cols=(0, 16), devices=0, tier="ssd",
                 cache_rows=9600),
        ns.Shard(name="hot", table="b", rows=(0, 100), cols=(0, 8), devices=0)])
    problem.save("problem.json")
    plan.save("plan.json")
    steps = ns.Run(steps=7, devices=[{term: 0.5 + number for number, term in enumerate(TERMS)}],
                   caches={"cold": ns.CacheRun(rows=200.0, hits=150.0, written=20.0, wait_ms=1.25)})
    steps.save("run.json")
    assert ns.Run.load("run.json") == steps.replace(devices=tuple(steps.devices))
    return make_runner(capsys, tmp_path)


def test_explain_puts_a_run_beside_the_prediction(run):
    result = ns.inspect(ns.ShardingProblem.load("problem.json"), ns.Plan.load("plan.json"),
                        cost_model="roofline")
    found = run("explain", "problem.json", "plan.json", "--run", "run.json", "--json", *MODEL).json["run"]
    assert found["steps"] == 7
    measured = {one["term"]: one["measured_ms"] for one in found["terms"]}
    assert measured == {term: 0.5 + number for number, term in enumerate(TERMS)}
    parts = result.breakdown
    assert found["step"] == {"predicted_ms": pytest.approx(parts.cost_ms - parts.dense_ms - parts.fixed_ms),
                             "measured_ms": sum(measured.values())}
    predicted = {one["term"]: one["predicted_ms"] for one in found["terms"]}
    assert predicted["fetch"] == result.breakdown.devices[0].fetch_ms > 0
    (cache,), (expected,) = found["caches"], result.breakdown.caches
    assert cache["shard"] == expected.shard == "cold"
    assert cache["predicted_rows"] == expected.rows
    assert cache["predicted_hits"] == expected.hits / expected.rows
    assert (cache["measured_rows"], cache["measured_hits"], cache["wait_ms"]) == (200, 0.75, 1.25)
    text = run("explain", "problem.json", "plan.json", "--run", "run.json", *MODEL).out
    assert "A step beside the mean of 7 measured" in text and "75.0%" in text
    row = next(line for line in text.splitlines() if line.strip().startswith("step "))
    assert f"{sum(measured.values()):.3f}" in row and f"{found['step']['predicted_ms']:.3f}" in row
    text = run("explain", "problem.json", "plan.json", "--run", "run.json", "--dense-rest-ms", "3", *MODEL).out
    assert "step without its dense part" in " ".join(text.split())


def test_the_report_has_the_run(run, tmp_path):
    assert run("plan", "problem.json", "--given", "plan.json", "--run", "run.json", "--html",
               "report.html", *MODEL).code == 0
    page = accessible_html.read((tmp_path / "report.html").read_text())
    assert accessible_html.faults(page) == []
    terms, caches = [table.rows()[1:] for table in page.with_id("run").all("table")]
    result = ns.inspect(ns.ShardingProblem.load("problem.json"), ns.Plan.load("plan.json"), cost_model="roofline")
    assert ["fetch", f"{result.breakdown.devices[0].fetch_ms:.3f}", f"{0.5 + TERMS.index('fetch'):.3f}"] in terms
    assert terms[-1][0] == "step" and terms[-1][2] == f"{sum(0.5 + number for number in range(len(TERMS))):.3f}"
    assert caches[0][0] == "cold" and caches[0][2:] == ["200", caches[0][3], "75.0 %", "1.250"]
    run("plan", "problem.json", "--given", "plan.json", "--html", "report.html", *MODEL)
    assert accessible_html.read((tmp_path / "report.html").read_text()).with_id("run") is None


def test_a_run_needs_its_plan(run):
    failed = run("plan", "problem.json", "--run", "run.json")
    assert failed.code == 2 and "name that with --given" in failed.err
    failed = run("explain", "problem.json", "plan.json", "--run", "none.json", *MODEL)
    assert failed.code == 1 and "cannot be read" in failed.err


@pytest.mark.parametrize(("change", "text"), [
    (lambda plain: plain.update(schema="x"), "expected a file that save_run()"),
    (lambda plain: plain.pop("caches"), "the file: expected an object with the fields schema, steps"),
    (lambda plain: plain.update(steps=0), "Run.steps: expected at least 1, got: 0"),
    (lambda plain: plain.update(devices=[3]), "Run.devices[0]: expected an object with the fields"),
    (lambda plain: plain.update(devices=None), "Run.devices: expected"),
    (lambda plain: plain["devices"][0].update(fetch="x"), "Run.devices[0].fetch: expected a number"),
    (lambda plain: plain["devices"][0].update(fetch=-1.0), "Run.devices[0].fetch: expected a number from 0"),
    (lambda plain: plain.update(caches=[]), "caches: expected an object"),
    (lambda plain: plain["caches"].update(cold=5), "caches.cold: expected an object with the fields"),
    (lambda plain: plain["caches"]["cold"].update(hits=201.0), "CacheRun.hits: expected at most the rows"),
    (lambda plain: plain.update(devices=plain["devices"] * 2),
     "a run on 2 devices, but the plan is for 1"),
    (lambda plain: plain["caches"].update(other=plain["caches"]["cold"]),
     "a run with a cache of shard 'other', which the plan does not have"),
    (lambda plain: plain.update(caches={}), "a run without a cache of shard 'cold', which the plan has"),
])
def test_wrong_runs_are_named(run, tmp_path, change, text):
    plain = json.loads((tmp_path / "run.json").read_text())
    change(plain)
    (tmp_path / "run.json").write_text(json.dumps(plain))
    failed = run("explain", "problem.json", "plan.json", "--run", "run.json", *MODEL)
    assert failed.code == 1 and text in failed.err and "run.json" in failed.err


def test_a_run_needs_its_plan(run):
    failed = run("plan", "problem.json", "--run", "run.json")
    assert failed.code == 2 and "name that with --given" in failed.err
    failed = run("explain", "problem.json", "plan.json", "--run", "none.json", *MODEL)
    assert failed.code == 1 and "cannot be read" in failed.err
