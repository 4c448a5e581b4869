"""Every fuzz target runs on its seeds and on a number of inputs made from them by the seed of the
check, and finds nothing."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "dev"))
import fuzz  # noqa: E402

BUILD = Path(os.environ["NEUROSHARD_BUILD_DIR"])
SEED = int(os.environ.get("NEUROSHARD_SEED", "1")) % (1 << 31) or 1
# A check with --all tries so many times more.
FACTOR = 20 if os.environ.get("NEUROSHARD_ALL") else 1


def run(name, place, *options):
    command = fuzz.command_of(name, BUILD, options, place)
    if not Path(command[0]).exists():
        pytest.skip("the compiler has no libFuzzer")
    return subprocess.run([str(part) for part in command], env=fuzz.environment(BUILD),
                          capture_output=True, text=True)


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_target(name, tmp_path):
    if (fuzz.SCRIPTS / f"{name}.py").exists() and not importlib.util.find_spec("torch"):
        pytest.skip("it reads what PyTorch writes")
    inputs = FACTOR * fuzz.TARGETS[name].checked_inputs
    done = run(name, tmp_path, f"-runs={inputs}", f"-seed={SEED}", "-keep_seed=1")
    found = [path.read_bytes()[:2000] for path in (tmp_path / "findings").iterdir()]
    assert done.returncode == 0, f"{done.stderr[-4000:]}\n{done.stdout[-2000:]}\n{found}"
    assert f"Done {inputs} runs" in done.stderr + done.stdout


def test_the_package_is_that_of_the_build(monkeypatch):
    """Whatever else the user has on PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert fuzz.environment(BUILD)["PYTHONPATH"] == f"{BUILD / 'python'}{os.pathsep}/elsewhere"


def test_every_target_is_listed():
    """What test/Fuzz has, tools/dev/fuzz.py runs."""
    listing = (ROOT / "test" / "Fuzz" / "CMakeLists.txt").read_text()
    built = {line.split("(")[1].split()[0] for line in listing.splitlines()
             if line.lstrip().startswith("neuroshard_add_fuzz_target(")}
    scripts = {path.stem for path in fuzz.SCRIPTS.glob("*.py")
               if "loop.main(" in path.read_text()}
    assert built | scripts == set(fuzz.TARGETS)
