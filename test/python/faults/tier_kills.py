"""Kills a process that trains tables on disk, at random moments, and lets another go on from its latest
checkpoint.

usage: NEUROSHARD_BUILD_DIR=build/release build/venv/bin/python test/python/faults/tier_kills.py
           KILLS SEED FOLDER

Writes FOLDER/results.json: of each kill, the step of the checkpoint that was there, and whether the tables
at the end have the bits of a run without a kill."""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(os.environ["NEUROSHARD_BUILD_DIR"]) / "python"),
                str(Path(__file__).parent), str(Path(__file__).parents[1])]

import torch  # noqa: E402

import neuroshard as ns  # noqa: E402

STEPS, SAVE_EVERY, ROWS = 24, 3, 3000


def tables():
    problem = ns.ShardingProblem(
        tables=[ns.Table("user", ROWS, 16, optimizer="adam"),
                ns.Table("item", 500, 8, optimizer="rowwise_adagrad")],
        features=[ns.Feature("user", "user", mean_pooling=4), ns.Feature("item", "item")],
        batch=32, topology="1xCPU@4GiB")
    plan = ns.Plan(device_count=1, shards=[
        ns.Shard(table="user", rows=(0, ROWS), cols=(0, 16), devices=0, tier="ssd",
                 cache_rows=160, cache_policy="lfu"),
        ns.Shard(table="item", rows=(0, 500), cols=(0, 8), devices=0, tier="ssd", cache_rows=64)])
    return ns.ShardedEmbeddingBagCollection(plan, problem, learning_rate=0.1, threads=1)


def batch_of(step):
    made = torch.Generator().manual_seed(step)
    return {"user": torch.randint(0, ROWS, (32, 4), generator=made),
            "item": torch.randint(0, 500, (32, 1), generator=made)}


def train(folder, at_step=lambda step: None):
    """From the latest checkpoint to the end. Gives the step it began after, and all values."""
    model = tables()
    state = {"tables": model, "step": 0}
    latest = ns.distributed.latest(folder)
    if latest:
        ns.distributed.load(latest, state)
    began = state["step"]
    steps = range(began + 1, STEPS + 1)
    batches = [batch_of(step) for step in steps]
    for step, ids in zip(steps, ns.distributed.pipeline(batches, {model: lambda ids: ids})):
        at_step(step)
        sum(value.square().sum() for value in model(ids).values()).backward()
        if step % SAVE_EVERY == 0:
            ns.distributed.save(folder / f"step-{step}", {"tables": model, "step": step})
    values = [tensor.clone() for shard in model.local_shards()
              for tensor in (shard.weights, *shard.states.values())]
    model.close()
    return began, values


def forked(folder, result):
    """The process of a run, which writes its result at its end, and a pipe with its steps."""
    steps, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            torch.save(train(folder, lambda step: os.write(told, bytes([step]))),
                       result.with_suffix(".part"))
            result.with_suffix(".part").rename(result)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001, the parent says it
            print(f"{folder}: {error!r}", flush=True)
        os._exit(1)
    os.close(told)
    return child, steps


def wait(child, steps):
    os.close(steps)
    return os.waitpid(child, 0)[1]


def main(kills, seed, folder):
    torch.set_num_threads(1)
    folder = Path(folder)
    moments = random.Random(seed)
    (folder / "whole").mkdir()
    wait(*forked(folder / "whole", folder / "whole.pt"))
    expected = torch.load(folder / "whole.pt")[1]
    results = []
    for number in range(kills):
        place = folder / str(number)
        place.mkdir()
        child, steps = forked(place, folder / "never.pt")
        for _ in range(moments.randint(0, STEPS)):  # 0: while it opens the tables
            os.read(steps, 1)
        time.sleep(moments.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        status = wait(child, steps)
        result = folder / f"{number}.pt"
        wait(*forked(place, result))
        began, values = torch.load(result) if result.exists() else (None, [])
        results.append({"killed": os.WIFSIGNALED(status), "began": began,
                        "same": len(values) == len(expected)
                        and all(map(torch.equal, values, expected))})
        shutil.rmtree(place)
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
