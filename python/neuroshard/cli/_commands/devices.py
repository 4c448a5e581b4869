"""neuroshard devices."""

from __future__ import annotations

from typing import Any

import click

from neuroshard._printable import did_you_mean
from neuroshard.cli._input import options
from neuroshard.errors import InputError


@click.command("devices")
@click.argument("names", nargs=-1, metavar="[CLASS]...")
@click.option("--file", "path", type=click.Path(), metavar="FILE",
              help="Also the classes that this file defines.")
@click.option("--fields", is_flag=True, help="The fields that a class may have, instead.")
@options.json_option
def command(names: tuple[str, ...], path: str | None, fields: bool, as_json: bool) -> None:
    """Lists the device classes that topologies may name; of each CLASS all numbers, and where each
    comes from; without CLASS the nodes of clouds, too."""
    import neuroshard as ns
    from neuroshard.cli._output import terminal

    if fields and names:
        raise click.UsageError("--fields is of all classes: leave out CLASS")
    classes = dict(ns.device_classes())
    if path is not None:
        classes = {**ns.load_device_classes(path), **classes}
    by_case = {name.upper(): name for name in classes}
    unknown = [name for name in names if name.upper() not in by_case]
    if unknown:
        raise unknown_class(unknown[0], list(classes))
    chosen = [classes[by_case[name.upper()]] for name in names]
    figures = next(iter(classes.values())).figures()
    if fields and as_json:
        terminal.print_json({"fields": [{"name": field, "meaning": meaning} for field, _, meaning, _ in figures]})
    elif as_json:
        terminal.print_json({"classes": [as_plain(one) for one in chosen or classes.values()],
                             "nodes": [list(one) for one in nodes()]})
    elif fields:
        made = terminal.table("Fields of a device class", "field", "what", left=2, long=("what",))
        for field, _, meaning, _ in figures:
            made.add_row(field, meaning)
        terminal.console().print(made)
    elif chosen:
        for one in chosen:
            print_class(one)
    else:
        print_all(list(classes.values()))


def unknown_class(name: str, classes: list[str]) -> InputError:
    """The error of a name that no class has. classes: the names there are."""
    for node, device_class, devices, *_ in nodes():
        if name.lower() in (node.lower(), node.lower().rpartition(":")[2]):
            return InputError(f"'{node}' is a node of {devices} {device_class}: 'neuroshard devices {device_class}' "
                              "shows the class, and without CLASS all nodes are listed")
    near = did_you_mean(name.upper(), [one.upper() for one in classes])
    return InputError(f"there is no device class '{name}'; known: {', '.join(classes)}; --file adds classes of your "
                      f"own{near}")


def nodes() -> list[Any]:
    from neuroshard import _planner

    return _planner.cloud_nodes()


def as_plain(one: Any) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "like": one.like or None,
            "user_defined": one.is_user_defined,
            "figures": {field: {"value": value, "source": source}
                        for field, value, _, source in one.figures()}}


def print_class(one: Any) -> None:
    from rich.markup import escape

    from neuroshard.cli._output import terminal

    like = f", like {one.like}" if one.like else ""
    made = terminal.table(f"{escape(one.name)}, {one.kind}{like}", "figure", "value", "what", "source", left=1,
                          long=("what",))
    for field, value, meaning, source in one.figures():
        shown = terminal.size(value) if field.endswith("_bytes") else f"{value:g}"
        made.add_row(field, shown, meaning, source)
    terminal.console().print(made)


def print_all(classes: list[Any]) -> None:
    from rich.markup import escape

    from neuroshard.cli._output import terminal

    out = terminal.console()
    made = terminal.table("Device classes", "class", "memory", "GB/s", "in a node", "GB/s in a node",
                          "GB/s between nodes", "kernels")
    for one in classes:
        sources = {field: source for field, _, _, source in one.figures()}
        made.add_row(escape(one.name), terminal.size(one.memory_bytes), f"{one.memory_bandwidth_gb_per_s:g}",
                     str(one.devices_per_node), f"{one.node_bandwidth_gb_per_s:g}",
                     f"{one.network_bandwidth_gb_per_s:g}", sources["forward_efficiency"])
    out.print(made)
    made = terminal.table("Nodes of clouds", "node", "devices", "class", "GB/s between nodes", "latency, us")
    for name, device_class, devices, bandwidth, latency in nodes():
        made.add_row(name, str(devices), device_class, f"{bandwidth:g}", f"{latency:g}")
    out.print(made)
    out.print("'neuroshard devices CLASS' shows all figures of a class and where each comes from.")
