#!/usr/bin/env python3
"""Checks the machine code of generated GPU kernels against limits.

usage: tools/gpu/check_sass.py FILE.cubin...

Prints, for each kernel, what it occupies and which memory instructions it is made of, and
exits with 1 if a kernel breaks a limit of LIMITS. Needs cuobjdump and nvdisasm
(tools/dev/requirements/check.txt, or any CUDA toolkit)."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Limits:
    """The most that a kernel may use. Blocks have 256 threads and a multiprocessor has
    65,536 registers, so 64 of them allow 32 warps at a time and 128 allow 16."""

    registers: int
    stack_bytes: int = 0
    local_instructions: int = 0
    shared_bytes: int = 0
    barriers: int = 0


# Updates have 80 registers, or half of the warps. What does not fit are mostly numbers of the loop
# over runs; Adam on rows with idle lanes keeps most.
SPILLS = {"stack_bytes": 104, "local_instructions": 72}

# No kernel needs shared memory or a barrier: warps work by themselves.
LIMITS = {
    "nsg_lookup": Limits(registers=80),
    "nsg_weight_gradient": Limits(registers=80),
    "nsg_expand": Limits(registers=64),
    "nsg_ranges": Limits(registers=32),
    "nsg_find_places": Limits(registers=32),
    "nsg_partials": Limits(registers=80),
    "nsg_update": Limits(registers=128, **SPILLS),
    "nsg_reduce": Limits(registers=128, **SPILLS),
    "nsg_apply": Limits(registers=128),
    "nsg_move_rows": Limits(registers=64),
    "nsg_move_scaled_rows": Limits(registers=80),
    "nsg_add_up": Limits(registers=64),
    "nsg_check_offsets": Limits(registers=32),
    "nsg_trust_offsets": Limits(registers=32),
    "nsg_count_bags": Limits(registers=64),
    "nsg_pack_ids": Limits(registers=64),
    "nsg_add_values": Limits(registers=32),
    "nsg_divide_values": Limits(registers=32),
    "nsg_update_by_sums": Limits(registers=128),
}


class ToolError(Exception):
    """A tool that is missing or failed; the text says what to do."""


@dataclass
class Kernel:
    """The resources of one kernel of a cubin."""

    name: str
    registers: int
    stack_bytes: int
    shared_bytes: int
    # How often each instruction of memory or synchronisation is in the code, by its opcode
    # with the modifiers that matter: LDG.128.CONSTANT, STG.32, SHFL.BFLY, LDL, BAR.
    instructions: Counter = field(default_factory=Counter)

    @property
    def base_name(self):
        """The name without the number of a body: nsg_update of nsg_update_3."""
        return re.sub(r"_\d+$", "", self.name)

    def count(self, *prefixes):
        return sum(number for opcode, number in self.instructions.items()
                   if opcode.split(".")[0] in prefixes)


def find_tool(name):
    """Path of a CUDA tool: beside the nvcc of build/venv, on PATH, or in /usr/local/cuda."""
    for folder in sorted(ROOT.glob("build/venv/lib/python3.*/site-packages/nvidia/cu13/bin")):
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if not found:
        raise ToolError(f"{name} was not found in build/venv, on PATH or in /usr/local/cuda/bin; "
                        "tools/dev/requirements/check.txt names its package")
    return found


def run_cuobjdump(option, path):
    tool = find_tool("cuobjdump")
    # cuobjdump looks for nvdisasm on PATH.
    environment = {**os.environ, "PATH": f"{Path(tool).parent}:{os.environ.get('PATH', '')}"}
    done = subprocess.run([tool, option, str(path)], capture_output=True, text=True, check=False,
                          env=environment, timeout=120)
    if done.returncode:
        raise ToolError(f"cuobjdump {option} failed on {path}: {done.stderr.strip()}")
    return done.stdout


def read_usage(text):
    """Kernels of `cuobjdump --dump-resource-usage`."""
    kernels = {}
    for name, facts in re.findall(r"Function (\S+?):\s*\n\s*(REG:.*)", text):
        values = dict(re.findall(r"([A-Z]+):(\d+)", facts))
        kernels[name] = Kernel(name, int(values["REG"]), int(values["STACK"]),
                               int(values["SHARED"]))
    return kernels


MEMORY = {"LDG", "STG", "LD", "ST", "LDL", "STL", "LDS", "STS", "ATOM", "ATOMG", "ATOMS", "RED",
          "REDG", "SHFL", "BAR", "WARPSYNC"}
MODIFIERS = {"64", "128", "U8", "U16", "S8", "S16", "CONSTANT", "BFLY", "IDX", "UP", "DOWN"}


def classify(opcode):
    """LDG.E.128.CONSTANT -> LDG.128.CONSTANT; None for opcodes that are not counted."""
    base, *modifiers = opcode.split(".")
    if base not in MEMORY:
        return None
    kept = [modifier for modifier in modifiers if modifier in MODIFIERS]
    if base in ("LDG", "STG") and not set(kept) & {"64", "128", "U8", "U16", "S8", "S16"}:
        kept.insert(0, "32")
    return ".".join([base, *kept])


def read_code(text, kernels):
    """Counts the instructions of `cuobjdump -sass`."""
    current = None
    for line in text.splitlines():
        if function := re.search(r"Function : (\S+)", line):
            current = kernels.get(function[1])
        elif current and (code := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)",
                                           line)):
            if opcode := classify(code[1]):
                current.instructions[opcode] += 1


def inspect(path):
    """The kernels of a cubin."""
    kernels = read_usage(run_cuobjdump("--dump-resource-usage", path))
    if not kernels:
        raise ToolError(f"{path} has no kernel; expected a cubin")
    read_code(run_cuobjdump("-sass", path), kernels)
    return list(kernels.values())


def violations(kernel):
    """One sentence for each limit that a kernel breaks."""
    limits = LIMITS.get(kernel.base_name)
    if limits is None:
        return [f"{kernel.name}: a kernel without limits; add it to LIMITS"]
    used = {
        "registers": (kernel.registers, limits.registers),
        "bytes of stack": (kernel.stack_bytes, limits.stack_bytes),
        "instructions on local memory": (kernel.count("LDL", "STL"), limits.local_instructions),
        "bytes of shared memory": (kernel.shared_bytes, limits.shared_bytes),
        "barriers": (kernel.count("BAR"), limits.barriers),
    }
    return [f"{kernel.name}: {number} {what}, at most {limit} allowed"
            for what, (number, limit) in used.items() if number > limit]


def table(rows):
    """Markdown of (file, Kernel) pairs."""
    lines = ["| file | kernel | registers | stack | shared | local | barriers | memory instructions |",
             "|---|---|---:|---:|---:|---:|---:|---|"]
    for path, kernel in rows:
        code = ", ".join(f"{number} {opcode}"
                         for opcode, number in sorted(kernel.instructions.items()))
        lines.append(f"| {path.name} | {kernel.name} | {kernel.registers} | {kernel.stack_bytes} "
                     f"| {kernel.shared_bytes} | {kernel.count('LDL', 'STL')} "
                     f"| {kernel.count('BAR')} | {code} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubins", nargs="+", type=Path, metavar="FILE.cubin")
    arguments = parser.parse_args()
    try:
        rows = [(path, kernel) for path in arguments.cubins for kernel in inspect(path)]
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(rows))
    found = [f"{path.name}: {text}" for path, kernel in rows for text in violations(kernel)]
    for text in found:
        print(f"error: {text}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
