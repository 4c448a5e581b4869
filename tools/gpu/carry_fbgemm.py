"""Makes a wheel of FBGEMM small enough to travel to a machine with a GPU.

FBGEMM's libraries, 2.5 GB, have machine code for several architectures, optimizers and kinds of
tables. The copy leaves out libraries that training does not need. In the others it replaces machine
code by zeros, which compress to nothing, except for one architecture, unweighted sums and row-wise
Adagrad; layout and host code stay. The copy is for comparison measurements only: its other
operators fail."""

import mmap
import re
import struct
import zipfile
from pathlib import Path

# Libraries that the training operator does not need.
LEFT_OUT = re.compile(r"fbgemm_gpu_(tbe_inference|tbe_training_backward_(vbe|gwd|dense)|ssd\w*)"
                      r"\.so$|/(sll|docs/target)/|/triton/(?!__init__|jagged/__init__)")
# A fat binary: magic, version, bytes of its header, bytes of its entries. Each entry: kind (2 is
# machine code), version, bytes of its header, bytes of its body; the architecture at byte 28.
MAGIC, HEADER, ENTRY = b"\x50\xed\x55\xba", struct.Struct("<4sHHQ"), struct.Struct("<HHIQ")
MACHINE_CODE, ARCHITECTURE_AT = 2, 28
# Names of kernels, and those of them that are measured.
KERNEL = re.compile(rb"(?:split|ssd|dense)_embedding_(?:nobag_)?(?:backward_)?codegen_\w+")
NEEDED = re.compile(rb"split_embedding_(?:codegen_forward|backward_codegen_rowwise_adagrad)"
                    rb"_unweighted_(?!vbe|gwd|nobag)"
                    rb"|split_embedding_backward_codegen_find_long_segments")
INIT = "fbgemm_gpu/__init__.py"


def carry(wheel, folder, architecture):
    """Unpacks a wheel below `folder`; gives the bytes of machine code kept and cleared."""
    kept = cleared = 0
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if LEFT_OUT.search(name):
                continue
            archive.extract(name, folder)
            if name.endswith(".so"):
                counts = clear_library(Path(folder) / name, architecture)
                kept, cleared = kept + counts[0], cleared + counts[1]
    forget_left_out(Path(folder) / INIT)
    if not kept:
        raise ValueError(f"{wheel} has no machine code for sm_{architecture}")
    return kept, cleared


def clear_library(path, architecture):
    kept = cleared = 0
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        for begin, end, kind, arch in entries(data):
            if kind == MACHINE_CODE and arch == architecture and needed(data[begin:end]):
                kept += end - begin
            else:
                data[begin:end] = bytes(end - begin)
                cleared += end - begin
    return kept, cleared


def entries(data):
    """(begin, end, kind, architecture) of the body of each entry of each fat binary."""
    at = data.find(MAGIC)
    while at >= 0:
        if at + HEADER.size > len(data):
            return
        _, version, header, size = HEADER.unpack_from(data, at)
        if version != 1 or header != HEADER.size or at + header + size > len(data):
            at = data.find(MAGIC, at + 4)
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, before, body = ENTRY.unpack_from(data, entry)
            if not before:
                break
            arch = struct.unpack_from("<I", data, entry + ARCHITECTURE_AT)[0]
            yield entry + before, entry + before + body, kind, arch
            entry += before + body
        at = data.find(MAGIC, end)


def needed(code):
    """Whether machine code belongs to measured kernels. Code without kernel names is kept: it is
    compressed, or shared."""
    names = KERNEL.findall(code)
    return not names or any(NEEDED.match(name) for name in names)


def forget_left_out(path):
    """The package loads all libraries that it lists."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(
        line for line in lines
        if not LEFT_OUT.search(f"fbgemm_gpu/{line.strip().strip(',').strip(chr(34))}.so")))
