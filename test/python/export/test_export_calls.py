"""A program called from several threads, and closed meanwhile."""

import neuroshard
import pytest
import torch
from export_cases import case
from support.threads import in_threads


class Ranker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(50, 4, mode="sum", include_last_offset=True)

    def forward(self, ids, offsets):
        return self.rows(ids, offsets[0])


@pytest.fixture
def exported(generator):
    model, batch = case("deepfm")
    return model, neuroshard.export(model, batch(4, generator)), batch


def test_calls_from_threads(exported, generator):
    model, exported, batch = exported
    batches = [batch(size, generator) for size in (64, 3, 40, 7) * 4]
    with exported.open(devices=2) as program, torch.no_grad():
        for got, arguments in zip(in_threads(program, batches, limit_s=60), batches, strict=True):
            torch.testing.assert_close(got, model(*arguments), rtol=1e-4, atol=1e-4)


def test_calls_with_other_arguments_say_which():
    model = Ranker().eval()
    exported = neuroshard.export(model, (torch.arange(6), [torch.tensor([0, 2, 4, 6])]))
    with exported.open() as program:
        ids = torch.arange(6)
        for given, names, text in (((ids,), {}, "expected 2 by position, found 1 by position$"),
                                   ((ids,), {"offsets": None}, "found 1 by position and offsets by name$"),
                                   ((ids, ids), {}, r"were: argument 1: expected .*list.*, found \*")):
            with pytest.raises(ValueError, match=text):
                program(*given, **names)


def test_close_during_calls(exported, generator):
    model, exported, batch = exported
    arguments = batch(2000, generator)
    with torch.no_grad():
        expected = model(*arguments)["logit"]
    program = exported.open(devices=2)

    def call_or_close(number):
        return program.close() if number == 4 else program(*arguments)

    results = in_threads(call_or_close, [(number,) for number in range(8)], limit_s=60)
    for number, one in enumerate(results):
        if isinstance(one, dict):
            torch.testing.assert_close(one["logit"], expected, rtol=1e-4, atol=1e-4)
        elif number != 4:
            assert "the program has been closed" in str(one), one
    with pytest.raises(ValueError, match="the program has been closed"):
        program(*arguments)
