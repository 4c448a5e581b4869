"""Plans whose copies drift: only where a rule asks for it, named as not exact, kept in files."""

import pytest

import neuroshard as ns
from neuroshard.cli._analysis.cuts import cuts_of


def problem(*rules):
    tables = [ns.Table("user", rows=4000, dim=64, optimizer="adagrad"), ns.Table("item", rows=300, dim=8)]
    return ns.ShardingProblem(tables=tables, features=[ns.Feature(one.name, one.name) for one in tables],
                              topology="2x2xCPU@100mbit", batch=65536,
                              constraints=ns.Constraints(tables=rules))


def test_drift_is_asked_for_and_named():
    plain = ns.plan(problem(), cost_model="roofline")
    assert not any(shard.sync_every for shard in plain.plan.shards)
    assert not any("not exact" in one for one in plain.remarks)
    asked = problem(ns.TableRule("user", sync_every=1000))
    found = ns.plan(asked, cost_model="roofline")
    assert {shard.sync_every for shard in found.plan.shards_of("user")} == {1000}
    assert {shard.sync_every for shard in found.plan.shards_of("item")} == {0}
    assert found.cost_ms < plain.cost_ms
    assert any("not exact (sync_every 1000): copies of 'user'" in one for one in found.remarks)
    cut = next(one for one in cuts_of(asked, found.plan) if one.table.name == "user")
    assert "averaged every 1000 steps (not exact)" in cut.pieces
    assert ns.Plan.from_json(found.plan.to_json()) == found.plan
    assert ns.ShardingProblem.from_json(asked.to_json()) == asked


@pytest.mark.parametrize(("every", "error"), [(-1, "sync_every"), (2.5, "sync_every"), (True, "sync_every")])
def test_steps_are_whole_numbers(every, error):
    with pytest.raises((ValueError, TypeError), match=error):
        ns.plan(problem(ns.TableRule("user", sync_every=every)), cost_model="roofline")


def test_what_drift_does_not_go_with():
    with pytest.raises(ValueError, match="below device memory cannot drift"):
        ns.plan(problem(ns.TableRule("user", sync_every=5, cache_share=0.5)), cost_model="roofline")
    dynamic = problem(ns.TableRule("user", sync_every=5))
    tables = [one.replace(dynamic_ids=True) if one.name == "user" else one for one in dynamic.tables]
    with pytest.raises(ValueError, match="dynamic ids cannot drift"):
        ns.plan(dynamic.replace(tables=tables), cost_model="roofline")


def test_a_plan_must_have_what_the_rule_says():
    asked = problem(ns.TableRule("user", sync_every=1000))
    plan = ns.plan(asked, cost_model="roofline").plan
    other = plan.replace(shards=[one.replace(sync_every=0) for one in plan.shards])
    with pytest.raises(ValueError, match="must have sync_every 1000 as its table"):
        other.verify(asked)
