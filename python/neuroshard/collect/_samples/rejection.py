"""When a measured exchange is rejected, as disturbed by something else on the machines."""

import numpy as np

# The rejection rule uses the reference exchange and the spread of a sample's runs, never a
# prediction.
REFERENCE_LIMIT = 2.0
SPREAD_LIMIT = 1.0
RULE = (f"a reference exchange beside the sample takes over {REFERENCE_LIMIT:g} x the median "
        "of those among as many devices, or the quartiles of the slowest device's runs lie "
        f"over {SPREAD_LIMIT:g} x their median apart")


def rejections(samples):
    """For each sample of a file, whether the rule rejects it."""
    medians = {}
    for sample in samples:
        medians.setdefault(sample.topology, []).extend(
            [sample.reference_before_ms, sample.reference_after_ms])
    medians = {topology: np.median(times) for topology, times in medians.items()}
    return [max(sample.reference_before_ms, sample.reference_after_ms)
            > REFERENCE_LIMIT * medians[sample.topology]
            or sample.spreads[np.argmax(sample.times_ms)] > SPREAD_LIMIT
            for sample in samples]
