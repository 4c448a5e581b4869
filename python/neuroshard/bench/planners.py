"""TorchRec's planner and ours, side by side on the same models: predicted step, planning seconds,
memory per device. Prints Markdown.

    neuroshard-bench planners --repeats 5 -o planners.json

Costs are predicted by the closed forms; nothing runs on the devices. docs/planner-comparison.md
says what is held equal."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

import neuroshard as ns
from neuroshard._arguments import Parser, whole
from neuroshard.bench._output import check_output, write_output
from neuroshard.bench._planners.case import Case, make_case, versions
from neuroshard.bench._planners.contest import contest, held_back
from neuroshard.bench._planners.report import print_report
from neuroshard.bench._planners.rules import rules_of
from neuroshard.bench._planners.score import Score, score

WORKLOADS = ("mlperf_dlrm_v2", "criteo_terabyte", "synthetic_tiny", "synthetic_small")


def compare(case: Case, repeats: int, tuned: bool) -> list[Score]:
    reserve = held_back(case)
    return [score(case, rules, planned) for rules in rules_of(case)
            for planned in contest(case, rules, reserve, repeats, tuned)]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="neuroshard-bench planners", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, metavar="WORKLOAD",
                        help="names of workloads of the source tree, or files; "
                             f"default: {' '.join(WORKLOADS)}")
    parser.add_argument("--source", default=".", help="the source tree, which has workloads/")
    parser.add_argument("--devices", default="8xH200", help="GPUs of one class")
    parser.add_argument("--repeats", type=whole(1, 10000), default=5,
                        help="how often each planner is timed")
    parser.add_argument("--quick", action="store_true",
                        help="only the two planners as they come")
    parser.add_argument("-o", "--output", help="write all figures to this JSON file")
    return parser.parse_args(arguments)


def find(name: str, source: str) -> Path:
    path = Path(name)
    return path if path.suffix == ".json" else Path(source) / "workloads" / f"{name}.json"


def load(options: argparse.Namespace) -> list[Case]:
    """All workloads, once it is known that the figures can be written."""
    paths = [find(name, options.source) for name in options.workloads]
    for index, path in enumerate(paths):
        if path.stem in (one.stem for one in paths[:index]):
            raise ValueError(f"{path}: there is a workload {path.stem!r} already; expected "
                             "workloads of different names")
    if options.output is not None:
        check_output(options.output, paths)
    return [make_case(path.stem, ns.ShardingProblem.load(path), options.devices)
            for path in paths]


def compare_all(cases: list[Case], options: argparse.Namespace) -> dict[str, list[dict]]:
    found = {}
    for case in cases:
        print(f"{case.name}: {len(case.problem.tables)} tables", file=sys.stderr, flush=True)
        try:
            found[case.name] = [asdict(one) for one in
                                compare(case, options.repeats, not options.quick)]
        except ns.Error as error:
            raise ValueError(f"{case.name}: {error}") from None
    return found


def main() -> None:
    options = parse(sys.argv[1:])
    try:
        found = compare_all(load(options), options)
        head = {"schema": "neuroshard.planners/1", "devices": options.devices,
                "repeats": options.repeats, **versions()}
        if options.output is not None:
            write_output(options.output, {**head, "workloads": found})
    except (ns.Error, ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print_report(head, found)


if __name__ == "__main__":
    main()
