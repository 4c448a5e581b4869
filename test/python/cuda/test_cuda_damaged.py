"""Damaged, truncated, empty, swapped or missing files of an artifact: opening it on a GPU gives one
error that names the file, never a crash, a hang or other results."""

import json
import os
import random
import shutil

import pytest
import torch

import neuroshard as ns
from support import table_models as models
from neuroshard import cuda
from neuroshard.errors import Error
from support import matrix, sealing

pytestmark = models.usable()

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
PROGRAM, IMAGE, MANIFEST = "program0.gpu.json", "program0.emulated.so", "manifest.json"
X, W = ((torch.arange(8), torch.arange(9)),
        (torch.arange(4), torch.arange(5), torch.ones(4)))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Two artifacts of one model, which differ in an optimizer."""
    folder = tmp_path_factory.mktemp("cuda_damaged")
    return {kind: models.compiled(models.bags_model(kind), folder / kind)
            for kind in ("sgd", "adam")}


@pytest.fixture
def artifact(compiled, tmp_path):
    return shutil.copytree(compiled["sgd"], tmp_path / "artifact")


def refusal(artifact):
    """The error of both ways to open it."""
    texts = []
    for open_it in (lambda: cuda.Device(artifact), lambda: ns.EmbeddingTables(artifact, device="emulator")):
        with pytest.raises(Error) as error:
            open_it().close()
        texts.append(str(error.value))
    return texts[0]


def results(artifact):
    tables = ns.EmbeddingTables(artifact, device="emulator", learning_rate=0.5)
    found = models.train(tables, (X, W), {name: torch.ones(()) for name in tables.names})
    tables.check()
    found.update(models.all_arrays(tables))
    tables.close()
    return found


def places(size, count):
    """One place in each of `count` equal pieces of a file, drawn with the seed."""
    chooser = random.Random(matrix.seed())
    step = size / count
    return [min(size - 1, int(step * (piece + chooser.random()))) for piece in range(count)]


def test_every_changed_byte_of_the_program_is_noticed(artifact):
    text = (artifact / PROGRAM).read_bytes()
    for place in range(len(text)) if ALL else places(len(text), 60):
        changed = bytearray(text)
        changed[place] ^= 1 << place % 8
        (artifact / PROGRAM).write_bytes(changed)
        with pytest.raises(cuda.CudaError, match=f"{PROGRAM}' is not the file that {MANIFEST} was "
                                                 "written with.*compile the model again"):
            cuda.Device(artifact)
    (artifact / PROGRAM).write_bytes(text)
    cuda.Device(artifact).close()


def test_every_changed_byte_of_the_image_is_noticed(artifact):
    image = (artifact / IMAGE).read_bytes()
    for place in [0, len(image) - 1, *places(len(image), 400 if ALL else 40)]:
        changed = bytearray(image)
        changed[place] ^= 1 << place % 8
        (artifact / IMAGE).write_bytes(changed)
        with pytest.raises(cuda.CudaError, match=f"{IMAGE}' is not the file that {MANIFEST}"):
            cuda.Device(artifact)


@pytest.mark.parametrize("file", [PROGRAM, IMAGE])
def test_files_that_are_cut_short(file, artifact):
    whole = (artifact / file).read_bytes()
    for length in [0, 1, len(whole) - 1, *places(len(whole), 10)]:
        (artifact / file).write_bytes(whole[:length])
        assert f"{file}' is not the file" in refusal(artifact), length
    (artifact / file).write_bytes(whole + b"\0")
    assert f"{file}' is not the file" in refusal(artifact)


def test_swapped_bodies_are_refused(artifact):
    """Only the hash prevents that they give other results."""
    program = json.loads((artifact / PROGRAM).read_text())
    lookups = program["lookups"]
    other = next(one for one in lookups if one["mean_variant"] >= 0)
    other["variant"], other["mean_variant"] = other["mean_variant"], other["variant"]
    (artifact / PROGRAM).write_text(json.dumps(program))
    assert f"{PROGRAM}' is not the file" in refusal(artifact)


@pytest.mark.parametrize("file", [PROGRAM, IMAGE])
def test_files_of_another_compilation(file, artifact, compiled):
    shutil.copy(compiled["adam"] / file, artifact / file)
    text = refusal(artifact)
    assert f"{file}' is not the file" in text and "compile the model again" in text


def test_an_artifact_of_an_older_compiler(artifact):
    manifest = json.loads((artifact / MANIFEST).read_text())
    del manifest["files"][PROGRAM], manifest["xxh3"]
    (artifact / MANIFEST).write_text(sealing.sealed(json.dumps(manifest)))
    assert f"does not know {PROGRAM}" in refusal(artifact)
    manifest["schema"] = "neuroshard.manifest/3"  # which had no hash of its own
    (artifact / MANIFEST).write_text(json.dumps(manifest))
    text = refusal(artifact)
    assert "not as this version of neuroshard-compile wrote it" in text
    assert text.endswith("compile the model again")


@pytest.mark.parametrize("file", [MANIFEST, PROGRAM, IMAGE])
def test_what_is_no_file(file, artifact):
    path = artifact / file
    path.unlink()
    assert file in refusal(artifact)
    os.mkfifo(path)
    text = refusal(artifact)
    assert file in text and "pipe" in text
    path.unlink()
    path.mkdir()
    text = refusal(artifact)
    assert file in text and "directory" in text
    path.rmdir()
    path.symlink_to(path.name)  # to itself
    assert file in refusal(artifact)


# Behind the hash: what a manifest says must make sense, and then be what the module does.


def damaged_manifests(text):
    """(what, text) of manifests with one value changed or one piece lost."""
    chooser = random.Random(matrix.seed())
    for length in [0, 1, *places(len(text), 20)]:
        yield f"cut to {length}", text[:length]
    for place in places(len(text), 400 if ALL else 80):
        yield f"byte {place}", text[:place] + chr(chooser.randrange(32, 127)) + text[place + 1:]
    for value in ("[]", "{}", "null", "1", '"manifest"', "[" * 100000, "\0\0", "\ud7ff" * 5):
        yield f"all {value[:5]}", value
    plain = json.loads(text)
    for path in paths_of(plain):
        for value in (None, -1, 2**63, 1e300, "x", [], {}, True):
            if ALL or chooser.random() < 0.04:
                changed = json.loads(text)
                parent = changed
                for step in path[:-1]:
                    parent = parent[step]
                parent[path[-1]] = value
                yield f"{path} = {value!r}", json.dumps(changed)


def paths_of(value, path=()):
    if path:
        yield path
    pairs = (value.items() if isinstance(value, dict) else enumerate(value)
             if isinstance(value, list) else ())
    for key, one in pairs:
        yield from paths_of(one, (*path, key))


def test_damaged_manifests(artifact):
    text = sealing.unsealed((artifact / MANIFEST).read_text())
    before = results(artifact)
    for what, damaged in damaged_manifests(text):
        (artifact / MANIFEST).write_text(damaged)
        assert refusal(artifact), what
        (artifact / MANIFEST).write_text(sealing.sealed(damaged))
        try:
            tables = ns.EmbeddingTables(artifact, device="emulator", learning_rate=0.5)
        except Error as error:
            assert str(error) and len(str(error)) < 2000, what
            continue
        # Names, and what only the CPU reads, may be others.
        results_now = [tensor.shape for tensor in tables.weights.values()]
        assert results_now == [before[name].shape for name in models.ROWS], what
        tables.close()
