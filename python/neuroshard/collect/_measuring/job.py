"""Runs a collection on the ranks of a torch.distributed job."""

import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from neuroshard.collect._measuring import draws
from neuroshard.collect._samples import samples
from neuroshard.collect._errors import CollectError
from neuroshard.collect._measuring.exchange import Control, Exchanger
from neuroshard.collect._measuring.session import Session, StopFlag, collect, plan

# GPUs: a part of the name, the least memory in GiB, the device class.
GPUS = (("H200", 0, "H200"), ("A100", 60, "A100-80GB"), ("A100", 0, "A100-40GB"))


def find_device(backend):
    if backend == "gloo":
        return torch.device("cpu")
    local, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if ranks > torch.cuda.device_count():
        raise CollectError(f"{ranks} ranks on a machine with {torch.cuda.device_count()} GPUs; "
                           "start at most one rank for each, or use --backend gloo")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def device_class_of(device):
    if device.type == "cpu":
        return "CPU"
    properties = torch.cuda.get_device_properties(device)
    for part, gibibytes, name in GPUS:
        if part in properties.name and properties.total_memory >= gibibytes * 2**30:
            return name
    raise CollectError(f"the GPU '{properties.name}' is of no known device class; "
                       "name one with --device-class")


def machine_name(device):
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines
                  if line.startswith("model name")), "unknown processor")
    name = f"{model}, {os.cpu_count()} cores"
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


def open_file(arguments, identity):
    """The file to add to; new, unless it is to be resumed."""
    path = Path(arguments.out)
    if not path.absolute().parent.is_dir():
        raise CollectError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        raise CollectError(f"{path}: its folder cannot be written to")
    if not path.exists():
        return samples.SampleFile(identity, [])
    if not arguments.resume:
        raise CollectError(f"{path}: exists; --resume adds to it")
    file = samples.read(str(path))
    samples.check_same(path, file.identity, identity)
    return file


def prepare(arguments, control, device, backend):
    """On rank 0 (file, topology index, todo); elsewhere (None, 0, todo). An error on any rank is
    raised on all."""
    identity = problem = None
    try:
        identity = {"backend": backend, "machine": machine_name(device),
                    "device_class": arguments.device_class or device_class_of(device),
                    "torch": torch.__version__, "seed": str(arguments.seed),
                    "rule": samples.RULE}
    except CollectError as error:
        problem = str(error)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
    everyone = control.gather_objects((identity, problem, boot))
    file, topology, todo = None, 0, []
    if control.rank == 0:
        try:
            file, topology, todo = prepare_file(arguments, everyone)
        except CollectError as error:
            problem = str(error)
    todo, problem = control.gather_objects((todo, problem))[0]
    if problem:
        raise CollectError(problem)
    return file, topology, todo


def prepare_file(arguments, everyone):
    for _, problem, _ in everyone:
        if problem:
            raise CollectError(problem)
    identity = everyone[0][0]
    for rank, (other, _, _) in enumerate(everyone):
        for name in samples.IDENTITY:
            if other[name] != identity[name]:
                raise CollectError(f"rank {rank} has {name} '{other[name]}', but rank 0 has "
                                   f"'{identity[name]}'; measure on machines of one kind")
    file = open_file(arguments, identity)
    topology = file.topology_index(topology_of([boot for _, _, boot in everyone]))
    todo = plan(file, topology, len(everyone), arguments.seed, arguments.samples,
                arguments.repeats)
    return file, topology, todo


def run_joined(arguments, backend, device, stop):
    control = Control(dist.new_group(backend="gloo"))
    file, topology, todo = prepare(arguments, control, device, backend)
    most = int(draws.MOST_BYTES) + control.size * draws.ELEMENT_BYTES * 64
    session = Session(Exchanger(control, device, most), arguments.seed)
    complete = collect(session, file, arguments.out, topology, todo, stop) if todo else True
    if file:
        verdict = "complete" if complete else "interrupted; --resume goes on"
        print(f"{arguments.out}: {len(file.samples)} samples, {sum(file.rejected())} rejected; "
              f"{verdict}", flush=True)
    return 0 if complete else 130


def run(arguments):
    """Runs the collection and returns the exit code. Raises CollectError if it cannot go on."""
    stop = StopFlag()
    backend = arguments.backend or ("nccl" if torch.cuda.is_available() else "gloo")
    device = find_device(backend)
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=arguments.timeout),
                                device_id=device if device.type == "cuda" else None)
        code = run_joined(arguments, backend, device, stop)
        dist.destroy_process_group()
    except RuntimeError as error:
        raise CollectError("another rank was lost or did not answer: "
                           f"{str(error).splitlines()[0]}") from None
    return code


def is_speaker():
    """Whether this rank prints errors: rank 0, or the first rank of each machine before the group
    is joined."""
    return os.environ["RANK" if dist.is_initialized() else "LOCAL_RANK"] == "0"
