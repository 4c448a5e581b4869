"""Fuzzes the reader of checkpoints that others may have written: .metadata, and the values that
are no tensors. Whatever they hold, load() ends or raises a CheckpointError, and runs no code."""

import codecs
import io
import os
import struct
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

import loop
import pickles
from neuroshard.distributed._checkpoint import checkpoint, plain_data
from neuroshard.errors import CheckpointError

METADATA, VALUES = ".metadata", "__0_0.distcp"
# What unpickling must not do, by the names of Python's audit events.
FORBIDDEN = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "exec", "os.remove",
             "os.mkdir", "socket.connect"}


def target():
    """What is loaded; the seeds hold the same."""
    return {"w": torch.zeros(4, 3), "n": 0, "state": {"step": 0, "rates": [0.5]}}


class Named(io.BytesIO):
    name = METADATA


def holds_records(metadata):
    try:
        plain_data.read_records(Named(metadata))
    except ValueError as error:  # load() makes it a CheckpointError
        if isinstance(error.__cause__, MemoryError):
            raise
        return False
    return True


class Reader:
    def __init__(self, folder):
        self.folder, self.is_reading = folder, False
        dcp.save({"w": torch.ones(4, 3), "n": 5, "state": {"step": 7, "rates": [0.25, None, "x"]}},
                 checkpoint_id=folder)
        self.metadata = (folder / METADATA).read_bytes()
        self.values = (folder / VALUES).read_bytes()
        # What is imported when it is first needed runs code, too.
        checkpoint.load(folder, target())
        codecs.lookup("raw_unicode_escape")
        sys.addaudithook(self.watch)

    def watch(self, event, arguments):
        if self.is_reading and event in FORBIDDEN:
            os.write(2, f"broken promise: a checkpoint ran {event} {arguments}\n".encode())
            os.abort()

    def make(self, random):
        """The length of the metadata, metadata, values."""
        metadata, values = self.metadata, bytearray(self.values)
        if random.random() < 0.8:
            metadata = pickles.change(metadata, random)
        else:
            for _ in range(random.randint(1, 4)):
                values[random.randrange(len(values))] = random.randrange(256)
        return struct.pack("<Q", len(metadata)) + metadata + bytes(values)

    def read(self, data):
        size = struct.unpack_from("<Q", data)[0]
        metadata, values = data[8:8 + size], data[8 + size:]
        self.is_reading = True
        try:
            if not holds_records(metadata):
                return
            (self.folder / METADATA).write_bytes(metadata)
            (self.folder / VALUES).write_bytes(values)
            checkpoint.load(self.folder, target())
        finally:
            self.is_reading = False


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        reader = Reader(Path(place) / "seed")
        loop.main(reader.make, reader.read, CheckpointError)
