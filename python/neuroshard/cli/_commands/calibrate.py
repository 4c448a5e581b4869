"""neuroshard calibrate."""

from __future__ import annotations

from typing import Literal

import click


@click.command("calibrate")
@click.option("-o", "--output", type=click.Path(), required=True, metavar="MACHINE",
              help="Write the machine file here; --cost-model of the other commands takes it.")
@click.option("--topology", metavar="TEXT",
              help="What is measured, such as 2x4xCPU@10gbit; default: CPUs, the ranks of a host a node.")
@click.option("--cost-model", default="auto", show_default=True,
              help="Whose predictions are corrected.")
@click.option("--minutes", type=click.FloatRange(0.05, 1440), default=4.0, show_default=True,
              help="Models are measured as long; at least four are.")
@click.option("--batch", type=click.IntRange(1, 2**31), default=2048, show_default=True,
              help="Samples over all ranks.")
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, show_default=True,
              help="Of the first random model.")
@click.option("--engine", type=click.Choice(("neuroshard", "torchrec")), default="neuroshard",
              show_default=True,
              help="Whose steps are measured; torchrec for plans with --target torchrec-1.9.")
def command(output: str, topology: str | None, cost_model: str, minutes: float, batch: int,
            seed: int, engine: Literal["neuroshard", "torchrec"]) -> None:
    """Measures how long training steps take on this machine, beside the predictions.

    Run it where you train, with as many ranks: torchrun --nproc-per-node 4 -m neuroshard calibrate
    -o machine.json. It runs random models under plans of several algorithms on all ranks at once."""
    from neuroshard import calibration
    from neuroshard.cli._input.input_files import check_outputs

    check_outputs({"--output": output}, [])
    calibration.calibrate(
        calibration.Settings(output, topology, cost_model, minutes, batch, seed, engine))
