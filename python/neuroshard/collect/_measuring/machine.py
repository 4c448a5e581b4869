"""The machines of a job: their devices, processor, and the topology of their ranks. Imports torch
in functions, as the command line is read before."""

import os

from neuroshard._group.host import processor_model
from neuroshard.collect._errors import CollectError

# The planner's device classes.
DEVICE_CLASSES = ("H200", "H100", "H100-PCIe", "A100-80GB", "A100-40GB", "B200", "B300", "GB200",
                  "MI300X", "MI355X", "L40S", "A10G", "L4", "CPU")

# GPUs: a part of the name, the least memory in GiB, the device class; the first that fits.
GPUS = (("GB200", 0, "GB200"), ("B200", 0, "B200"), ("B300", 0, "B300"), ("H200", 0, "H200"),
        ("H100 PCIe", 0, "H100-PCIe"), ("H100", 0, "H100"), ("A100", 60, "A100-80GB"),
        ("A100", 0, "A100-40GB"), ("MI300X", 0, "MI300X"), ("MI355X", 0, "MI355X"),
        ("L40S", 0, "L40S"), ("A10G", 0, "A10G"), ("NVIDIA L4", 0, "L4"))


def find_device(backend):
    import torch

    if backend == "gloo":
        return torch.device("cpu")
    local, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if ranks > torch.cuda.device_count():
        raise CollectError(f"{ranks} ranks on a machine with {torch.cuda.device_count()} GPUs; "
                           "start at most one rank for each, or use --backend gloo")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def device_class_of(device):
    import torch

    if device.type == "cpu":
        return "CPU"
    properties = torch.cuda.get_device_properties(device)
    for part, gibibytes, name in GPUS:
        if part in properties.name and properties.total_memory >= gibibytes * 2**30:
            return name
    raise CollectError(f"the GPU '{properties.name}' is of no known device class; "
                       "name one with --device-class")


def machine_name(device):
    import torch

    name = f"{processor_model() or 'unknown processor'}, {os.cpu_count()} cores"
    return name if device.type == "cpu" else f"{torch.cuda.get_device_name(device)}; {name}"


def topology_of(hosts):
    """The topology of ranks on hosts: consecutive ranks on one host are a group."""
    sizes = []
    for rank, host in enumerate(hosts):
        if rank and host == hosts[rank - 1]:
            sizes[-1] += 1
        else:
            sizes.append(1)
    if len(sizes) != len(set(hosts)):
        raise CollectError("the ranks of a host must follow one another, got them mixed")
    levels = [{"name": "node", "groups": sizes}]
    if len(sizes) > 1:
        levels.insert(0, {"name": "cluster", "groups": [len(hosts)]})
    return {"levels": levels}
