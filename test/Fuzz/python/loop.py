"""The loop of the fuzz targets in Python, with some of libFuzzer's options: -runs, -seed,
-max_total_time, -artifact_prefix, and files to run instead. Others are ignored.

An input is a pure function of seed and number. It is a finding if its reader raises anything but
its own error, asks for more memory than MEMORY_BYTES, takes longer than HANG_S, or ends the
program. `-first=N -runs=1` runs the input of that number again."""

import faulthandler
import random
import resource
import sys
import time
import traceback
from pathlib import Path

HANG_S = 120
MEMORY_BYTES = 2 << 30


def main(make, read, refusals):
    """make(random): an input of bytes. read(input): reads it, and may raise `refusals` alone."""
    flags = dict(one[1:].split("=", 1) for one in sys.argv[1:] if one.startswith("-"))
    files = [one for one in sys.argv[1:] if Path(one).is_file()]
    limit_memory()
    if files:
        for file in files:
            try_input(read, refusals, Path(file).read_bytes())
        print(f"Executed {len(files)} files")
        return
    seed = int(flags.get("seed", "0")) or random.randrange(1 << 32)
    first, runs = int(flags.get("first", "0")), int(flags.get("runs", "-1"))
    end = time.monotonic() + float(flags.get("max_total_time", "inf"))
    place = Path(flags.get("artifact_prefix", "") + "current")
    print(f"INFO: Seed: {seed}", flush=True)
    number = first
    while number - first != runs and time.monotonic() < end:
        data = make(random.Random(f"{seed} {number}"))
        place.write_bytes(data)  # for an input that ends the program
        try:
            try_input(read, refusals, data)
        except BaseException:
            traceback.print_exc()
            sys.exit(f"the input of -seed={seed} -first={number} is in {place}")
        number += 1
        if number % 1000 == 0:
            print(f"#{number - first}", flush=True)
    place.unlink(missing_ok=True)
    print(f"Done {number - first} runs")


def limit_memory():
    """Lets an allocation fail that goes far beyond what the program has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def try_input(read, refusals, data):
    """Reads an input. Lets errors through that are findings."""
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    try:
        read(data)
    except refusals as error:
        cause = error
        while cause:
            if isinstance(cause, MemoryError):
                raise
            cause = cause.__cause__ or cause.__context__
    finally:
        faulthandler.cancel_dump_traceback_later()
