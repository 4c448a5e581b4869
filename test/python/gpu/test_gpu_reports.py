"""The scripts of tools/gpu on measured times: figures, tables, goals, records."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "gpu"))
import goals  # noqa: E402
import points  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
import timing_math  # noqa: E402


def test_geometric_mean_and_median():
    assert timing_math.geometric_mean([1, 4, 16]) == pytest.approx(4)
    assert timing_math.median([3, 1, 2]) == 2 and timing_math.median([4, 1, 2, 3]) == 2.5


def test_bytes_of_a_point():
    point = points.Point(rows=100, dim=64, bags=3, ids=5, dtype="bf16")
    lookups = 32 * 3 * 5
    assert point.forward_bytes() == lookups * (128 + 8) + (32 * 3 + 1) * 8 + 32 * 3 * 64 * 4
    assert point.backward_bytes(7) == 32 * 3 * 64 * 4 + 2 * 7 * (128 + 4) + 2 * lookups * 8


def test_points_are_few_and_differ():
    listed = points.listed()
    assert len(listed) <= 40 and len({point.name for point in listed}) == len(listed)
    assert points.Point(10**5, 128, 512, 20) in listed
    for values, got in (({60, 10**5, 10**6, 10**7}, {p.rows for p in listed}),
                        ({64, 128, 256}, {p.dim for p in listed}),
                        ({512, 8192, 65536}, {p.bags for p in listed}),
                        ({1, 4, 20, 100}, {p.ids for p in listed}),
                        ({True, False}, {p.zipf for p in listed})):
        assert values == got


def test_the_least_times_of_the_documentation():
    printed = subprocess.run([sys.executable, ROOT / "tools" / "gpu" / "roofline.py"],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    page = (ROOT / "docs" / "cuda.md").read_text()
    shown = page[page.index(printed[0]):].split("\n\n")[0].splitlines()
    assert len(shown) > 5 and set(shown) <= set(printed)


COPY_SPEED = 4e12
MACHINE = {"device": "G", "uuid": "U", "driver": "1", "torch": "2", "date": "D",
           "memory_bytes": 80 * 2**30}


def speed_record(point, forward, step, forward_bytes=2e6, backward_bytes=1e6, **values):
    return {"point": point, "bytes": {"forward": forward_bytes, "backward": backward_bytes},
            "forward_ms": forward, "step_ms": step, "errors": {}, **values}


def results_of(measured, speed=None, memory=2**31):
    """Made-up results: p is twice as fast as Triton forward, and backward five times."""
    point = {"rows": 100000, "dim": 128, "ids": 20}
    if speed is None:
        speed = {"p": speed_record(point, {"neuroshard": [0.002, 0.001, 0.001], "Triton": [0.002]},
                                   {"neuroshard": [0.002], "Triton": [0.007]}),
                 "q": {"point": point, "skipped": "needs 76.3 GiB, 70.0 are free"}}
    return {"machines": [{**MACHINE, "measured": measured}],
            "sections": {"speed": {"status": "done", "wall_s": 1, "why": ""}},
            "records": {"build": {}, "sanitizer": {}, "collect": {}, "exchange": {},
                        "rebuild": {"build": {"build_s": {"a.so": 12.5, "b.so": 130.0}}},
                        "correctness": {"a": {"passed": True}, "b": {"error": "off by 3"}},
                        "memory": {"m": {"predicted_bytes": 2**31, "measured_bytes": memory}},
                        "speed": {"copy": {"bytes_per_s": [COPY_SPEED]}, **speed}}}


def test_tables_of_measured_results():
    text = report.markdown(results_of(True))
    assert "G (80.0 GiB), UUID U, driver 1" in text
    assert "- correctness: 1 of 2 items passed; failed: b\n  - b: off by 3" in text
    assert "| m | 2.000 | 2.000 | 1.000 |" in text
    # 2 MB in 1 us is 2 TB/s, half of the copy; the other takes twice as long.
    assert "| p | 1.0 | 2.0 | 50.0% | 2.00 |" in text
    # Step minus forward: 1 us and 5 us; 1 MB in 1 us is a quarter of the copy.
    assert "| p | 1.0 | 5.0 | 25.0% | 5.00 |" in text
    assert "- q: needs 76.3 GiB, 70.0 are free" in text


def verdicts(results):
    """{goal: (measured, verdict)} of the table of goals."""
    rows = [line.strip("|").split("|") for line in goals.goals_table(results)[2:]]
    return {row[0].strip(): (row[2].strip(), row[3].strip()) for row in rows}


def test_goals_met_and_missed():
    found = verdicts(results_of(True, memory=2.2e9))
    assert found["cases that agree with torch in float64"] == ("1 of 2", "**missed**")
    assert found["predicted / measured memory"] == ("0.976 to 0.976", "**missed**")
    assert verdicts(results_of(True))["predicted / measured memory"][1] == "met"
    assert found["forward: best other / ours, geometric mean"] == ("2.00 over 1 points", "met")
    assert found["backward and optimizer: points more than 10 % slower than the best other"] == \
        ("0; least ratio 5.00 (p)", "met")
    assert found["forward: share of a copy at L >= 20, D >= 64"] == \
        ("0 of 1 points, least 50.0% (p)", "**missed**")
    assert found["DLRM-v2 forward, B=65536"] == ("", "not measured")
    assert found["building the runtime there"] == ("a.so: 12.5 s, b.so: 130.0 s", "**missed**")


def test_the_two_times_that_are_goals():
    def of(dlrm, latency):
        return verdicts(results_of(True, {
            points.dlrm_name(): speed_record({}, {"neuroshard": [dlrm]}, {}),
            goals.LATENCY_POINT.name: speed_record(
                {"rows": 1, "dim": 128, "ids": 20}, {"neuroshard": [latency]}, {})}))
    name = f"forward of {goals.LATENCY_POINT.name} by graph replay"
    assert of(2.1, 0.046)["DLRM-v2 forward, B=65536"] == ("2.100 ms", "met")
    assert of(2.101, 0.046)["DLRM-v2 forward, B=65536"][1] == "**missed**"
    assert of(2.1, 0.046)[name] == ("46.0 us", "met")
    assert of(2.1, 0.0461)[name][1] == "**missed**"
    # On a GPU that does not hold the tables, smaller ones answer nothing.
    small = points.dlrm_name(points.DLRM_ROWS[1])
    found = verdicts(results_of(True, {
        points.dlrm_name(): {"point": {}, "skipped": "needs 98.1 GiB, 78.0 are free"},
        small: speed_record({}, {"neuroshard": [1.0]}, {})}))
    assert found["DLRM-v2 forward, B=65536"] == ("needs 98.1 GiB, 78.0 are free", "not measured")


def test_a_slower_point_is_seen():
    slow = speed_record({"rows": 1, "dim": 64, "ids": 1}, {"neuroshard": [1.2], "Triton": [1.0]},
                        {"neuroshard": [1.0], "Triton": [1.5]})
    found = verdicts(results_of(True, {"slow": slow}))
    assert found["forward: points more than 10 % slower than the best other"] == \
        ("1; least ratio 0.83 (slow)", "**missed**")
    assert found["forward: best other / ours, geometric mean"][1] == "**missed**"
    # A step that took less than its forward has no backward to compare.
    assert found["backward and optimizer: best other / ours, geometric mean"] == \
        ("", "not measured")


def test_nothing_measured_is_no_goal():
    empty = results_of(True)
    empty["records"] = {name: {} for name in empty["records"]}
    assert {verdict for _, verdict in verdicts(empty).values()} == {"not measured"}
    assert "No copy bandwidth" in report.markdown(empty)


def test_a_dry_run_shows_no_figures():
    text = report.markdown(results_of(False))
    assert "not measured" in text and "Speed" not in text and "| p |" not in text


def test_records_survive_a_line_cut_off(tmp_path):
    first = records.Records(tmp_path / "speed.jsonl")
    first.add("a", ms=[1.5])
    first.add("a", ms=[2.5])
    with first.path.open("a") as file:
        file.write('{"name": "b", "m')
    again = records.Records(first.path)
    assert again.items == {"a": {"ms": [2.5]}} and "b" not in again
    again.add("c", ms=[3.5])
    assert records.Records(first.path).items == {"a": {"ms": [2.5]}, "c": {"ms": [3.5]}}
