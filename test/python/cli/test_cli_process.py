"""The command neuroshard as a process: exit codes, pipes, Ctrl-C, completion, what is missing."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import neuroshard as ns
import neuroshard.cli
from neuroshard import cuda
from neuroshard._native import binaries
from neuroshard._native.torch_version import TORCH, TORCHREC
from neuroshard.cli._analysis.installation_checks import gpu_library
from support.commands import make_runner
from support.planning import ROOT, small_problem

COMMAND = [sys.executable, "-m", "neuroshard"]
LIMIT_S = 600
HEAVY = ("torch", "torchrec")
# Importing torch and torchrec takes a while.
WITHOUT_TORCH = ("import sys; sys.modules.update(torch=None, torchrec=None)\n"
                 "from neuroshard.cli import main; sys.exit(main(sys.argv[1:]))")


def environment(**changes):
    build = os.path.join(os.environ["NEUROSHARD_BUILD_DIR"], "python")
    return {**os.environ, "PYTHONPATH": build, **changes}


def run(*arguments, **options):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=LIMIT_S,
                          env=options.pop("env", environment()), **options)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_problem().save(tmp_path / "small.json")


def test_exit_codes():
    assert run("plan", "small.json").returncode == 0
    wrong = run("plan", "none.json")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "error: there is no file none.json; expected a workload\n"
    assert run("plan").returncode == 2


def test_output_without_a_terminal_is_plain():
    done = run("plan", "small.json")
    assert "\x1b" not in done.stdout and done.stderr == ""


def test_characters_that_stdout_lacks_are_shown_as_escapes(tmp_path):
    ns.ShardingProblem(tables=[ns.Table("usér→", 100, 8)], features=[ns.Feature("f", "usér→")],
                       batch=64, topology="2xCPU@1GiB").save(tmp_path / "names.json")
    done = run("explain", "names.json", "-t", "usér→", env=environment(PYTHONIOENCODING="ascii"))
    assert (done.returncode, done.stderr) == (0, "") and "us\\xe9r\\u2192" in done.stdout


HOSTILE = "a\x1b[31m\x07\u202e\u2066"
CONTROLS = set("\x1b\x07\u202e\u2066")
SHOWN = "a\\x1b[31m\\x07\\u202e\\u2066"


def test_control_characters_of_names_are_shown():
    problem = small_problem()
    problem = problem.replace(
        tables=[one.replace(name=HOSTILE + one.name, dim=128) for one in problem.tables],
        features=[one.replace(table=HOSTILE + one.table) for one in problem.features])
    problem.save("hostile.json")
    for arguments in (["plan", "hostile.json", "--html", "report.html", "-o", "plan.json"],
                      ["explain", "hostile.json", "plan.json"],
                      ["explain", "small.json", "plan.json"]):
        done = run(*arguments)
        assert SHOWN in done.stdout + done.stderr, done
        assert not CONTROLS & set(done.stdout + done.stderr)
    with open("report.html", encoding="utf-8") as page:
        text = page.read()
    assert SHOWN in text and not CONTROLS & set(text)
    plan = neuroshard.Plan(device_count=1, shards=[
        neuroshard.Shard(table=HOSTILE, rows=(0, 1), cols=(0, 1), devices=0)])
    assert "a\\x1b[31m" in str(plan) and not CONTROLS & set(str(plan))


def test_control_characters_of_arguments_are_shown():
    for arguments in (["plan", "small.json", "--no\x1b[31m\u202e"], ["what\x1b[31m\u202e"], ["plan", "no\x1b[31m\u202e.json"],
                      ["plan", "small.json", "--topology", "8x\x1b[31m\u202e"]):
        done = run(*arguments)
        assert done.returncode and "\\x1b[31m\\u202e" in done.stderr, done
        assert not CONTROLS & set(done.stderr)


def test_long_names_are_shortened_in_errors():
    name = "n" * 5000
    small_problem().replace(topology=None).save("long.json")
    plain = json.loads(Path("long.json").read_text())
    plain["features"][0]["table"] = name
    Path("long.json").write_text(json.dumps(plain))
    for arguments in (["plan", "long.json", "--topology", "2xCPU"], ["plan", f"{name}.json"],
                      ["plan", "small.json", "--topology", f"2x{name}"], [name]):
        done = run(*arguments)
        assert done.returncode and "n" * 100 + "..." in done.stderr and len(done.stderr) < 1500, done


@pytest.mark.parametrize("arguments", [["plan", "small.json"], ["plan", "small.json", "--json"],
                                       ["completion", "bash"], ["--version"]])
def test_a_full_disk(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT_S, env=environment())
    assert (done.returncode, done.stderr) == (
        1, "error: cannot write the output: No space left on device\n")


def in_shell(command, redirections):
    return subprocess.run(f"{command} {redirections}", shell=True, executable="/bin/bash",
                          capture_output=True, text=True, timeout=LIMIT_S, env=environment())


def plain_doctor(folder):
    """The command line of a doctor without the packages of the other commands."""
    (folder / "plain.py").write_text(
        "import sys; sys.modules.update(torch=None, torchrec=None, click=None)\n"
        "from neuroshard.cli import entry; sys.argv = ['neuroshard', 'doctor']; entry()\n")
    return f"{sys.executable} plain.py"


@pytest.mark.parametrize("arguments", ["plan small.json --json", "plan small.json -o new.json",
                                       "plan", "--version"])
def test_closed_streams(tmp_path, arguments):
    """Output that nobody can read is an error, and a message that nobody can read is none."""
    command = f"{' '.join(COMMAND)} {arguments}"
    expected = in_shell(command, "")
    closed = in_shell(command, ">&-")
    if expected.stdout:
        assert (closed.returncode, closed.stderr) == (
            1, "error: cannot write the output: Bad file descriptor\n")
    else:
        assert (closed.returncode, closed.stderr) == (expected.returncode, expected.stderr)
    silent = in_shell(command, "<&- 2>&-")
    # Behind its first lines are the seconds of the search.
    assert (silent.returncode, silent.stdout[:20]) == (expected.returncode, expected.stdout[:20])
    assert in_shell(command, "<&- >&- 2>&-").returncode == closed.returncode
    if "new.json" in arguments:
        assert json.loads((tmp_path / "new.json").read_text())


@pytest.mark.parametrize("redirection, reason", [
    (">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_the_plain_doctor_cannot_write(tmp_path, redirection, reason):
    done = in_shell(plain_doctor(tmp_path), redirection)
    assert (done.returncode, done.stderr) == (1, f"error: cannot write the output: {reason}\n")


def test_a_reader_that_leaves_hears_nothing():
    done = subprocess.run(f"{' '.join(COMMAND)} compare small.json --json | head -n 1",
                          shell=True, capture_output=True, text=True, timeout=LIMIT_S,
                          env=environment())
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_a_reader_that_leaves_the_plain_doctor(tmp_path):
    done = in_shell(f"set -o pipefail; {plain_doctor(tmp_path)}", "| true")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("code, arguments", [
    # Ends a search, and a function of the user.
    ("import neuroshard as ns\ndef build():\n    print('ready', flush=True)\n"
     f"    return ns.ShardingProblem.load({str(ROOT / 'workloads/synthetic_jumbo.json')!r})\n",
     ["plan", "user.py:build", "--topology", "256xH200"]),
    ("import time\ndef build():\n    print('ready', flush=True)\n    time.sleep(99)\n",
     ["profile", "small.json", "user.py:build"])])
def test_ctrl_c(tmp_path, code, arguments):
    (tmp_path / "user.py").write_text(code)
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    # Behind the ^C of a terminal a new line begins.
    assert (process.returncode, out, err) == (130, "", "\ninterrupted\n")


def test_words_are_completed():
    done = run(env=environment(_NEUROSHARD_COMPLETE="bash_complete", COMP_CWORD="1",
                               COMP_WORDS="neuroshard c"))
    assert done.stdout.split() == ["plain,compare", "plain,calibrate", "plain,completion"]
    done = run(env=environment(_NEUROSHARD_COMPLETE="bash_complete", COMP_CWORD="3",
                               COMP_WORDS="neuroshard plan --algorithm s"))
    assert done.stdout.split() == ["plain,size", "plain,size-lookup"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell, capsys, tmp_path):
    done = make_runner(capsys, tmp_path)("completion", shell)
    assert done.code == 0 and f"_NEUROSHARD_COMPLETE={shell}_complete" in done.out


def test_every_command_has_help(capsys, tmp_path):
    command = make_runner(capsys, tmp_path)
    from neuroshard.cli._app import COMMANDS

    for name in COMMANDS:
        done = command(name, "--help")
        assert done.code == 0 and f"Usage: neuroshard {name}" in done.out


def test_a_failure_of_ours_is_one_line_too(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("neuroshard.cli._input.input_files.load_plan", lambda path: {}["nothing"])
    done = make_runner(capsys, tmp_path)("explain", "small.json", "plan.json")
    assert done.code == 1 and done.err.startswith("error: KeyError: 'nothing' (")
    assert done.err.count("\n") == 1


def test_doctor_knows_this_build():
    found = json.loads(run("doctor", "--json").stdout)
    states = {one["part"]: one["state"] for one in found["checks"]}
    assert found["planner_works"]
    for part in ("neuroshard", "planner", "cost models", "command line", "torch", "torchrec"):
        assert states[part] == "ok", part
    for one in found["checks"]:
        assert one["advice"] or one["state"] == "ok"


def test_doctor_and_cuda_look_in_the_same_folders(monkeypatch, tmp_path):
    library = tmp_path / "lib64" / binaries.CUDA_LIBRARY
    library.parent.mkdir()
    library.write_text("no library")
    monkeypatch.setattr(binaries, "PACKAGE", tmp_path)
    monkeypatch.delenv("NEUROSHARD_CUDA_LIBRARY", raising=False)
    assert cuda.library_path() == str(library)
    assert gpu_library().state == "broken" and str(library) in gpu_library().what


def test_doctor_without_the_planner():
    # The sources alone: no compiled module, no models.
    sources = environment(PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, "doctor", "--json"], env=sources,
                          capture_output=True, text=True, timeout=LIMIT_S)
    found = {one["part"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert found["planner"]["state"] == "missing" and "pip install" in found["planner"]["advice"]
    assert found["cost models"]["state"] == "missing"
    assert found["torch"]["state"] == found["torchrec"]["state"] == "missing"
    for command in (("plan", "small.json"), ("calibrate", "use", "--workload", "small.json",
                                             "--plan", "plan", "-o", "m.json")):
        wrong = run(*command, env=sources)
        assert wrong.returncode == 1 and wrong.stderr.startswith("error: neuroshard.")
        assert "needs the compiled module" in wrong.stderr and "Traceback" not in wrong.stderr


def test_versions_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = extras["optional-dependencies"]["torchrec"]
    assert f"torch=={TORCH}.*" in wanted
    assert f"torchrec=={TORCHREC}.*" in wanted


def test_without_its_libraries(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(neuroshard.cli._process, "NEEDED",
                        {"click": "click", "no_such_module": "rich"})
    for module in HEAVY:
        monkeypatch.setitem(sys.modules, module, None)
    command = make_runner(capsys, tmp_path)
    done = command("plan", "small.json")
    assert (done.code, done.out) == (1, "")
    assert "needs rich: pip install \"neuroshard[cli]\"" in done.err
    doctor = command("doctor")
    assert doctor.code == 0
    assert "command line: missing: rich; pip install \"neuroshard[cli]\"" in doctor.out
