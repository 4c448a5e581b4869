"""Times calls on a GPU, the contenders in turn."""

import math
import time

LEAST_SAMPLES, MOST_SAMPLES = 7, 40
# One sample takes at least this: events are exact to half a microsecond.
SAMPLE_MS, MOST_REPEATS = 2.0, 200


def time_in_turn(machine, calls, count, budget_s):
    """(samples, errors): milliseconds of one run for each of `calls` (name -> function with
    `count` runs in it), which take turns so that all meet the same clocks. Whoever fails is
    dropped."""
    samples, repeats, errors = {}, {}, {}
    for name, call in calls.items():
        try:
            call()
            once = machine.time_ms(call, 1)
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        samples[name] = []
        repeats[name] = 1 if machine.dry else min(MOST_REPEATS,
                                                  math.ceil(SAMPLE_MS / max(once, 1e-3)))
    begin = time.monotonic()
    for number in range(2 if machine.dry else MOST_SAMPLES):
        if number >= LEAST_SAMPLES and time.monotonic() - begin > budget_s:
            break
        for name in samples:
            if name in errors:
                continue
            try:
                took = machine.time_ms(calls[name], repeats[name])
            except Exception as error:
                errors[name] = f"{type(error).__name__}: {error}"[:300]
                continue
            samples[name].append(took / repeats[name] / count)
    return {name: found for name, found in samples.items() if found}, errors


def copy_bandwidth(machine, most_bytes=4 << 30):
    """Bytes per second, read and written, of device-to-device copies: all samples."""
    import torch
    size = 1 << 16 if machine.dry else min(most_bytes, machine.free_bytes() // 3)
    source = torch.empty(size, dtype=torch.uint8, device=machine.place).random_()
    target = torch.empty_like(source)
    samples, errors = time_in_turn(machine, {"copy": lambda: target.copy_(source)}, 1, 0.2)
    if errors:
        raise RuntimeError(errors["copy"])
    return [2 * size / (ms / 1e3) for ms in samples["copy"]]
