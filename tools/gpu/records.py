"""Results on disk as they come, so that a run that was cut off goes on where it was."""

import json
from pathlib import Path


class Records:
    """Named results of one section: a line of JSON each. A name given twice counts last."""

    def __init__(self, path):
        self.path = Path(path)
        self.items = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the line that was being written when the run was ended
                self.items[record.pop("name")] = record

    def __contains__(self, name):
        return name in self.items

    def add(self, name, **values):
        self.items[name] = values
        with self.path.open("a") as file:
            file.write(json.dumps({"name": name, **values}) + "\n")
            file.flush()


class Context:
    """What a section is given."""

    def __init__(self, artifacts, out, dry):
        self.artifacts, self.out, self.dry = Path(artifacts), Path(out), dry

    def records(self, section):
        return Records(self.out / f"{section}.jsonl")

    def catalogue(self, name):
        """A list that tools/gpu/prepare left beside the artifacts."""
        path = self.artifacts / f"{name}.json"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: make the artifacts with tools/gpu/prepare")
        return json.loads(path.read_text())
