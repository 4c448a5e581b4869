"""neuroshard calibrate: measures the steps of random models on all ranks and writes a machine file."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist

from neuroshard._group.agreement import gather, rank_of, size_of, together
from neuroshard._machine_file import machine_file, measured_class, with_reserves, write
from neuroshard._planner import DeviceClass
from neuroshard._native.torch_library import code_version
from neuroshard.calibration import _disks as disks
from neuroshard.calibration import _links as links
from neuroshard.calibration import _machine as machine
from neuroshard.calibration import _memory as memory
from neuroshard.calibration._capacity import within_machines
from neuroshard.calibration._engines import Tables, open_plan
from neuroshard.calibration._measure import measure_steps
from neuroshard.calibration._models import make_task
from neuroshard.planning import evaluate, plan
from neuroshard._printable import counted
from neuroshard.plans import Plan
from neuroshard.problem import ShardingProblem, Target
from neuroshard.results import Breakdown, PlanResult
from neuroshard.topology import Topology

# One that is good, one that balances something else, one that balances nothing.
ALGORITHMS = ("default", "dim", "random")
LEAST_MODELS = 4
MEGABYTES = 120.0
FEWEST_ROWS = (1000, 10)  # of the models' tables, in turn
ROUNDS = 12


@dataclass(frozen=True)
class Settings:
    """Of `neuroshard calibrate`. topology: None for that of the ranks. batch: over all ranks. engine:
    whose steps are measured. tier_directory: whose disk is measured on each host; None: none. class_name: of
    the device class that the file defines."""

    output: str
    topology: str | None
    cost_model: str
    minutes: float
    batch: int
    seed: int
    engine: Literal["neuroshard", "torchrec"] = "neuroshard"
    tier_directory: str | None = None
    class_name: str = "MEASURED"

    @property
    def target(self) -> Target:
        """Of the plans that the engine runs."""
        return "native" if self.engine == "neuroshard" else "torchrec-1.9"


def calibrate(settings: Settings) -> None:
    if "WORLD_SIZE" not in os.environ:  # torchrun sets it, also for one rank
        print("warning: torchrun has not started this, so that one rank is measured, which has the machine for itself; "
              "where several train, start as many: torchrun --nproc-per-node N -m neuroshard calibrate -o FILE",
              file=sys.stderr, flush=True)
    with ranks():
        hosts = links.hosts_of_ranks()
        given = together(lambda: check(settings, hosts), None, "the check of the arguments")
        limited = within_machines(given)
        topology = links.with_measured_links(limited, hosts)
        if settings.tier_directory is not None:
            topology = disks.with_measured_disks(topology, hosts, settings.tier_directory)
        if rank_of(None) == 0:
            print_links(topology)
            print_memory(given, limited)
            print_disks(topology)
        runs, uses = measure(settings, topology)
        if rank_of(None) == 0:
            finish(settings, topology, runs, memory.fit(uses))


@contextmanager
def ranks() -> Iterator[None]:
    """A process group if torchrun has started this, else one rank."""
    torch.set_num_threads(1)
    started = "WORLD_SIZE" in os.environ and int(os.environ["WORLD_SIZE"]) > 1
    if started:
        dist.init_process_group("gloo")
    try:
        yield
    finally:
        if started:
            dist.destroy_process_group()


def print_links(topology: Topology) -> None:
    for level in topology.levels:
        shared = (f", {level.group_bandwidth_gb_per_s:g} GB/s of all in a group"
                  if level.group_bandwidth_gb_per_s else "")
        print(f"links of level {level.name}: {level.latency_us:g} us, "
              f"{level.bandwidth_gb_per_s:g} GB/s{shared}", flush=True)


def print_disks(topology: Topology) -> None:
    for number, host in enumerate(topology.hosts):
        if host.disk.reads_per_second:
            print(f"disk of host {number}: {host.disk.reads_per_second:,.0f} transfers of rows per second, "
                  f"{host.disk.bandwidth_gb_per_s:g} GB/s, {host.disk.bytes / 2**30:.1f} GiB free",
                  flush=True)


def print_memory(given: Topology, limited: Topology) -> None:
    """What the machine file says of memory, and why it is not what the topology said."""
    def sized(count: int) -> str:
        return f"{count / 2**30:.1f} GiB"

    for what, before, after in (("device", given.devices, limited.devices),
                                ("host", given.hosts, limited.hosts)):
        own, said = after[0].memory_bytes, before[0].memory_bytes
        why = ("" if own == said else
               f", of the {sized(said)} that the topology says: its share of this machine's memory")
        print(f"memory of a {what}: {sized(own)}{why}", flush=True)


def check(settings: Settings, hosts: list[int]) -> Topology:
    """The topology of the settings, or of ranks on these hosts. Raises a ValueError before anything is
    measured."""
    sizes = "+".join(str(hosts.count(host)) for host in sorted(set(hosts)))
    shape = settings.topology or f"{sizes}xCPU"
    if settings.cost_model.endswith(".json"):
        raise ValueError(f"cost_model {settings.cost_model} is a machine file; expected the model "
                         "that is to be corrected, such as auto")
    DeviceClass(settings.class_name, like="CPU")  # or what is wrong with the name
    if settings.batch % size_of(None) != 0:
        raise ValueError(f"a batch of {settings.batch} does not divide among {size_of(None)} ranks")
    topology = Topology.parse(shape)
    if topology.device_count != size_of(None):
        raise ValueError(f"topology {shape} has {counted(topology.device_count, 'device')}, but the "
                         f"group has {counted(size_of(None), 'rank')}; start as many with torchrun")
    classes = {device.device_class for device in topology.devices}
    if classes != {"CPU"}:
        raise ValueError(f"topology {shape}: expected CPUs, whose steps run here; found "
                         f"{', '.join(sorted(classes))}")
    groups = "+".join(map(str, topology.levels[-1].groups))
    if groups != sizes:
        raise ValueError(f"topology {shape} has nodes of {groups} devices, but torchrun has started "
                         f"{sizes} ranks on its hosts, whose links are measured")
    return topology


def measure(settings: Settings, topology: Topology
            ) -> tuple[list[machine.Run], list[memory.Use]]:
    end = time.monotonic() + settings.minutes * 60
    runs: list[machine.Run] = []
    uses: list[memory.Use] = []
    for number in range(10**6):
        left = gather(end - time.monotonic(), None)[0]  # rank 0 decides
        if number >= LEAST_MODELS and left <= 0:
            break
        problem, open_one = model_of(settings, topology, number)
        plans = plan_all(problem, settings.cost_model)
        opened = {}
        for name, (text, _) in plans.items():
            opened[name], use = memory.opened(open_one, text, problem)
            uses.append(use)
        found = measure_steps(problem, opened, ROUNDS)
        runs += [machine.run_of(number, name, plans[name][1], steps,
                                Prediction(settings, topology, problem, plans[name][0]))
                 for name, steps in found.items()]
        if rank_of(None) == 0:
            print(f"model {number + 1}: {len(problem.tables)} tables, "
                  f"{max(0.0, left / 60):.1f} minutes left", file=sys.stderr, flush=True)
    return runs, uses


def model_of(settings: Settings, topology: Topology, number: int
             ) -> tuple[ShardingProblem, Callable[[str, ShardingProblem], Tables]]:
    """A random model, and what opens plans of it. Every second one has tables of few rows, too, of which
    plans make copies."""
    problem = make_task(settings.seed + number, topology, settings.batch, MEGABYTES,
                        fewest_rows=FEWEST_ROWS[number % len(FEWEST_ROWS)])
    if settings.engine == "neuroshard":
        return problem, open_plan
    from neuroshard.calibration import torchrec_engine as torchrec

    return (torchrec.problem_for_torchrec(problem),
            lambda plan, planned: torchrec.open_torchrec(
                torchrec.plan_for_torchrec(plan, planned), planned))


@dataclass(frozen=True)
class Prediction:
    """What the planner says a plan's step takes, with scaled terms."""

    settings: Settings
    topology: Topology
    problem: ShardingProblem
    plan: str

    def __call__(self, scales: Mapping[str, float]) -> float:
        file = machine_file(scales, 0.0, absolute(self.settings.cost_model), self.topology,
                            self.settings.target)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as written:
            json.dump(file, written)
            written.flush()
            return evaluate(self.problem, Plan.from_json(self.plan),
                            cost_model=written.name).cost_ms


