"""Runs commands for a small and a large input and fails when their time grows faster than the input.

    growth.py --sizes SMALL LARGE --mib M -- COMMAND ARGUMENT... [-- COMMAND ARGUMENT...]

In each argument {} stands for the size. Time is that of the processor, and the two times are of
one run on one machine, so that its speed changes nothing: linear work takes at most LARGE / SMALL
times as long, quadratic work the square of that. Allowed is what lies halfway between the two, as
a power; a first answer beyond it is asked for again, twice, for other work on the machine only
adds time. MiB are the largest resident set of any of the commands. A command that fails, fails
the whole. With NEUROSHARD_SANITIZE set ten times the memory is allowed: sanitizers need more.
"""

import argparse
import os
import resource
import subprocess
import sys

ATTEMPTS = 3


def split_commands(words):
    commands = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def processor_seconds(commands, size):
    """Seconds of the processor that all commands take together."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    for command in commands:
        subprocess.run([word.replace("{}", str(size)) for word in command], check=True)
    return used() - before


def check_growth(commands, small, large):
    allowed = (large / small) ** 1.5
    times = {small: [], large: []}
    for _ in range(ATTEMPTS):
        for size, seconds in times.items():
            seconds.append(processor_seconds(commands, size))
        growth = min(times[large]) / min(times[small])
        print(f"{len(commands)} commands: {min(times[small]):.2f} s for {small}, "
              f"{min(times[large]):.2f} s for {large}, {growth:.1f} times as much")
        if growth <= allowed:
            return
    sys.exit(f"time grows {growth:.1f} times where the input grows {large / small:g} times; "
             f"expected at most {allowed:.1f} times")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs=2, required=True)
    parser.add_argument("--mib", type=float, required=True)
    words = sys.argv[1:]
    begin = words.index("--")
    limits = parser.parse_args(words[:begin])
    commands = split_commands(words[begin:])
    if not commands:
        sys.exit("growth.py: no command")
    check_growth(commands, *limits.sizes)
    mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    allowed = limits.mib * (10 if "NEUROSHARD_SANITIZE" in os.environ else 1)
    if mib > allowed:
        sys.exit(f"a command needs {mib:.0f} MiB; expected at most {allowed:.0f}")


if __name__ == "__main__":
    main()
