"""Modules of 20 to 40 tables with a planned fault of one or two of them, by seed."""

import random
from dataclasses import dataclass, field

DEVICES = 4
OPTIMIZERS = ["sgd", "adagrad", "rowwise_adagrad", "momentum"]


@dataclass
class Table:
    name: str
    rows: int
    dim: int
    optimizer: str
    pooling: str = "sum"
    mean: float = 1.0
    shards: list = field(default_factory=list)  # (row begin, end, column begin, end, devices)
    pins: list = field(default_factory=list)

    def place(self, draw):
        """Whole, copied, or cut by rows or columns."""
        whole = (0, self.rows, 0, self.dim)
        form = draw.choice(["whole", "whole", "copies", "rows", "columns"])
        first, second = draw.sample(range(DEVICES), 2)
        if form == "whole":
            self.shards = [(*whole, [first])]
        elif form == "copies":
            self.shards = [(*whole, [first, second])]
        elif form == "rows":
            half = self.rows // 2
            self.shards = [(0, half, 0, self.dim, [first]), (half, self.rows, 0, self.dim, [second])]
        else:
            half = self.dim // 8 * 4
            self.shards = [(0, self.rows, 0, half, [first]), (0, self.rows, half, self.dim, [second])]


@dataclass
class Module:
    tables: list
    planning: str = ""
    has_plan: bool = True
    memory: str = ""

    def text(self):
        names = ", ".join(f'"f_{table.name}"' for table in self.tables)
        jagged = f"!neuroshard.jagged<[{names}], i64>"
        results = [f"tensor<?x{table.dim}xf32>" for table in self.tables]
        planning = f", neuroshard.planning = {{{self.planning}}}" if self.planning else ""
        lines = [f"module attributes {{neuroshard.batch = 512 : i64{planning}}} {{",
                 f'  neuroshard.topology @cluster devices [#neuroshard.devices<{DEVICES} x "CPU"'
                 f"{self.memory}>] levels [#neuroshard.level<\"host\", groups = [{DEVICES}], "
                 "bandwidth = 10.0, latency = 5.0>]"]
        lines += [f"  neuroshard.table private @{table.name} : {table.rows} x {table.dim} x f32 "
                  f"{{optimizer = #neuroshard.optimizer<{table.optimizer}>}}"
                  for table in self.tables]
        lines += self.plan_lines() if self.has_plan else []
        lines.append(f"  func.func @forward(%ids: {jagged}) -> ({', '.join(results)}) {{")
        lines += [f'    %{number} = neuroshard.lookup {table.pooling} @{table.name}[%ids, '
                  f'"f_{table.name}"] {{stats = #neuroshard.feature<mean = {table.mean}>}} : '
                  f"{jagged} -> {result}"
                  for number, (table, result) in enumerate(zip(self.tables, results, strict=True))]
        values = ", ".join(f"%{number}" for number in range(len(self.tables)))
        return "\n".join([*lines, f"    return {values} : {', '.join(results)}", "  }", "}", ""])

    def plan_lines(self):
        lines = ["  neuroshard.plan @plan on @cluster semantics exact {"]
        for table in self.tables:
            lines += [f'    neuroshard.shard "{table.name}_{number}" of @{table.name} rows [{a}, {b}) '
                      f"cols [{c}, {d}) on {devices}"
                      for number, (a, b, c, d, devices) in enumerate(table.shards)]
            lines += [f"    neuroshard.pin @{table.name} on {devices}" for devices in table.pins]
        return [*lines, "  }"]


@dataclass
class Failure:
    module: Module
    error: str  # "": it crashes
    command: list  # the tool and its options


def _cut_by_columns(table, devices):
    half = table.dim // 8 * 4
    table.shards = [(0, table.rows, 0, half, devices[:1]), (0, table.rows, half, table.dim, devices[1:])]