def plan_all(problem: ShardingProblem, cost_model: str) -> dict[str, tuple[str, Breakdown]]:
    """JSON and predictions by algorithm, as rank 0 plans them."""
    def make() -> dict[str, tuple[str, Breakdown]]:
        results: dict[str, PlanResult] = {
            name: plan(problem, algorithm=name, cost_model=cost_model) for name in ALGORITHMS}
        return {name: (one.plan.to_json(), one.breakdown) for name, one in results.items()}

    return gather(together(make, None, "planning", [0]), None)[0]


def absolute(cost_model: str) -> str:
    """The names of model files, which are read from other folders too, as absolute paths."""
    return ",".join(os.path.abspath(name) if name.endswith(".safetensors") else name
                    for name in cost_model.split(","))


def finish(settings: Settings, topology: Topology, runs: list[machine.Run],
           used: memory.Memory) -> None:
    fitted = machine.fit(runs)
    before = statistics.fmean(machine.errors_of(machine.UNCORRECTED, runs))
    after = statistics.fmean(machine.left_out(runs, machine.errors_of))
    bounds = machine.interval(machine.left_out(runs, machine.ratios_of))
    models = len({run.model for run in runs})
    topology = with_reserves(topology, used.reserves)
    own = measured_class(settings.class_name, topology, fitted.scales)
    write(settings.output, machine_file(
        fitted.scales, fitted.step_fixed, absolute(settings.cost_model), topology, settings.target, bounds,
        {"code": code_version(), "date": time.strftime("%Y-%m-%d"), "models": models,
         "plans": len(runs), "batch": settings.batch, "seed": settings.seed,
         "step_error_before": before, "step_error_left_out": after,
         "memory_over_predicted": [used.least, used.most]}, own))
    print(f"{len(runs)} plans of {models} models; times over the predicted ones")
    for term, scale in fitted.scales.items():
        print(f"  {term:<24} {scale:8.3f} x")
    print(f"  {'fixed part of a step':<24} {fitted.step_fixed:8.3f} ms")
    print(f"mean error of a step: {before:.1%} before, {after:.1%} for models left out of the fit")
    print(f"nine of ten steps of those take {bounds[0]:.2f} to {bounds[1]:.2f} times the predicted")
    print(f"memory of a rank: {used.process / 2**20:.0f} MiB without tables; tables take "
          f"{used.least:.2f} to {used.most:.2f} times the predicted, at most "
          f"{used.beyond / 2**20:.1f} MiB more")
    print(f"wrote {settings.output}; --cost-model {settings.output} --topology {settings.output} "
          "plans with it")
    print_class(own, settings.output)


def print_class(own: DeviceClass, path: str) -> None:
    """Which figures of the class were measured, and which it has of the one that it is like."""
    stated = own.definition()
    fields = [field for field, *_ in own.figures()]
    measured, rest = ([field for field in fields if (field in stated) == wanted] for wanted in (True, False))
    print(f"device class {own.name}, for clusters of this machine's kind: --topology 2x8x{own.name}@{path}")
    print(f"  measured: {', '.join(measured)}")
    print(f"  as {own.like}: {', '.join(rest)}")
