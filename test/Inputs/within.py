"""Runs commands one after another and fails when together they need more than allowed.

    within.py --seconds S --mib M -- COMMAND ARGUMENT... [-- COMMAND ARGUMENT...]

Seconds are those of the processor, so that a busy machine changes nothing; MiB are the largest
resident set of any of the commands. A command that fails, fails the whole. With ASAN_OPTIONS
set, ten times as much is allowed: the sanitizer slows everything down.
"""

import argparse
import os
import resource
import subprocess
import sys


def split_commands(words):
    commands = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--mib", type=float, required=True)
    words = sys.argv[1:]
    begin = words.index("--")
    limits = parser.parse_args(words[:begin])
    commands = split_commands(words[begin:])
    if not commands:
        sys.exit("within.py: no command")
    for command in commands:
        subprocess.run(command, check=True)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = usage.ru_utime + usage.ru_stime
    mib = usage.ru_maxrss / 1024
    print(f"{len(commands)} commands: {seconds:.2f} s of processor time, {mib:.0f} MiB")
    factor = 10 if "ASAN_OPTIONS" in os.environ else 1
    if seconds > limits.seconds * factor or mib > limits.mib * factor:
        sys.exit(f"more than {limits.seconds * factor} s or {limits.mib * factor} MiB")


if __name__ == "__main__":
    main()
