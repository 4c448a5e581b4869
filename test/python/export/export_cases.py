"""The models to export by name, with random weights."""

import torch
from torch import nn

from export_models import PLAIN


def case(name):
    """(model, batch function), of plain torch or "torchrec_" one of TorchRec."""
    if name.startswith("torchrec_"):
        from export_torchrec_models import TORCHREC
        kind = TORCHREC[name.removeprefix("torchrec_")]
    else:
        kind = PLAIN[name]
    torch.manual_seed(3)
    model = kind().eval()
    for parameter in model.parameters():  # so that no bias and no padding row is zero
        nn.init.normal_(parameter, std=0.5)
    return model, kind.batch
