"""A program called from several threads, and closed meanwhile."""

import threading

import neuroshard
import pytest
import torch
from export_cases import case


@pytest.fixture
def exported(generator):
    model, batch = case("deepfm")
    return model, neuroshard.export(model, batch(4, generator)), batch


def in_threads(function, arguments):
    """The results or errors of the calls, in order."""
    results = [None] * len(arguments)

    def call(number, one):
        try:
            results[number] = function(*one)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=call, args=item) for item in enumerate(arguments)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive()
    return results


def test_calls_from_threads(exported, generator):
    model, exported, batch = exported
    batches = [batch(size, generator) for size in (64, 3, 40, 7) * 4]
    with exported.open(devices=2) as program, torch.no_grad():
        for got, arguments in zip(in_threads(program, batches), batches, strict=True):
            torch.testing.assert_close(got, model(*arguments), rtol=1e-4, atol=1e-4)


def test_close_during_calls(exported, generator):
    model, exported, batch = exported
    arguments = batch(2000, generator)
    with torch.no_grad():
        expected = model(*arguments)["logit"]
    program = exported.open(devices=2)

    def call_or_close(number):
        return program.close() if number == 4 else program(*arguments)

    results = in_threads(call_or_close, [(number,) for number in range(8)])
    for number, one in enumerate(results):
        if isinstance(one, dict):
            torch.testing.assert_close(one["logit"], expected, rtol=1e-4, atol=1e-4)
        elif number != 4:
            assert "the program has been closed" in str(one), one
    with pytest.raises(ValueError, match="the program has been closed"):
        program(*arguments)
