"""The output of the first process: progress, tables of figures, the plot."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

import neuroshard as ns

from movielens import checks
from movielens.data import MovieLens

if TYPE_CHECKING:
    from movielens.train import Run

# Steps in which caches fill and buffers are made are not timed.
WARM_UP = 10
LINE_EVERY = 50
BARS = "▁▂▃▄▅▆▇█"
LINE_WIDTH = 50


class Progress:
    """A bar when stderr is a terminal, else a line every 50 steps; only on the first rank."""

    def __init__(self, steps: int, rank: int) -> None:
        self.silent = rank != 0
        self.terminal = sys.stderr.isatty()
        self.bar = tqdm(total=steps, unit="step", disable=self.silent or not self.terminal)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def show(self, run: Run, steps: int, loss: float) -> None:
        """Reports that a run has done this many steps more, with this mean loss."""
        if self.silent:
            return
        self.bar.set_postfix_str(f"{run.name}: loss {loss:.4f}", refresh=False)
        self.bar.update(steps)
        if not self.terminal and len(run.losses) % LINE_EVERY == 0:
            print(f"  step {len(run.losses):3}  {run.name:<10}  loss {loss:.4f}", flush=True)


def print_problem(data: MovieLens, plan: ns.Plan) -> None:
    ids = sum(data.take(name, data.train)[1].mean() for name in data.features)
    print(f"MovieLens-100k: {len(data.train)} ratings to learn from, {len(data.test)} later ones "
          f"to test with;\n{len(data.features)} features over {len(data.tables)} tables, "
          f"{ids:.1f} ids a sample")
    print(f"\n{'table':<12} {'rows':>6}  {'kind':<12} devices")
    for table in dict.fromkeys(shard.table for shard in plan.shards):
        shards = plan.shards_of(table)
        rows = max(shard.rows[1] for shard in shards)
        if shards[0].replicated:
            kind, places = "replicated", "all"
        elif len(shards) == 1:
            kind, places = "table-wise", str(shards[0].devices[0])
        else:
            by_rows = shards[0].cols == shards[1].cols
            kind = "row-wise" if by_rows else "column-wise"
            ends = [shard.rows if by_rows else shard.cols for shard in shards]
            places = ", ".join(f"{shard.devices[0]}: {begin}..{end - 1}"
                               for shard, (begin, end) in zip(shards, ends))
        print(f"{table:<12} {rows:>6}  {kind:<12} {places}")


def print_updates_head() -> None:
    print("\none update from identical state, against PyTorch without sharding: the largest "
          f"difference of\na weight (allowed: {checks.ALLOWED:g}), and by how much the update "
          "moved a weight at most", flush=True)


def print_update(update: checks.Update) -> None:
    print(f"  {update.optimizer:<16} {update.difference:8.1e}  {update.moved:8.1e}", flush=True)


def print_start(steps: int, batch: int) -> None:
    print(f"\n{steps} steps of {batch} samples by turns: by NeuroShard, by TorchRec under the same "
          "plan, and\nby PyTorch in one process; each process has one thread", flush=True)


def print_runs(runs: Sequence[Run]) -> None:
    print(f"\n{'':<12} {'loss, first and last 10 steps':>30} {'test AUC':>9} "
          f"{'ms per step (quartiles)':>26} {'CPU ms':>8}")
    for run in runs:
        low, middle, high = quartiles(run)
        first, last = statistics.fmean(run.losses[:10]), statistics.fmean(run.losses[-10:])
        cpu = 1e3 * run.cpu_seconds / len(run.seconds)
        print(f"{run.name:<12} {first:>21.4f} {last:>8.4f} {run.auc:>9.4f} "
              f"{middle:>12.1f} ({low:.1f} to {high:.1f}) {cpu:>8.1f}")
    print(f"CPU ms: of all processes together, per step\n\nNeuroShard's loss  "
          f"{sparkline(runs[0].losses)}")


def conclude(out: str | None, plan: ns.Plan, updates: Sequence[checks.Update],
             runs: Sequence[Run]) -> bool:
    """Compares losses, writes files if there is a folder for them, and returns whether weights and
    losses agree within their limits, and where a run has a smaller type on the wire, AUCs."""
    *sharded, reference = runs
    rounded = [run for run in sharded if run.name in checks.SMALLER_WIRE_TYPES]
    differences = {run.name: max(abs(a - b) for a, b in zip(run.losses, reference.losses))
                   for run in sharded}
    print("largest difference to the unsharded loss over "
          f"{len(reference.losses)} steps (allowed: {checks.ALLOWED_LOSS:g}): "
          + ", ".join(f"{name} {difference:.1e}" for name, difference in differences.items()))
    for run in rounded:
        print(f"test AUC with {run.name} on the wire over the unsharded one: "
              f"{run.auc - reference.auc:+.4f} (allowed: {checks.ALLOWED_AUC:g})")
    if out:
        write_files(Path(out), plan, updates, runs, differences)
    return (all(update.difference <= checks.ALLOWED for update in updates)
            and differences[runs[0].name] <= checks.ALLOWED_LOSS
            and all(abs(run.auc - reference.auc) <= checks.ALLOWED_AUC for run in rounded))


def conclude_served(trained: Run, served: dict[str, float]) -> bool:
    """Prints what freezing the tables costs; whether that of int8 is within its limit."""
    for dtype, auc in served.items():
        allowed = f" (allowed: {checks.ALLOWED_SERVED_AUC:g})" if dtype == "int8" else ""
        print(f"test AUC with tables served as {dtype} over the trained one: {auc - trained.auc:+.4f}{allowed}")
    return abs(served.get("int8", trained.auc) - trained.auc) <= checks.ALLOWED_SERVED_AUC


def quartiles(run: Run) -> list[float]:
    """The quartiles of the milliseconds of a step."""
    timed = run.seconds[WARM_UP:] if len(run.seconds) > 2 * WARM_UP else run.seconds
    return [1e3 * value for value in statistics.quantiles(timed, n=4)]


def sparkline(values: Sequence[float]) -> str:
    """Means of equal parts of the values as bars."""
    size = -(-len(values) // LINE_WIDTH)
    means = [statistics.fmean(values[begin:begin + size])
             for begin in range(0, len(values), size)]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0
    return f"{means[0]:.3f} {''.join(BARS[round((mean - low) * scale)] for mean in means)} " \
           f"{means[-1]:.3f}"


def write_files(out: Path, plan: ns.Plan, updates: Sequence[checks.Update],
                runs: Sequence[Run], differences: dict[str, float]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    plan.save(out / "plan.json")
    figures = {
        "updates": {update.optimizer: update._asdict() for update in updates},
        "loss_differences": differences,
        "runs": {run.name: {"losses": run.losses, "auc": run.auc,
                            "ms_per_step": quartiles(run)} for run in runs}}
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    written = f"{out}/plan.json, figures.json"
    if plot(out / "loss.png", runs):
        written += ", loss.png"
    print(f"written: {written}")


def plot(path: Path, runs: Sequence[Run]) -> bool:
    """Plots the losses, and their differences from the unsharded run's. Needs matplotlib
    (tools/dev/requirements/plots.txt); without it there is no plot."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (losses, distances) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5),
                                                  height_ratios=(2, 1), layout="constrained")
    # A logarithmic axis has no zero.
    reference = runs[-1]
    for run, style in zip(runs, ("-", "--", "-.", ":")):
        line, = losses.plot(run.losses, style, label=run.name)
        if run is not reference:
            distances.semilogy([max(abs(a - b), 1e-9) for a, b in
                                zip(run.losses, reference.losses)], color=line.get_color())
    losses.set_ylabel("loss")
    losses.set_title("DLRM on MovieLens-100k, 4 processes")
    losses.legend()
    distances.axhline(checks.ALLOWED_LOSS, color="gray", linewidth=0.8)
    distances.annotate("allowed", (0, checks.ALLOWED_LOSS), (0, -3), textcoords="offset points",
                       va="top", color="gray")
    distances.set_ylabel("difference to\nunsharded")
    distances.set_xlabel("step")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
