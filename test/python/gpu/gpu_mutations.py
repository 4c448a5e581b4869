"""Breaks the GPU module of an artifact: removes or changes one thing in its IR, compiles that for
the emulator, and leaves the rest of the artifact as it is.

A mutation is a function of a kernel's text that lists the (begin, end, replacement) it could
make; each is one mutant."""

import json
import re
import shutil

from support import artifact
from support.mutants import llvm_tool, run

PROGRAM = "program0"


def compile_module(text, folder, library):
    """Compiles a GPU module in IR for the emulator, as neuroshard-compile does."""
    names = [folder / f"mutant.{kind}" for kind in ("mlir", "native.mlir", "ll", "bc", "o")]
    source, native, ir, optimized, code = names
    source.write_text(text)
    run(artifact.tool("neuroshard-opt"), source, "--neuroshard-emulate-gpu",
        "--neuroshard-native-pipeline=invoke-wrappers=true buffers=false", "-o", native)
    run(llvm_tool("mlir-translate"), "--mlir-to-llvmir", native, "-o", ir)
    run(llvm_tool("opt"), "-passes=default<O1>", "-mattr=+f16c", ir, "-o", optimized)
    run(llvm_tool("llc"), "-O1", "-filetype=obj", "-relocation-model=pic", "-mattr=+f16c",
        optimized, "-o", code)
    run(llvm_tool("ld.lld"), "-shared", "-z", "now", "-z", "noexecstack", "-o", library, code)


class Mutants:
    """Artifacts with one change each, of one that was compiled with --emit-ir."""

    def __init__(self, compiled, folder):
        self.compiled, self.folder = compiled, folder
        self.text = (compiled / "ir" / f"{PROGRAM}-gpu.mlir").read_text()

    def kernels(self, name):
        """The ranges of a kernel in the text, or of each of its bodies with a kernel of its own."""
        for found in re.finditer(rf"gpu\.func @{name}(_\d+)?\(", self.text):
            end = self.text.find("gpu.func @", found.end())
            yield found.start(), end if end >= 0 else len(self.text)

    def sites(self, name, mutation):
        """All changes that a mutation can make to a kernel, in bodies that the model uses."""
        return [(begin + first, begin + last, new) for begin, end in self.kernels(name)
                for first, last, new in mutation(self.text[begin:end])
                if name != "nsg_lookup" or self.is_used(self.text[begin:end], first, last)]

    def is_used(self, text, first, last):
        """Whether a place lies before all bodies of nsg_lookup, or in one that some lookup runs."""
        cases = [(found.start(), int(found[1]))
                 for found in re.finditer(r"\n      case (\d+) \{", text[:last])]
        around = [case for begin, case in cases if begin <= first][-1:]
        inside = [case for begin, case in cases if begin > first]
        return not around or not self.used_bodies().isdisjoint(around + inside)

    def used_bodies(self):
        """Variants of nsg_lookup that the lookups of the model run."""
        manifest = json.loads((self.compiled / "manifest.json").read_text())
        program = json.loads((self.compiled / f"{PROGRAM}.gpu.json").read_text())
        used = set()
        for described, bound in zip(program["lookups"], manifest["bindings"][0]["lookups"]):
            lookup = manifest["exchanges"][bound[0]]["lookups"][bound[1]]
            mean = "mean_" if lookup["pooling"] == "mean" else ""
            used |= {described[f"{mean}variant"], described[f"fixed_{mean}variant"]}
        return used

    def make(self, number, changes):
        """An artifact whose text has the changes, which are in order."""
        text, at = "", 0
        for first, last, new in changes:
            text += self.text[at:first] + new
            at = last
        text += self.text[at:]
        target = self.folder / f"mutant{number}"
        shutil.copytree(self.compiled, target, ignore=shutil.ignore_patterns("ir"))
        compile_module(text, target, target / f"{PROGRAM}.emulated.so")
        return target


def replacing(pattern, new):
    """A mutation: each match of a pattern becomes `new`, with the pattern's groups."""
    return lambda text: [(found.start(), found.end(), found.expand(new))
                         for found in re.finditer(pattern, text)]


VALUE = r"(%[\w#]+)"
GUARD = rf"{VALUE} = arith\.cmpi (?:ult|ule), {VALUE}, {VALUE} : index\n(\s*)scf\.if \1 \{{"
FIRST_LANE = (rf"{VALUE} = arith\.cmpi eq, {VALUE}, {VALUE} : index\n"
              r"(?! *%\S+ = (?:arith\.select|scf\.if) \1[ ,])")
SHUFFLE = rf"nvvm\.shfl\.sync +bfly {VALUE}, {VALUE}, {VALUE}, {VALUE} :"
WARP_SHUFFLE = rf"gpu\.shuffle +xor {VALUE}, {VALUE}, {VALUE} :"

remove_warp_sync = replacing(r"\n *nvvm\.bar\.warp\.sync [^\n]*", "")
remove_guard = replacing(GUARD, r"\1 = arith.constant true\n\4scf.if \1 {")
# The items of a block, and what is read ahead, end with the task and the bag.
remove_bound = replacing(rf"arith\.minui {VALUE}, {VALUE} : index",
                         r"arith.maxui \1, \1 : index")
# Behind the last id of a bag, the row that is read in its place is added, too.
add_behind_the_end = replacing(
    rf"{VALUE} = arith\.cmpi ult, {VALUE}, {VALUE} : index\n(?! *scf\.(?:if|condition))",
    r"\1 = arith.constant true\n")
let_all_lanes_store = replacing(FIRST_LANE, r"\1 = arith.constant true\n")
# A bad id is no longer replaced by row 0, or its key by one that no row has.
remove_bounds_select = replacing(
    rf"arith\.select {VALUE}, {VALUE}, %c(?:0|-1)_i64(?:_\d+)? : i64",
    r"arith.select \1, \2, \2 : i64")
remove_report = replacing(r"\n *%\w+ = llvm\.atomicrmw umin [^\n]*", "")


def change_shuffle(operand, value, pattern=SHUFFLE):
    """A mutation: an operand of a shuffle becomes a constant."""
    def mutate(text):
        changes = []
        for found in re.finditer(pattern, text):
            line = text.rindex("\n", 0, found.start()) + 1
            before, after = text[line:found.start(operand)], text[found.end(operand):found.end()]
            changes.append((line, found.end(), f"%wrong = arith.constant {value} : i32\n"
                            f"{before}%wrong{after}"))
        return changes
    return mutate


# Groups of a whole warp have shuffles without a mask.
ask_all_lanes = change_shuffle(1, -1)
ask_one_lane = change_shuffle(1, 1)
add_itself = change_shuffle(3, 0)
add_itself_in_warp = change_shuffle(2, 0, WARP_SHUFFLE)


def swap_variants(text):
    """Swaps neighbouring bodies of variants."""
    cases = list(re.finditer(r"\n( *)case (\d+) \{", text))
    changes = []
    for one, other in zip(cases, cases[1:]):
        if one[1] == other[1] and int(other[2]) == int(one[2]) + 1:
            middle = text[one.end():other.start()]
            changes.append((one.start(), other.end(), f"\n{one[1]}case {other[2]} {{{middle}"
                            f"\n{one[1]}case {one[2]} {{"))
    return changes
