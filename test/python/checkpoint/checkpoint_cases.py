"""Cases of the checkpoint tests that run on ranks. Each is called on all ranks with a folder that
runs with other numbers of ranks share, and fails by an exception."""

import contextlib
import os
import resource
import signal
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

import checkpoint_tables as tables
from neuroshard._artifact.optimizer_states import ROW_STATES
from neuroshard.distributed._checkpoint import checkpoint, files, sharded

# Steps of training before the checkpoint and after it.
BEFORE, AFTER = (100, 100) if os.environ.get("NEUROSHARD_ALL") else (10, 10)
TOLERANCE = 1e-5


def everywhere(value):
    """The values of all ranks."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def first_writes(path, action):
    """Rank 0 writes files that the other ranks then read."""
    if dist.get_rank() == 0:
        action(path)
    dist.barrier()


def module(problem, kinds, seed, idle=(), weights=0):
    plan = tables.plan(problem, kinds, dist.get_world_size(), seed, idle)
    return tables.Tables(plan, problem, dist.get_rank(), weights)


def collection(problem, kinds, seed, idle=(), weights=0):
    """A real collection, open until the process ends."""
    plan = tables.plan(problem, kinds, dist.get_world_size(), seed, idle)
    return tables.Collection(plan, problem, weights)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert torch.equal(found[key], values), key


def refusal(action):
    """The error that all ranks must raise alike, and none only after the group's timeout."""
    try:
        action()
        message = ""
    except checkpoint.CheckpointError as error:
        message = str(error)
    messages = everywhere(message)
    assert len(set(messages)) == 1 and message, messages
    return message


# The matrix: optimizers x five kinds of sharding, onto each of which every kind is loaded.


def matrix(rotation):
    """Rotation r shards each table in the r-th next kind."""
    problem = tables.problem(tables.matrix_tables(), dist.get_world_size())
    kinds = [kind for _ in tables.OPTIMIZERS for kind in tables.KINDS]
    return problem, kinds[int(rotation):] + kinds[:int(rotation)]


def matrix_save(folder, seed):
    problem, kinds = matrix(0)
    trained = collection(problem, kinds, seed)
    trained.train(BEFORE)
    trained.set_learning_rate(0.05)
    checkpoint.save(folder / "matrix" / "saved", {"tables": trained})
    first = tables.whole(trained, everywhere)
    trained.train(AFTER)
    second = tables.whole(trained, everywhere)
    assert not any(torch.equal(first[key], second[key]) for key in first)
    first_writes(folder / "matrix" / "whole.pt", lambda path: torch.save((first, second), path))


def matrix_load(folder, seed, rotation):
    problem, kinds = matrix(rotation)
    resumed = collection(problem, kinds, f"{seed} {rotation}", weights=9)
    checkpoint.load(folder / "matrix" / "saved", {"tables": resumed})
    assert resumed.step == BEFORE and resumed.learning_rate == 0.05
    first, second = torch.load(folder / "matrix" / "whole.pt")
    assert_same(tables.whole(resumed, everywhere), first)
    resumed.train(AFTER)
    found = tables.whole(resumed, everywhere)
    assert found.keys() == second.keys()
    for key, values in second.items():
        torch.testing.assert_close(found[key], values, rtol=TOLERANCE, atol=TOLERANCE, msg=lambda
                                   text, key=key: f"{key}: {text}")


# Bits


def bits_save(folder, semantics):
    """All that is saved, in every kind and type, with a rank that owns nothing."""
    problem, kinds = bits(semantics)
    trained = module(problem, kinds, 1, idle=(1,))
    trained.train(3)
    path = folder / f"bits-{semantics}"
    checkpoint.save(path, {"tables": trained})
    whole = tables.whole(trained, everywhere)
    first_writes(folder / f"bits-{semantics}.pt", lambda target: torch.save(whole, target))


def bits(semantics):
    found = tables.matrix_tables(types=("f32", "f16", "bf16"))
    problem = tables.problem(found, dist.get_world_size(), semantics)
    kinds = [kind for _ in tables.OPTIMIZERS for kind in tables.KINDS for _ in range(3)]
    return problem, kinds


def bits_load(folder, semantics):
    problem, kinds = bits(semantics)
    other = module(problem, kinds[4:] + kinds[:4], 2, idle=(0,), weights=9)
    checkpoint.load(folder / f"bits-{semantics}", {"tables": other})
    expected = torch.load(folder / f"bits-{semantics}.pt")
    assert_same(tables.whole(other, everywhere), expected)


