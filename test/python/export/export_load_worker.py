"""python export_load_worker.py FOLDER...: a process that loads saved exports and calls them.

It knows nothing of the models. A folder has the files model.*, plan.json and calls.pt: the
arguments of each call, flattened, and weights where the export was saved without. What comes back
is in problem.json and made.pt."""

import pathlib
import sys

import neuroshard
import torch
from torch.utils import _pytree as pytree


def call_all(folder):
    exported = neuroshard.load_export(folder / "model")
    exported.problem("2xCPU", batch=64).save(str(folder / "problem.json"))
    given = torch.load(folder / "calls.pt", weights_only=True)
    made = []
    with exported.open(plan=neuroshard.Plan.load(str(folder / "plan.json"))) as program:
        if given["state"] is not None:
            program.load(given["state"])
        for tree, leaves in given["calls"]:
            arguments = pytree.tree_unflatten(leaves, pytree.treespec_loads(tree))
            values, spec = pytree.tree_flatten(program(*arguments))
            made.append((pytree.treespec_dumps(spec), values))
    torch.save(made, folder / "made.pt")


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        call_all(pathlib.Path(name))
    assert not [name for name in sys.modules if name.startswith("export_")]


if __name__ == "__main__":
    main()
