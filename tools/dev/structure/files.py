"""Rules on single files and folders: length, number, header line, include guard."""

import posixpath
import re
from collections import Counter
from pathlib import PurePosixPath

from structure.tree import Violation

LONGEST_FILE = 500
LARGEST_FOLDER = 30


def check_sizes(tree):
    """No file of more than 500 lines, no folder of more than 30 source files."""
    for path in tree.files:
        lines = tree.text(path).count("\n")
        if lines > LONGEST_FILE:
            yield Violation(path, "long file", f"{lines} lines, at most {LONGEST_FILE}: split it")
    for folder, count in sorted(Counter(map(posixpath.dirname, tree.files)).items()):
        if count > LARGEST_FOLDER:
            yield Violation(folder, "large folder",
                            f"{count} source files, at most {LARGEST_FOLDER}: make folders in it")


def guard_of(path):
    """The include guard of a header: NEUROSHARD and its folders and name."""
    folders = list(PurePosixPath(path).parts)
    if folders[0] == "include":
        folders = [*folders[1].replace("-", "_").split("_"), *folders[2:]]
    else:
        folders = ["neuroshard", *(folder.removeprefix("neuroshard-") for folder in folders
                                   if folder != "Unit")]
    return re.sub(r"\W", "_", "_".join(folders)).upper()


def check_headers(tree):
    """Every C++ file begins with a line that names it and says what it is; guards fit the path."""
    for path in tree.cxx:
        name = posixpath.basename(path)
        first = tree.text(path).split("\n", 1)[0]
        names = {name, path.removeprefix("include/")}
        match = re.fullmatch(r"(?://|/\*)===- (\S+) - \S.*[-=](?://|\*/)", first)
        if not match or match[1] not in names:
            yield Violation(path, "header line",
                            f"begin with one line '//===- {name} - <what it is> ---===//'")
        if not path.endswith(".h"):
            continue
        guard = re.search(r"^#ifndef (\w+)\n#define \1$", tree.text(path), re.M)
        if not guard or guard[1] != guard_of(path):
            yield Violation(path, "include guard", f"call it {guard_of(path)}")