def blocks(folder):
    """Each element is written once, in blocks, and read back across blocks."""
    sharded.BLOCK_BYTES = 200
    problem, kinds = bits("exact")
    trained = module(problem, kinds, 3)
    checkpoint.save(folder / "blocks", {"tables": trained})
    saved = dcp.FileSystemReader(folder / "blocks").read_metadata().state_dict_metadata
    for key, found in saved.items():
        if isinstance(found, TensorStorageMetadata) and len(found.size):
            assert sum(chunk.sizes.numel() for chunk in found.chunks) == found.size.numel(), key
            size = found.properties.dtype.itemsize
            assert all(chunk.sizes.numel() * size <= 200 for chunk in found.chunks), key
    other = module(problem, kinds[7:] + kinds[:7], 4, weights=9)
    checkpoint.load(folder / "blocks", {"tables": other})
    assert_same(tables.whole(other, everywhere), tables.whole(trained, everywhere))
    sharded.BLOCK_BYTES = 32 << 20


def per_shard(folder, source="per_shard", target="per_shard", real=""):
    """Row-wise states against the formula, element by element."""
    ranks = dist.get_world_size()
    make = collection if real else module
    found = tables.matrix_tables(["rowwise_adagrad", "partial_rowwise_adam"],
                                 types=("f32", "bf16"))
    kinds = [kind for _ in range(2) for kind in tables.KINDS for _ in range(2)]
    before = make(tables.problem(found, ranks, source), kinds, 5)
    before.train(2)
    path = folder / f"merge-{source}-{target}{real}"
    checkpoint.save(path, {"tables": before})
    after = make(tables.problem(found, ranks, target), kinds[3:] + kinds[:3], 6, weights=9,
                 idle=(ranks - 1,))
    checkpoint.load(path, {"tables": after})
    old = tables.whole(before, everywhere)
    for shard in after.local_shards():
        state, = ROW_STATES[after.problem.table(shard.table).optimizer.kind]
        covered = old[f"{shard.table}.{state}"][slice(*shard.rows), slice(*shard.cols)]
        if target == "exact":
            covered = old[f"{shard.table}.{state}"][slice(*shard.rows)]
        assert torch.equal(shard.states[state], covered.mean(1).float()), shard.name
        assert torch.equal(shard.weights.double(), old[f"{shard.table}.weight"][
            slice(*shard.rows), slice(*shard.cols)])


# torch.distributed.checkpoint by itself


def plain(folder, real=""):
    problem, kinds = bits("exact")
    make, path = collection if real else module, folder / f"plain{real}"
    trained = make(problem, kinds, 7)
    trained.train(2)
    dcp.save({"model": trained}, checkpoint_id=path)
    other = make(problem, kinds[2:] + kinds[:2], 8, weights=9)
    dcp.load({"model": other}, checkpoint_id=path)
    assert_same(tables.whole(other, everywhere), tables.whole(trained, everywhere))
    assert other.step == 2
    again = make(problem, kinds, 7, weights=9)
    checkpoint.load(path, {"model": again})
    assert_same(tables.whole(again, everywhere), tables.whole(trained, everywhere))


def asynchronous(folder, real=""):
    """The state at the moment of the call is saved while training goes on."""
    problem, kinds = bits("exact")
    make, path = collection if real else module, folder / f"asynchronous{real}"
    trained = make(problem, kinds, 7)
    trained.train(2)
    expected = tables.whole(trained, everywhere)
    pending = dcp.async_save({"model": trained}, checkpoint_id=path)
    trained.train(1)
    pending.result()
    other = make(problem, kinds[3:] + kinds[:3], 8, weights=9)
    dcp.load({"model": other}, checkpoint_id=path)
    assert_same(tables.whole(other, everywhere), expected)


def unsharded(folder):
    """Weights of whole tables, saved by torch alone, without optimizer states."""
    problem, kinds = bits("exact")
    weights = {f"embedding_bags.{table.name}.weight": tables.initial(table, 5).to(
        tables.state.DTYPES[table.type]) for table in problem.tables}
    first_writes(folder / "unsharded", lambda path: dcp.save(
        {"model": weights}, checkpoint_id=path, no_dist=True))
    other = module(problem, kinds, 9, weights=9)
    message = refusal(lambda: checkpoint.load(folder / "unsharded", {"model": other}))
    assert "model.embedding_bags.adagrad_table_wise_f32.sum is not in the checkpoint" in message
    assert "only='weights'" in message
    states = tables.whole(other, everywhere)
    checkpoint.load(folder / "unsharded", {"model": other}, only="weights")
    found = tables.whole(other, everywhere)
    for table in problem.tables:
        assert torch.equal(found[f"{table.name}.weight"],
                           weights[f"embedding_bags.{table.name}.weight"].double())
    rest = [key for key in states if not key.endswith(".weight")]
    assert_same({key: found[key] for key in rest}, {key: states[key] for key in rest})


