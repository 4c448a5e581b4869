"""The kinds of faults, when they may come, and how each must end."""

import random
from dataclasses import dataclass

from faults_job import SAVE_EVERY, SHAPES, STEPS

IN_STEP = ("forward", "dense", "backward", "all_reduce")
ANYWHERE = ("start", "open", *IN_STEP, "save", "move")
OPENED = ("open", *IN_STEP, "save", "move")
GONE = r"ranks? [\d, and]*\b{v}\b[\d, and]*(of the job )?(does|do) not answer"
LEFT = r"ranks? [\d, and]*\b{v}\b[\d, and]*(of the job )?(has|have) left"
HANGS = r"ranks? [\d, and]*\b{v}\b[\d, and]* (hangs or is|hang or are) slow"
ENDED = r"rank {v}: its program ended with "
TIMED_OUT = r"\w+Error: .*[Tt]imed out"
REPORTED = r"\n +rank +: {v} |process {v} (terminated|exited)|-- Process {v} terminated"


@dataclass(frozen=True)
class Kind:
    """action: what the victim does (faults_drawn.py). points: where. status: exit codes that the
    victim may have; None: whatever. cause: what every other rank must say, with {v} for the victim;
    "": all ranks go on. launcher: "fork": ranks without an agent; else "torchrun" or "spawn", of
    which the whole output counts. timed: it is a matter of the group's timeout."""

    action: str
    points: tuple = OPENED
    status: tuple | None = (1,)
    cause: str = ""
    launcher: str = "fork"
    timed: bool = False


KINDS = {
    "kill": Kind("kill", ANYWHERE, (-9,), GONE),
    "stop": Kind("stop", ANYWHERE, (-9,), GONE, timed=True),
    "hang": Kind("hang", cause=f"{HANGS}|{TIMED_OUT}", timed=True),
    "SIGTERM": Kind("terminate", ANYWHERE, (-15,), GONE),
    "SIGINT": Kind("interrupt", status=(-2,), cause=ENDED + "KeyboardInterrupt"),
    "raise": Kind("raise", cause=ENDED + "ArithmeticError: the loss is nan"),
    "raise during a collective": Kind("raise in flight", IN_STEP,
                                      cause=ENDED + "ArithmeticError: the loss is nan"),
    "raise and destroy": Kind("raise and destroy", cause=r"rank {v}\b|rank 0 of the job"),
    "exit code": Kind("exit", status=(3,), cause=LEFT),
    "leave early": Kind("leave", status=(0,), cause=LEFT),
    "close tables": Kind("close", IN_STEP,
                         cause=rf"rank {{v}} has closed its tables|{ENDED}(Tensor|Value)Error"),
    "no descriptors": Kind("no descriptors", ("open",), None, r"rank {v}\b|rank 0 of the job"),
    "no descriptors while saving": Kind("no descriptors", ("save",)),
    "full disk": Kind("full disk", ("save",)),
    "wrong ids": Kind("wrong ids", ("forward",)),
    "stopped for a while": Kind("pause"),
    "busy for a while": Kind("sleep"),
    "torchrun: kill": Kind("kill", ANYWHERE, None, f"{GONE}|{REPORTED}", "torchrun"),
    "torchrun: stop": Kind("stop", OPENED, None, GONE, "torchrun", timed=True),
    "torchrun: raise": Kind("raise", OPENED, None, f"{ENDED}|{REPORTED}", "torchrun"),
    "torchrun: lost agent": Kind("kill agent", OPENED, None, "torchrun's agent does not answer",
                                 "torchrun", timed=True),
    "torchrun: restart": Kind("kill", IN_STEP, None, "", "torchrun"),
    "spawn: kill": Kind("kill", ANYWHERE, None, f"{GONE}|{REPORTED}", "spawn"),
    "spawn: raise": Kind("raise", OPENED, None, f"{ENDED}|{REPORTED}", "spawn")}


def draw(seed, number):
    """Case `number` of a seed: the kinds in turn, everything else at random."""
    kind = list(KINDS)[number % len(KINDS)]
    random_ = random.Random(f"{seed} fault {number}")
    ranks = random_.choice((2, 3, 3, 4))
    point = random_.choice(KINDS[kind].points)
    last = {"start": 1, "open": 1, **dict.fromkeys(("save", "move"), STEPS // SAVE_EVERY)}.get(point, STEPS)
    return {"kind": kind, "ranks": ranks, "victim": random_.randrange(ranks), "point": point,
            "count": random_.randint(1, last), "shape": random_.choice(SHAPES),
            "delay_ms": random_.choice([0, random_.uniform(0, 3), random_.uniform(0, 30)])}
