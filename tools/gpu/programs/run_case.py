#!/usr/bin/env python3
"""Runs one correctness case: run_case.py ARTIFACTS NAME [--dry-run]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import processes  # noqa: E402

processes.die_with_parent()

import cases  # noqa: E402
from case_checks import run_case  # noqa: E402
from machine import Machine  # noqa: E402


def main():
    folder, name = Path(sys.argv[1]), sys.argv[2]
    machine = Machine("--dry-run" in sys.argv[3:])
    case = next(case for case in cases.all_cases() if case.name == name)
    run_case(case, folder / "cases" / name, machine.place, machine.stream(), cases.generator_of)
    print(f"{name}: passed")


if __name__ == "__main__":
    main()
