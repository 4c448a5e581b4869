"""Which samples of a batch each device gets."""

from __future__ import annotations

import torch

from neuroshard.export._run.ids import Jagged


def local_sizes(batch: int, devices: int) -> list[int]:
    """Samples of each device: the first (batch mod devices) devices get one more."""
    return [batch // devices + (rank < batch % devices) for rank in range(devices)]


def split_jagged(jagged: Jagged, features: int, devices: int) -> list[Jagged]:
    """Consecutive samples of all features for each device."""
    batch = (len(jagged.offsets) - 1) // features
    parts, begin = [], 0
    for size in local_sizes(batch, devices):
        bounds = [jagged.offsets[feature * batch + begin:feature * batch + begin + size + 1]
                  for feature in range(features)]
        spans = [slice(int(one[0]), int(one[-1])) for one in bounds]
        lengths = torch.cat([one.diff() for one in bounds])
        parts.append(Jagged(
            torch.cat([jagged.ids[span] for span in spans]),
            torch.nn.functional.pad(lengths.cumsum(0), (1, 0)),
            None if jagged.weights is None else torch.cat([jagged.weights[one] for one in spans])))
        begin += size
    return parts