# A whole training state


class Model(nn.Module):
    def __init__(self, tables_, width=4):
        super().__init__()
        self.sparse = tables_
        self.dense = nn.Linear(3, width)


def training_state(folder):
    problem, kinds = bits("exact")
    torch.manual_seed(1)

    def make(seed, weights):
        model = Model(module(problem, kinds, seed, weights=weights))
        optimizer = torch.optim.Adam(model.dense.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5])
        return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "epoch": 0,
                "metrics": {"auc": [0.5]}, "mask": torch.zeros(5)}

    def train(state, steps):
        for step in range(steps):
            state["optimizer"].zero_grad()
            state["model"].dense(torch.full((2, 3), float(step))).square().sum().backward()
            state["optimizer"].step()
            state["scheduler"].step()
            state["model"].sparse.train(1)

    before = make(1, 0)
    train(before, 3)
    before.update(epoch=7, metrics={"auc": [0.6, 0.7]}, mask=torch.arange(5.0))
    checkpoint.save(folder / "training" / "step-3", before)
    after = make(2, 9)
    checkpoint.load(folder / "training" / "step-3", after)
    assert after["epoch"] == 7 and after["metrics"] == {"auc": [0.6, 0.7]}
    assert torch.equal(after["mask"], torch.arange(5.0))
    train(before, 4)
    train(after, 4)
    assert after["scheduler"].state_dict() == before["scheduler"].state_dict()
    assert torch.equal(after["model"].dense.weight, before["model"].dense.weight)
    assert_same(tables.whole(after["model"].sparse, everywhere),
                tables.whole(before["model"].sparse, everywhere))


def subgroups(folder):
    """Groups of two ranks, each with a model and a checkpoint of its own, at the same time."""
    rank, half = dist.get_rank(), dist.get_rank() // 2
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    problem = tables.problem(tables.matrix_tables(["rowwise_adagrad", "adam"]), 2)
    plans = [tables.plan(problem, 2 * list(tables.KINDS), 2, seed) for seed in (1, 2)]
    trained = tables.Tables(plans[0], problem, rank % 2, seed=half)
    trained.train(half + 1)
    checkpoint.save(folder / f"group-{half}" / "a", {"tables": trained}, groups[half])
    other = tables.Tables(plans[1], problem, rank % 2, seed=9)
    checkpoint.load(folder / f"group-{half}" / "a", {"tables": other}, groups[half])
    assert other.step == half + 1
    whole, found = everywhere(tables.whole_parts(trained)), everywhere(tables.whole_parts(other))
    assert_same(tables.put_together(problem, found[2 * half:2 * half + 2]),
                tables.put_together(problem, whole[2 * half:2 * half + 2]))


# Faults


def full_disk(folder):
    """One rank cannot write: the earlier checkpoint stays, and no other file does."""
    problem, kinds = bits("exact")
    trained = module(problem, kinds, 1)
    path = folder / "full" / "step-1"
    checkpoint.save(path, {"tables": trained})
    expected = tables.whole(trained, everywhere)
    trained.train(1)
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    for victim, owner, name in ((last, files.Writer, "write_data"),
                                (0, files.Writer, "write_data"),
                                (0, files.Writer, "finish"),
                                (0, files, "write_marker")):
        for target in (path, path.with_name("step-2")):
            with full_in(owner, name, rank == victim):
                message = refusal(lambda: checkpoint.save(target, {"tables": trained}))
            assert message.startswith(f"saving {target}: "), message
            assert "File too large" in message and ".partial" in message, message
            assert name == "write_marker" or f"rank {victim}: " in message, message
            assert os.listdir(path.parent) == ["step-1"]
    other = module(problem, kinds[1:] + kinds[:1], 2, weights=9)
    checkpoint.load(path, {"tables": other})
    assert_same(tables.whole(other, everywhere), expected)


@contextlib.contextmanager
def full_in(owner, name, here):
    """Files cannot grow while a function runs, as on a full disk."""
    function = getattr(owner, name)

    def limited(*arguments, **named):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 if name == "write_marker" else 10_000,
                                                   before[1]))
        try:
            return function(*arguments, **named)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if here:
        setattr(owner, name, limited)
    try:
        yield
    finally:
        setattr(owner, name, function)
        signal.signal(signal.SIGXFSZ, handler)


