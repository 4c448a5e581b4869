"""Child processes that leave no process behind, whatever ends them or their parent.

Each of our programs asks to be killed with its parent, so a chain of them ends from any link on;
the processes of a section share a group besides."""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile

PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Has the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, environment=None, **options):
    return subprocess.Popen(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL,
                            **options)


def end(process, group=False):
    """Kills a child, with `group` the whole process group that it leads. Waits for a limited time,
    since a process that hangs in a driver may not end at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)


def run_child(command, limit_s, environment=None):
    """(exit code, output) of a command; the code is None if it was ended after limit_s."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = start(command, environment, stdout=output, stderr=output)
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process)
        output.seek(0)
        return code, output.read()
