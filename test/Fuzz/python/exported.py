"""Fuzzes the reader of exported models: path.json with a checksum that is right, so that what it
describes is read. The programs beside it are code, and stay as they are."""

import copy
import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

import documents
import loop
import neuroshard
from neuroshard.export import ExportError
from neuroshard.export._files import checksums


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.EmbeddingBag(50, 8, mode="sum", include_last_offset=True)
        self.top = nn.Linear(8 + 3, 1)

    def forward(self, dense, ids, offsets):
        return self.top(torch.cat([dense, self.user(ids, offsets)], 1))


def reading_once(load):
    """torch.export.load, which takes most of the time, for files that stay as they are."""
    programs = {}

    def load_copy(path):
        if path not in programs:
            programs[path] = load(path)
        program = programs[path]
        return SimpleNamespace(graph_signature=program.graph_signature,
                               graph_module=copy.deepcopy(program.graph_module))

    return load_copy


class Reader:
    def __init__(self, folder):
        batch = torch.zeros(4, 3), torch.arange(6), torch.tensor([0, 1, 3, 3, 6])
        self.path = folder / "model"
        neuroshard.export(Model().eval(), batch, optimizer="adagrad").save(self.path, weights=True)
        self.file = self.path.with_name("model.json")
        self.record = json.loads(self.file.read_text())
        del self.record["checksum"]
        torch.export.load = reading_once(torch.export.load)

    def make(self, random):
        record = documents.change(self.record, random)
        if isinstance(record, dict):
            record["checksum"] = checksums._checksum(record)
        return json.dumps(record).encode()

    def read(self, data):
        self.file.write_bytes(data)
        neuroshard.load_export(self.path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        reader = Reader(Path(place))
        loop.main(reader.make, reader.read, ExportError)
