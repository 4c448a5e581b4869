"""neuroshard profile."""

from __future__ import annotations

from typing import Any

import click

from neuroshard.cli._input import options, workload


@click.command("profile")
@workload.options
@click.argument("batches", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(), metavar="WORKLOAD",
              help="Write the workload with these statistics here.")
@click.option("--snapshot", metavar="NAME",
              help="Add them as a snapshot of that name instead of replacing the workload's.")
@click.option("--weight", type=options.Number(), help="Of the snapshot (1).")
@click.option("--map", "keys", type=options.Pair("FEATURE=KEY"), multiple=True,
              help="The key in the batches of a feature that is not found by its name.")
@click.option("--distinct-ids", is_flag=True,
              help="Count ids of features that are not pooled once in each device's part of a batch, as modules "
                   "with distinct_ids send them.")
@click.option("--reorder", type=click.Path(), metavar="FILE",
              help="Write the row of each id here (.safetensors), by falling use, for row_order= of the modules; the "
                   "statistics are those of tables in this order.")
@click.option("--limit", type=click.IntRange(min=1), help="Read at most so many batches.")
@options.json_option
def command(batches: tuple[str, ...], output: str | None, snapshot: str | None,
            weight: float | None, keys: tuple[tuple[str, str], ...], distinct_ids: bool,
            reorder: str | None, limit: int | None, as_json: bool, **values: Any) -> None:
    """Measures BATCHES: files of one global batch each (.npz or .safetensors with
    FEATURE.ids and FEATURE.offsets), or data.py:function that gives an iterable of
    KeyedJaggedTensors or of dicts {feature: (ids, offsets)}."""
    from neuroshard.cli._failures import InputError

    try:
        import numpy  # noqa: F401
    except ImportError:
        raise InputError("profiling needs numpy: pip install \"neuroshard[profile]\"") from None
    import neuroshard as ns
    from neuroshard.cli._input import batches as reader
    from neuroshard.cli._input.input_files import check_outputs
    from neuroshard.cli._input.user_code import code_files
    from neuroshard.cli._output import terminal
    from neuroshard.profiling import statistics

    if weight is not None and snapshot is None:
        raise click.UsageError("--weight needs --snapshot")
    if reorder and not reorder.endswith(".safetensors"):
        raise click.UsageError(f"--reorder {reorder}: expected a name that ends in .safetensors")
    check_outputs({"--output": output, "--reorder": reorder}, (values["constraints"], *batches, *code_files([values["workload"], *batches])))
    problem = workload.take(values, needs_devices=distinct_ids)
    if len(dict(keys)) < len(keys):
        raise click.UsageError("--map: a feature is given twice; expected one key for each")
    found = statistics.Profile(problem, dict(keys), distinct_ids)
    with terminal.messages().status("profiling") as status:
        for where, batch in reader.read_batches(batches):
            found.add(batch, where)
            status.update(f"profiling: {found.batches} batches")
            if limit and found.batches >= limit:
                break
    if not found.batches:
        raise InputError(f"{', '.join(batches)}: no batch in it; expected at least one")
    found.check_keys()
    features, tables = found.feature_statistics(), found.table_statistics(reordered=bool(reorder))
    if snapshot is not None:
        added = ns.Snapshot(snapshot, 1 if weight is None else weight, features, tables)
        made = problem.replace(snapshots=[*problem.snapshots, added])
    else:
        made = statistics.apply(problem, features, tables)
    if output:
        made.save(output)
    if reorder:
        save_orders(found, reorder)
    if as_json:
        terminal.print_json(as_plain(found, features, tables))
    else:
        print_profile(found, features, tables, output)


def save_orders(found: Any, path: str) -> None:
    from neuroshard.cli._failures import InputError
    from neuroshard.cli._output import terminal

    try:
        from safetensors.numpy import save_file
    except ImportError:
        raise InputError("--reorder needs safetensors: pip install \"neuroshard[profile]\"") from None
    orders = found.row_orders()
    if not orders:
        raise InputError("--reorder: no table with ids in the batches may have another order: their ids are hashed or "
                         "dynamic")
    try:
        save_file(orders, path)
    except OSError as error:
        raise InputError(f"--reorder {path}: {error}") from None
    terminal.messages().print(f"wrote the row of each id of {', '.join(orders)} to {path}", markup=False)


def as_plain(found: Any, features: list[Any], tables: list[Any]) -> dict[str, Any]:
    from neuroshard.cli._output import json_results

    return {"batches": found.batches, "ignored": sorted(found.ignored),
            "remarks": found.remarks(),
            "features": [json_results.whole(one) for one in features],
            "tables": [json_results.whole(one) for one in tables]}


def print_profile(found: Any, features: list[Any], tables: list[Any],
                  output: str | None) -> None:
    from rich.markup import escape

    from neuroshard.cli._output import terminal

    out = terminal.console()
    by_table = {one.table: one.access for one in tables}
    count = "1 batch" if found.batches == 1 else f"{found.batches} batches"
    # p99 is of all samples, as the mean beside it.
    made = terminal.table(count, "feature", "table", "ids if present", "presence", "ids per sample", "p99 of batches",
                          "ids seen once", "hottest rows", left=2)
    tables_of = {one.name: one.table for one in found.problem.features}
    for one in features:
        access = by_table.get(tables_of[one.feature])
        made.add_row(escape(one.feature), escape(tables_of[one.feature]),
                     f"{one.mean_pooling:.2f}", f"{one.presence:.1%}", f"{one.mean_pooling * one.presence:.2f}",
                     f"{one.p99_pooling:.2f}",
                     f"{access.reuse[0]:.0%}" if access else "", hottest(access))
    out.print(made)
    unseen = set(tables_of) - {one.feature for one in features}
    for what, names in (("not in the batches, and left as they were", unseen),
                        ("not in the workload, and left out", found.ignored)):
        if names:
            out.print(f"Features {what}: {', '.join(sorted(names))}", markup=False,
                      soft_wrap=True)
    if found.batches < 100:
        out.print(f"p99 of {count} is their largest; 100 or more say it better.")
    terminal.sentences(out, found.remarks())
    if output:
        terminal.messages().print(f"wrote the workload to {output}", markup=False)


def hottest(access: Any) -> str:
    """The point of the hottest rows nearest to half of the lookups; of the first ones if they are the hottest."""
    if access is None or not access.row_mass:
        return ""
    point = min(access.row_mass, key=lambda one: abs(one.lookup_share - 0.5))
    first = "first " if access.rows_by_use else ""
    return f"{first}{point.row_share:.2g} of rows: {point.lookup_share:.0%}"
