"""The training job of the fault tests, on small tables that are sharded in every way."""

from datetime import timedelta

import torch
import torch.distributed as dist

import neuroshard as ns
from neuroshard.distributed import lockstep

STEPS = 12
SAVE_EVERY = 4
SHAPES = ("one module", "two modules", "two groups", "a group of some ranks")


def problem(ranks, optimizer="sgd"):
    return ns.ShardingProblem(
        tables=[ns.Table("user", rows=300, dim=16, optimizer="rowwise_adagrad"),
                ns.Table("item", rows=90, dim=8, optimizer="adam"),
                ns.Table("small", rows=11, dim=4, optimizer=optimizer)],
        features=[ns.Feature("user_id", "user"), ns.Feature("other_user", "user"),
                  ns.Feature("clicked", "item", mean_pooling=3, pooling="mean"),
                  ns.Feature("kind", "small")],
        batch=8 * ranks, topology=f"{ranks}xCPU@4GiB")


def plan(given, ranks, shift=0, disk=True):
    """Every kind of sharding, so that a step has every kind of exchange. disk: one table is in tier
    "ssd"."""
    half = given.tables[0].rows // 2
    cuts = [("user", (0, half), (0, 16), (shift % ranks,)),
            ("user", (half, 2 * half), (0, 16), ((shift + 1) % ranks,)),
            ("item", (0, 90), (0, 4), ((shift + 2) % ranks,)),
            ("item", (0, 90), (4, 8), ((shift + 1) % ranks,)),
            ("small", (0, 11), (0, 4), tuple(range(ranks)))]
    on_disk = {"tier": "ssd", "cache_rows": 32} if disk else {}
    return ns.Plan(device_count=ranks, shards=[
        ns.Shard(table=table, rows=rows, cols=cols, devices=devices,
                 **(on_disk if table == "user" else {}))
        for table, rows, cols, devices in cuts])


class Job:
    """Tables, and a dense part whose gradients are summed. shape: whether there is a second module,
    and over which process group."""

    def __init__(self, folder, shape="one module", timeout=timedelta(minutes=30)):
        self.folder = folder
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.problem = problem(self.ranks)
        self.plan = plan(self.problem, self.ranks)
        self.tables = make_tables(self.ranks)
        self.modules = [self.tables]
        if shape == "two modules":
            self.modules.append(make_tables(self.ranks))
        if shape in ("two groups", "a group of some ranks"):
            members = self.ranks - (shape == "a group of some ranks")
            group = dist.new_group(range(members), timeout=timeout)
            if self.rank < members:
                self.modules.append(make_tables(members, group))
        self.dense = torch.nn.Linear(16, 1)

    def ids(self, step, wrong=False):
        made = torch.Generator().manual_seed(1000 * step + self.rank)
        ids = {"user_id": torch.randint(0, 300, (4, 1), generator=made),
               "other_user": torch.randint(0, 300, (4, 1), generator=made),
               "clicked": torch.randint(0, 90, (4, 3), generator=made),
               "kind": torch.randint(0, 11, (4, 1), generator=made)}
        if wrong:
            ids["user_id"][2] = 300
        return ids

    def step(self, step, at=lambda point: None):
        """at: called at points of the step. What it returns for "forward" says whether the ids
        shall be wrong."""
        ids = self.ids(step, at("forward"))
        pending = [one.start(ids) for one in self.modules[::1 if step % 2 else -1]]
        outs = [one.wait() for one in pending]
        at("dense")
        value = self.dense(outs[0]["user_id"] + outs[0]["other_user"]).sum()
        loss = value + sum(one.square().sum() for out in outs for one in out.values())
        at("backward")
        loss.backward()
        at("all_reduce")
        for one in self.dense.parameters():
            dist.all_reduce(one.grad)
        self.dense.zero_grad()

    def save(self, step):
        ns.distributed.save(self.folder / f"step-{step}", {"tables": self.tables, "step": step})

    def move(self, step):
        """To a plan with other owners."""
        self.tables.reshard(plan(self.problem, self.ranks, step // SAVE_EVERY))

    def load(self):
        """Loads the latest checkpoint. Gives its step; 0: there is none."""
        path = ns.distributed.latest(self.folder)
        state = {"tables": self.tables, "step": 0}
        if path:
            ns.distributed.load(path, state)
        return state["step"]

    def train(self):
        for step in lockstep(range(1, STEPS + 1)):
            self.step(step)
            if step % SAVE_EVERY == 0:
                self.save(step)


def make_tables(ranks, group=None):
    given = problem(ranks)
    return ns.ShardedEmbeddingBagCollection(plan(given, ranks), given, learning_rate=0.1,
                                            threads=1, process_group=group)


def say(text):
    print(text, flush=True)
