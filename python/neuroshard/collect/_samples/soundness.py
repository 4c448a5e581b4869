"""Checks of a file of measured exchanges, before its columns are used."""

import numpy as np

MAX_DEVICES = 65536


def check_topologies(topologies):
    """Raises a ValueError unless they are as in a workload's JSON, without the links' figures."""
    if not isinstance(topologies, list) or not all(map(is_topology, topologies)):
        raise ValueError("topologies: expected a list of objects with levels, each a name and "
                         "groups of all devices")


def is_topology(one):
    levels = one.get("levels") if isinstance(one, dict) else None
    return (isinstance(levels, list) and all(map(is_level, levels))
            and len({sum(level["groups"]) for level in levels}) == 1)


def is_level(one):
    groups = one.get("groups") if isinstance(one, dict) else None
    return (isinstance(groups, list) and isinstance(one.get("name"), str)
            and all(type(size) is int and 0 < size <= MAX_DEVICES for size in groups))


def check_columns(tensors, of_sample, of_device, topologies):
    """Raises a ValueError unless all columns are as long as the file has samples, or devices of
    samples, and name topologies and rows that there are. of_sample, of_device: their names."""
    ends = tensors["sample.first_device"]
    if ends.ndim != 1 or len(ends) < 1 or ends[0] != 0 or (np.diff(ends) < 1).any():
        raise ValueError("sample.first_device: expected numbers that rise from 0")
    rows = len(ends) - 1
    for names, length in ((of_sample, rows), (of_device, ends[-1])):
        for name in names:
            if tensors[name].shape != (length,):
                raise ValueError(f"{name}: expected {length} values, got: {tensors[name].shape}")
    topology, repeated = tensors["sample.topology"], tensors["sample.repeat_of"]
    if ((topology < 0) | (topology >= len(topologies))).any():
        raise ValueError(f"sample.topology: expected numbers from 0 to {len(topologies) - 1}")
    if ((repeated < -1) | (repeated >= rows)).any():
        raise ValueError(f"sample.repeat_of: expected -1, or numbers from 0 to {rows - 1}")
    sizes = [sum(one["levels"][0]["groups"]) for one in topologies]
    for index, devices in enumerate(np.diff(ends)):
        if devices != sizes[topology[index]]:
            raise ValueError(f"sample {index}: expected {sizes[topology[index]]} devices as its "
                             f"topology has, got: {devices}")
