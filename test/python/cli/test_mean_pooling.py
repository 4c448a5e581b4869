"""--mean-pooling says the ids per sample of each feature once."""

import pytest

from support.commands import make_runner


@pytest.mark.parametrize("command", [["plan"], ["compare", "--torchrec"]], ids=" ".join)
@pytest.mark.parametrize("feature, shown", [("", "all"), ("item=", "feature 'item'")])
def test_two_numbers_are_refused(capsys, monkeypatch, tmp_path, command, feature, shown):
    monkeypatch.chdir(tmp_path)
    run = make_runner(capsys, tmp_path)
    (tmp_path / "model.py").write_text("import torch\n"
                                       "def model():\n"
                                       "    return torch.nn.EmbeddingBag(300, 8, mode='sum', device='meta')\n")
    twice = run(*command, "model.py:model", "--topology", "2xCPU", "--batch", 64,
                "--mean-pooling", f"{feature}5", "--mean-pooling", f"{feature}6")
    assert twice.code == 1 and f"--mean-pooling: expected one number for {shown}, found 5 and 6" in twice.err
