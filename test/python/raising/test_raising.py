"""Modules of other dialects are raised, compiled and run: each gives what it gave before, on one
device and on two."""

import json
import os
import random
import re

import pytest
import torch
from safetensors.torch import load_file

import raising_models
import raising_programs
from raising_model import Table
from support import artifact, matrix
from support.batch import local_sizes
from support.host import World
from support.mutants import run

ALL = raising_models.MODELS
SAMPLE = ALL if os.environ.get("NEUROSHARD_ALL") else random.Random(matrix.seed()).sample(ALL, 6)


def raised(model, folder):
    """Raises the module; gives the new file and the rows of tables that were constants."""
    before, after = folder / "before.mlir", folder / "after.mlir"
    before.write_text(model.text)
    options = ["strict=true"]
    if "weights" in model.options:
        options.append(f"weights-file={folder / 'rows.safetensors'}")
    if "valid" in model.options:
        options.append("assume-valid-inputs=true")
    run(artifact.tool("neuroshard-opt"), before, "--allow-unregistered-dialect",
        f"--neuroshard-raise-lookups={' '.join(options)}", "-o", after)
    constants = load_file(folder / "rows.safetensors") if "weights" in model.options else {}
    return before, after, constants


def compiled(module, folder, devices):
    run(artifact.tool("neuroshard-compile"), module, "-o", folder, "--topology",
        f"{devices}xCPU", "-O", "0")
    return folder


def check(results, expected, what):
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert result.shape == wanted.shape and result.dtype == wanted.dtype, what
        torch.testing.assert_close(result.double(), wanted.double(), rtol=1e-5, atol=1e-5,
                                   msg=lambda text: f"{what}, result {number}: {text}")


def run_raised(model, folder, values, constants):
    """What all devices give, one below the other."""
    with World(folder) as world:
        for argument, value in zip(model.arguments, values):
            if isinstance(argument, Table):
                world.write_table(argument.name, value)
        for name, weights in constants.items():
            world.write_table(name, weights)
        samples = next(len(value) for argument, value in zip(model.arguments, values)
                       if not isinstance(argument, Table)) - model.has_offsets_first()
        sizes = local_sizes(samples, world.devices)
        parts = world.invoke("forward", model.local(values, sizes))
    return [torch.cat(result) for result in zip(*parts)]


@pytest.mark.parametrize("model", SAMPLE, ids=lambda model: model.name)
def test_same_results(model, tmp_path, generator):
    before, after, constants = raised(model, tmp_path)
    text = after.read_text()
    assert sorted(re.findall(r"neuroshard\.lookup (\w+)", text)) == sorted(model.lookups)
    assert "tensor.gather" not in text and "torch.aten" not in text and "stablehlo" not in text
    for name, weights in model.constants.items():
        torch.testing.assert_close(constants[name], weights, rtol=0, atol=0)
    program = raising_programs.compile_program(before, tmp_path) if model.runs else None
    folders = [compiled(after, tmp_path / f"on{devices}", devices)
               for devices in ((1,) if model.samples else (1, 2))]
    for samples in (model.samples,) if model.samples else (7, 1):
        values = model.draw(samples, generator)
        expected = model.forward(*values)
        if program:
            check(raising_programs.call_forward(program, model.passed(values), model.results),
                  expected, "before raising")
        for folder in folders:
            devices = json.loads((folder / "manifest.json").read_text())["devices"]
            check(run_raised(model, folder, values, constants), expected,
                  f"raised, {samples} samples on {devices} devices")