def _whole(table, devices):
    table.shards = [(0, table.rows, 0, table.dim, devices)]


def _cut_adam(module, victims, _):
    victims[0].optimizer = "adam"
    _cut_by_columns(victims[0], [0, 1])
    return Failure(module, "Adam is cut by columns", ["neuroshard-test-opt", "--neuroshard-test-fault=kind=cut-adam"])


def _copies(module, victims, _):
    _whole(victims[0], [0, 2, 3])
    return Failure(module, "three copies", ["neuroshard-test-opt", "--neuroshard-test-fault=kind=copies"])


def _crash(module, victims, draw):
    device = draw.randrange(DEVICES)
    for table, pooling in zip(victims, ["mean", "unpooled"], strict=True):
        table.pooling = pooling
        _whole(table, [device])
    return Failure(module, "", ["neuroshard-test-opt", "--neuroshard-test-fault=kind=mean-beside-unpooled"])


def _memory_of_plan(module, victims, _):
    victims[0].rows, module.has_plan = 2_000_000_000, False
    return Failure(module, "no plan: device memory", ["neuroshard-opt", "--neuroshard-plan"])


def _pin(module, victims, draw):
    device = draw.randrange(DEVICES)
    _whole(victims[0], [device])
    victims[0].pins = [[(device + 1) % DEVICES]]
    return Failure(module, "a pin keeps it off device", ["neuroshard-opt", "--neuroshard-verify-planned"])


def _forbid(module, victims, draw):
    device = draw.randrange(DEVICES)
    _whole(victims[0], [device])
    module.planning = f"forbid = [{{table = @{victims[0].name}, devices = array<i64: {device}>}}]"
    return Failure(module, "forbidden", ["neuroshard-opt", "--neuroshard-verify-planned"])


def _separate(module, victims, draw):
    device = draw.randrange(DEVICES)
    for table in victims:
        _whole(table, [device])
    module.planning = f"separate = [[@{victims[0].name}, @{victims[1].name}]]"
    return Failure(module, "from which it is separated", ["neuroshard-opt", "--neuroshard-verify-planned"])


def _gap(module, victims, _):
    table = victims[0]
    table.shards = [(0, table.rows - 1, 0, table.dim, [0])]
    return Failure(module, "must cover every table", ["neuroshard-opt", "--neuroshard-verify-planned"])


def _memory_of_device(module, victims, draw):
    victims[0].rows = 300_000_000
    _whole(victims[0], [draw.randrange(DEVICES)])
    return Failure(module, "needs", ["neuroshard-opt", "--neuroshard-verify-planned=check-memory=true"])


def _cut_of_torchrec(module, victims, draw):
    """TorchRec's tables have one kind of cut each, and this has two."""
    table = victims[0]
    half, columns = table.rows // 2, table.dim // 8 * 4
    table.shards = [(0, half, 0, table.dim, [0]), (half, table.rows, 0, columns, [1]),
                    (half, table.rows, columns, table.dim, [2])]
    for other in module.tables:
        if other is not table:
            _whole(other, [draw.randrange(DEVICES)])
    module.planning = 'target = "torchrec-1.9"'
    return Failure(module, f"'{table.name}'", ["neuroshard-opt", "--neuroshard-verify-planned"])


KINDS = [_cut_adam, _copies, _crash, _memory_of_plan, _pin, _forbid, _separate, _gap,
         _memory_of_device, _cut_of_torchrec]


def failure(number):
    """The failure of this number; ten kinds take turns."""
    draw = random.Random(number)
    tables = [Table(f"t{index}", draw.randint(100, 100_000), 4 * draw.randint(2, 32),
                    draw.choice(OPTIMIZERS), mean=float(draw.randint(1, 40)))
              for index in range(draw.randint(20, 40))]
    for table in tables:
        table.place(draw)
    module = Module(tables)
    return KINDS[number % len(KINDS)](module, draw.sample(tables, 2), draw)
