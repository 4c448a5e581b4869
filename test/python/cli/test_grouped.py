"""Sentences of a plan on many copied tables are one."""

import neuroshard as ns
from neuroshard.cli._output.result_tables import grouped


def test_many_copied_tables_share_a_sentence():
    tables = [ns.Table(f"t{i}", 100 + i, 16) for i in range(8)]
    problem = ns.ShardingProblem(tables=tables, features=[ns.Feature(f"f{i}", f"t{i}") for i in range(8)],
                                 batch=4096, topology="4xH200")
    explanation = ns.plan(problem, cost_model="roofline", progress=False).explanation
    copied = [line for line in explanation if "is on every device" in line]
    assert len(copied) == 8
    shown = grouped(explanation)
    assert len(shown) == len(explanation) - 7
    one = next(line for line in shown if "are on every device" in line)
    assert one.startswith("8 tables ('t0', 't1', 't2', 't3', 't4', ...)")
    assert [line for line in shown if line != one] == [line for line in explanation if line not in copied]
    few = explanation[:1] + tuple(copied[:4])
    assert grouped(few) == list(few)
