"""Describes small models and plans, and writes them as logical IR."""

from dataclasses import dataclass, field

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ID_TYPES = {"i32": torch.int32, "i64": torch.int64}
# Of ids that kernels read, by their bytes.
KERNEL_ID_TYPES = {4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Optimizer:
    kind: str
    eps: float = 1e-8
    beta1: float = 0.9
    beta2: float = 0.999
    initial_accumulator: float = 0.0
    weight_decay: float = 0.0
    weight_decay_mode: str = "default"
    l1_penalty: float = 0.0
    l2_penalty: float = 0.0
    eta: float = 0.001
    counter_halflife: float = -1.0
    adjustment_iter: float = -1.0
    adjustment_ub: float = 1.0
    max_gradient: float = 0.0
    stochastic_rounding: bool = False
    catch_up: bool = False

    def text(self):
        defaults = Optimizer(self.kind)
        changed = "".join(
            f", {name} = {getattr(self, name):.17e}"
            for name in ("eps", "beta1", "beta2", "initial_accumulator", "weight_decay",
                         "l1_penalty", "l2_penalty", "eta", "counter_halflife", "adjustment_iter",
                         "adjustment_ub", "max_gradient")
            if getattr(self, name) != getattr(defaults, name))
        if self.weight_decay_mode != "default":
            changed += f", weight_decay_mode = {self.weight_decay_mode}"
        if self.stochastic_rounding:
            changed += ", stochastic_rounding"
        if self.catch_up:
            changed += ", catch_up"
        return f"#neuroshard.optimizer<{self.kind}{changed}>"


@dataclass(frozen=True)
class Table:
    name: str
    rows: int
    dim: int
    dtype: str = "f32"
    optimizer: Optimizer | None = None

    def text(self):
        trained = f" {{optimizer = {self.optimizer.text()}}}" if self.optimizer else ""
        return (f"neuroshard.table private @{self.name} : {self.rows} x {self.dim} x "
                f"{self.dtype}{trained}")


@dataclass(frozen=True)
class Lookup:
    """One lookup of a feature; pooling is sum, mean or unpooled."""

    feature: str
    table: str
    pooling: str = "sum"
    weighted: bool = False
    padding_idx: int | None = None
    result: str = "f32"


@dataclass(frozen=True)
class Input:
    """A jagged argument of the model and the lookups that read it."""

    name: str
    features: tuple
    lookups: tuple
    id_type: str = "i64"
    weighted: bool = False

    def type_text(self):
        names = ", ".join(f'"{name}"' for name in self.features)
        weighted = ", weighted" if self.weighted else ""
        return f"!neuroshard.jagged<[{names}], {self.id_type}{weighted}>"


@dataclass(frozen=True)
class Shard:
    """Half-open rows and columns of a table; several devices: copies."""

    table: str
    rows: tuple
    cols: tuple
    devices: tuple
    route: str = "auto"
    sync_every: int = 0

    def text(self, number):
        return (f'  neuroshard.shard "s{number}" of @{self.table} '
                f"rows [{self.rows[0]}, {self.rows[1]}) cols [{self.cols[0]}, {self.cols[1]}) "
                f"on {list(self.devices)}"
                + (f" route {self.route}" if self.route != "auto" else "")
                + (f" sync_every {self.sync_every}" if self.sync_every else ""))


@dataclass
class Plan:
    devices: int
    shards: list
    semantics: str = "exact"
    groups: int = 1  # of devices with better links inside than between them

    def shards_of(self, table):
        return [shard for shard in self.shards if shard.table == table]

    def is_replicated(self, table):
        """Whether it is whole on all devices, so that its results do not travel."""
        shards = self.shards_of(table)
        return len(shards) == 1 and 1 < len(shards[0].devices) == self.devices

    def has_copies(self, table):
        """Whether some gradients of a row are added up before they travel."""
        return any(len(shard.devices) > 1 for shard in self.shards_of(table))

    def splits_rows(self, table):
        return len({shard.rows for shard in self.shards_of(table)}) > 1

    def splits_columns(self, table):
        return len({shard.cols for shard in self.shards_of(table)}) > 1


@dataclass
class Model:
    tables: list
    inputs: list
    batch: int = 64
    # Lines after the lookups, of an entry function that does more; `results` are its
    # (value, type) pairs. %r0, %r1, ... are the results of the lookups, in order.
    arguments: list = field(default_factory=list)
    dense: list = field(default_factory=list)
    results: list | None = None

    def table(self, name):
        return next(table for table in self.tables if table.name == name)

    def lookups(self):
        """All (input, lookup) pairs in the order of the results."""
        return [(input_, lookup) for input_ in self.inputs for lookup in input_.lookups]

    def result_type(self, lookup):
        return f"tensor<?x{self.table(lookup.table).dim}x{lookup.result}>"

    def forward_text(self):
        lines, results = [], []
        for number, (input_, lookup) in enumerate(self.lookups()):
            weighted = " weighted" if lookup.weighted else ""
            padding = ("" if lookup.padding_idx is None
                       else f" padding_idx {lookup.padding_idx}")
            type_ = self.result_type(lookup)
            lines.append(f"  %r{number} = neuroshard.lookup {lookup.pooling} @{lookup.table}"
                         f'[%{input_.name}, "{lookup.feature}"]{weighted}{padding} : '
                         f"{input_.type_text()} -> {type_}")
            results.append((f"%r{number}", type_))
        results = self.results or results
        arguments = [f"%{i.name}: {i.type_text()}" for i in self.inputs] + self.arguments
        values = ", ".join(value for value, _ in results)
        types = ", ".join(type_ for _, type_ in results)
        body = "\n".join(lines + self.dense)
        return (f"func.func @forward({', '.join(arguments)}) -> ({types}) {{\n{body}\n"
                f"  return {values} : {types}\n}}")

    def text(self, plan):
        nodes = [plan.devices // plan.groups] * plan.groups
        levels = [("node", nodes, 8.0)]
        if plan.groups > 1:
            levels.insert(0, ("network", [plan.devices], 2.0))
        links = ", ".join(f'#neuroshard.level<"{name}", groups = {groups}, '
                          f"bandwidth = {bandwidth}, latency = 20.0>"
                          for name, groups, bandwidth in levels)
        topology = (
            f'neuroshard.topology @cluster devices [#neuroshard.devices<{plan.devices} x "CPU">]\n'
            f"  levels [{links}]")
        shards = "\n".join(shard.text(number) for number, shard in enumerate(plan.shards))
        placed = (f"neuroshard.plan @plan on @cluster semantics {plan.semantics} {{\n{shards}\n}}")
        parts = [topology, *(table.text() for table in self.tables), placed,
                 self.forward_text()]
        body = "\n".join(parts)
        return f"module attributes {{neuroshard.batch = {self.batch} : i64}} {{\n{body}\n}}\n"