def damage(folder):
    """A file that only some ranks read is damaged or missing: all ranks raise the error."""
    problem, kinds = bits("exact")
    trained = module(problem, kinds, 1)
    path = folder / "damage"
    checkpoint.save(path, {"tables": trained})
    victim = path / f"__{dist.get_world_size() - 1}_0.distcp"
    content = victim.read_bytes()
    dist.barrier()

    def load():
        checkpoint.load(path, {"tables": trained})

    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    first_writes(victim, lambda file: file.write_bytes(flipped))
    message = refusal(load)
    assert f"{victim} is damaged" in message, message
    first_writes(victim, lambda file: file.write_bytes(content[:len(content) // 2]))
    assert f"{victim} is damaged" in refusal(load)
    first_writes(victim, lambda file: file.unlink())
    message = refusal(load)
    assert "No such file" in message and victim.name in message, message
    first_writes(victim, lambda file: file.write_bytes(content))
    load()


def disagreement(folder):
    """Ranks call with different arguments."""
    problem, kinds = bits("exact")
    trained = module(problem, kinds, 1)
    rank = dist.get_rank()
    message = refusal(lambda: checkpoint.save(folder / f"mine-{min(rank, 1)}", {"a": trained}))
    assert "but rank 1 is saving" in message and "mine-1" in message
    message = refusal(lambda: checkpoint.save(folder / "keys", {"a": 1, f"b{min(rank, 1)}": 2}))
    assert "with a, b0, keep=None, but rank 1" in message
    assert not (folder / "keys").exists()
    message = refusal(lambda: checkpoint.save(folder / "keys-1", {"a": 1}, keep=1 + min(rank, 1)))
    assert "with a, keep=1, but rank 1" in message and message.endswith("with the same path, names and keep")
    only = ("optimizer", "weights")[min(rank, 1)]
    message = refusal(lambda: checkpoint.load(folder / "keys", {"a": trained}, only=only))
    assert "with a, only='optimizer', but rank 1 is" in message and "with a, only='weights';" in message
    for action in (checkpoint.save, checkpoint.load):
        message = refusal(lambda: action(folder / "keys", {"a": 1} if rank != 1 else None))
        assert "rank 1: state: expected a dict" in message and "got: None" in message
    message = refusal(lambda: checkpoint.save("/", {"a": 1}))
    assert message.startswith("saving /: expected a folder of its own"), message

    class Broken:
        def state_dict(self):
            if rank == 1:
                raise KeyError("momentum")
            return {}

        def load_state_dict(self, _):
            pass

    message = refusal(lambda: checkpoint.save(folder / "keys", {"a": Broken()}))
    assert "rank 1: KeyError: 'momentum'" in message
    assert not any(folder.glob("keys*"))


def killed(folder, where, victim):
    """A rank is killed during a save; the others write down their errors."""
    problem, kinds = bits("exact")
    trained = module(problem, kinds, 1)
    path = folder / f"killed-{where}" / "step-1"
    checkpoint.save(path, {"tables": trained})
    trained.train(1)
    if dist.get_rank() == int(victim):
        kill_in(*{"write": (files.Writer, "write_data"),
                  "complete": (files, "check_files"),
                  "rename": (files, "sync_parent"),
                  "remove": (files, "remove")}[where])
    try:
        checkpoint.save(path, {"tables": trained})
    except checkpoint.CheckpointError as error:
        (folder / f"killed-{where}" / f"error-{dist.get_rank()}").write_text(str(error))
    sys.exit()


def kill_in(owner, name):
    setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))


def after_killed(folder, where):
    """The earlier checkpoint loads or, if it was complete, the new one; the next save removes all
    leftovers."""
    problem, kinds = bits("exact")
    path = folder / f"killed-{where}" / "step-1"
    other = module(problem, kinds[1:] + kinds[:1], 2, weights=9)
    checkpoint.load(path, {"tables": other})
    expected = module(problem, kinds, 1)
    expected.train(other.step)
    assert other.step == (1 if where in ("remove",) else 0)
    assert_same(tables.whole(other, everywhere), tables.whole(expected, everywhere))
    checkpoint.save(path, {"tables": expected})
    left = [name for name in os.listdir(path.parent) if not name.startswith("error")]
    assert left == ["step-1"]
    assert checkpoint.latest(path.parent) == path
