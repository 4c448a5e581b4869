"""Runs the command neuroshard, in this process."""

import json
from typing import NamedTuple

from neuroshard.cli import main
from support.planning import small_problem


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def make_runner(capsys, folder):
    """run(*arguments), in a folder with small.json: four tables for two devices."""
    small_problem().save(folder / "small.json")

    def run(*arguments):
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        return Outcome(code, *capsys.readouterr())
    return run
