"""Runs a collection on the ranks of a torch.distributed job."""

import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from neuroshard._group.host import boot_id
from neuroshard.collect._errors import CollectError
from neuroshard.collect._measuring import draws
from neuroshard.collect._measuring.exchange import Control, Exchanger
from neuroshard.collect._measuring.machine import (device_class_of, find_device, machine_name,
                                                   topology_of)
from neuroshard.collect._measuring.session import StopFlag, collect, plan
from neuroshard.collect._measuring.timed_runs import TimedRuns
from neuroshard.collect._samples import samples
from neuroshard.collect._samples.output import check_output
from neuroshard.collect._samples.rejection import RULE, rejections


def open_file(arguments, identity):
    """The file to add to; new, unless it is to be resumed."""
    path = Path(arguments.out)
    check_output(arguments.out)
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
                    "rule": RULE}
    except CollectError as error:
        problem = str(error)
    everyone = control.gather_objects((identity, problem, boot_id()))
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
    timed = TimedRuns(Exchanger(control, device, most), arguments.seed)
    complete = collect(timed, file, arguments.out, topology, todo, stop) if todo else True
    if file:
        verdict = "complete" if complete else "interrupted; --resume goes on"
        print(f"{arguments.out}: {len(file.samples)} samples, "
              f"{sum(rejections(file.samples))} rejected; {verdict}", flush=True)
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
