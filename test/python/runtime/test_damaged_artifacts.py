"""neuroshard-run on artifacts with changed, lost or exchanged files: one error that names the file,
never a crash or other results. With hashes that fit, what the manifest says of functions is held
to its tables and exchanges."""

import json
import os
import pathlib
import platform
import random
import shutil

import pytest

from support import artifact, matrix, sealing

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
MODEL = """
!ids = !neuroshard.jagged<["user", "item"], i64>
!seen = !neuroshard.jagged<["seen"], i32, weighted>
module {
  neuroshard.table private @user : 50 x 8 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  neuroshard.table private @item : 20 x 4 x f32 {optimizer = #neuroshard.optimizer<adam>}
  // A training step takes the ids in another order.
  func.func @forward(%seen: !seen, %ids: !ids, %dense: tensor<?x4xf32>)
      -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x8xf32>
    %i = neuroshard.lookup mean @item[%ids, "item"] : !ids -> tensor<?x4xf32>
    %s = neuroshard.lookup sum @item[%seen, "seen"] : !seen -> tensor<?x4xf32>
    return %u, %i, %s, %dense
        : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return artifact.compile_text(MODEL, tmp_path_factory.mktemp("damaged") / "model", "--topology",
                                 "2xCPU", "--batch", "8", "--training", "--reference", "-O", "0")


@pytest.fixture
def folder(compiled, tmp_path):
    return shutil.copytree(compiled, tmp_path / "artifact")


def run(folder):
    """(exit code, standard error) of a step."""
    return artifact.run_tool("neuroshard-run", folder, "--batch", "8", "--steps", "1", "--train",
                             "--tolerance", "1e-3", "--threads", "1")


def test_an_unchanged_artifact_runs(folder):
    assert run(folder) == (0, "")
    sealing.seal(folder)
    assert run(folder) == (0, "")


@pytest.mark.parametrize("name", ["manifest.json", "program0.so", "reference.so"])
def test_a_damaged_file_is_one_error(folder, name):
    whole = (folder / name).read_bytes()
    chooser = random.Random(matrix.seed())
    places = [0, len(whole) - 1, *(chooser.randrange(len(whole)) for _ in range(100 if ALL else 5))]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << chooser.randrange(8)
        (folder / name).write_bytes(changed)
        code, message = run(folder)
        assert code == 1 and message.count("\n") == 1, (place, message)
        assert f"{name}'" in message and message.endswith("compile the model again\n")
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        (folder / name).write_bytes(whole[:length])
        code, message = run(folder)
        assert code == 1 and f"{name}'" in message, length


@pytest.mark.parametrize("name", ["program0.so", "reference.so"])
def test_a_file_of_another_compilation_is_refused(folder, name, tmp_path):
    other = artifact.compile_text(MODEL.replace("adam", "sgd"), tmp_path / "other", "--topology",
                                  "2xCPU", "--batch", "8", "--training", "--reference", "-O", "0")
    shutil.copy(other / name, folder / name)
    code, message = run(folder)
    assert code == 1
    assert f"{name}' is not the file that manifest.json was written with" in message


def places_of(value, path=()):
    if path:
        yield path
    pairs = (value.items() if isinstance(value, dict) else enumerate(value)
             if isinstance(value, list) else ())
    for key, one in pairs:
        yield from places_of(one, (*path, key))


def mutations(manifest):
    """(what, manifest) with one value of the functions changed, lost, doubled or in another
    place."""
    for root in (("functions",), ("reference",)):
        for path in places_of(manifest[root[0]], root):
            for change in ("drop", "double", "reverse", None, -1, 0, 2**40, "f16", "i32", [], {},
                           [-1, 4, 1], [4], True):
                changed = json.loads(json.dumps(manifest))
                parent = changed
                for step in path[:-1]:
                    parent = parent[step]
                before, last = parent[path[-1]], path[-1]
                if change == "drop":
                    del parent[last]
                elif change == "double" and isinstance(parent, list):
                    parent.insert(last, before)
                elif change == "reverse" and isinstance(before, list):
                    parent[last] = before[::-1]
                elif change not in ("double", "reverse"):
                    parent[last] = change
                if changed != manifest:
                    yield f"{path}: {change}", changed


def test_functions_that_do_not_fit_are_refused(folder):
    chooser = random.Random(matrix.seed())
    manifest = sealing.read_manifest(folder)
    ran = 0
    for what, changed in mutations(manifest):
        if not ALL and chooser.random() > 0.06:
            continue
        sealing.write_manifest(folder, changed)
        code, message = run(folder)
        assert code in (0, 1), (what, code, message)
        assert code == 0 or message.startswith("neuroshard-run: ") and len(message) < 2000, what
        ran += 1
    assert ran > 50


# The programs of one model, and the reference of another

HALF = """
!ids = !neuroshard.jagged<["f"], i64>
module {{
  neuroshard.table private @t : 50 x 8 x {type} {{optimizer = #neuroshard.optimizer<{optimizer}>}}
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {{
    %r = neuroshard.lookup {pooling} @t[%ids, "f"] : !ids -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }}
}}
"""


def compile_half(folder, type, optimizer, wire="f32", pooling="sum"):
    return artifact.compile_text(
        HALF.format(type=type, optimizer=optimizer, pooling=pooling), folder, "--topology", "2xCPU",
        "--batch", "96", "--wire-type", wire, "--training", "--reference", "-O", "0")


def train(folder, *options):
    return artifact.run_tool("neuroshard-run", folder, "--batch", "96", "--steps", "3", "--pooling",
                             "5", "--train", "--threads", "1", *options)


@pytest.mark.parametrize("type", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("right", "wrong"), [
    ("sgd", "sgd, weight_decay = 0.25"), ("adagrad", "adagrad, eps = 1.0"),
    ("rowwise_adagrad", "rowwise_adagrad, eps = 1.0"), ("adam", "adam, beta2 = 0.5")])
def test_tables_of_every_type_are_compared(tmp_path, type, right, wrong):
    folder = compile_half(tmp_path / "right", type, right)
    assert train(folder) == (0, "")
    other = compile_half(tmp_path / "wrong", type, wrong)
    shutil.copy(other / "reference.so", folder)
    sealing.seal(folder)
    code, message = train(folder)
    assert code == 1 and "the result differs from the unsharded program" in message


@pytest.mark.parametrize("wire", ["f16", "bf16", "f32/bf16"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_narrow_gradients_are_right(tmp_path, wire, optimizer, pooling):
    folder = compile_half(tmp_path / "model", "f32", optimizer, wire, pooling)
    for seed in range(matrix.seed(), matrix.seed() + 5):
        assert train(folder, "--seed", str(seed)) == (0, "")


# Code for another CPU

def lacks(instructions):
    return platform.machine() == "x86_64" and instructions not in \
        pathlib.Path("/proc/cpuinfo").read_text().split()


@pytest.mark.skipif(not lacks("xop"), reason="needs x86-64, and a CPU without the instructions XOP")
def test_code_for_another_cpu_is_refused(tmp_path):
    folder = artifact.compile_text(
        MODEL, tmp_path / "model", "--topology", "2xCPU", "--batch", "8", "--training",
        "--reference", "-O", "0", "--target-cpu", "bdver4")
    code, message = run(folder)
    assert code == 1
    assert message.startswith("neuroshard-run: the artifact is compiled for the CPU bdver4 and uses ")
    assert "xop" in message and message.count("\n") == 1
    assert "lacks; compile it on this machine, or elsewhere with --target-cpu x86-64" in message


def test_code_for_this_cpu_runs(tmp_path):
    folder = artifact.compile_text(
        MODEL, tmp_path / "model", "--topology", "2xCPU", "--batch", "8", "--training",
        "--reference", "-O", "0", "--target-cpu", "x86-64")
    assert sealing.read_manifest(folder)["target_features"] == []
    assert run(folder) == (0, "")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")
def test_instructions_that_flush_denormals_are_not_used(tmp_path):
    """AVX512-BF16 rounds denormals to zero, which other CPUs do not."""
    folder = artifact.compile_text(
        MODEL, tmp_path / "model", "--topology", "2xCPU", "--batch", "8", "--training",
        "--reference", "-O", "0", "--target-cpu", "sapphirerapids")
    features = sealing.read_manifest(folder)["target_features"]
    assert "avx512f" in features and "avx512bf16" not in features
