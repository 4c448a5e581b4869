"""Checks who includes and imports whom, and the sizes and headers of source files.

The table of who may use whom is layers.toml. Prints a line for each violation: the file, the
rule, what to do. With --junit each rule is a test case.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from structure.files import check_headers, check_sizes
from structure.imports import (Imports, check_import_cycles, check_private_modules,
                               check_python_layers)
from structure.includes import (Includes, Units, check_folder_cycles, check_layers, check_private,
                                check_unit_cycles)
from structure.layers import Layers
from structure.names import check_names
from structure.tree import Tree

ROOT = Path(__file__).resolve().parents[2]
TABLE = "tools/dev/layers.toml"


def violations(root):
    """The violations of every rule, by the rule's name."""
    tree = Tree(root)
    layers = Layers((tree.root / TABLE).read_text())
    includes, units, imports = Includes(tree), Units(tree), Imports(tree)
    rules = {
        "layers": check_layers(tree, layers, includes),
        "private headers": check_private(layers, includes),
        "circles of units": check_unit_cycles(units, includes),
        "circles of folders": check_folder_cycles(units, includes),
        "class names": check_names(tree),
        "sizes": check_sizes(tree),
        "header lines and guards": check_headers(tree),
        "python layers": check_python_layers(layers, imports),
        "private modules": check_private_modules(imports),
        "circles of imports": check_import_cycles(imports),
    }
    return {rule: sorted(set(found)) for rule, found in rules.items()}


def write_junit(path, results):
    suite = ElementTree.Element("testsuite", name="structure", tests=str(len(results)))
    for rule, found in results.items():
        case = ElementTree.SubElement(suite, "testcase", classname="structure", name=rule)
        if found:
            failure = ElementTree.SubElement(case, "failure", message=f"{len(found)} violations")
            failure.text = "\n".join(map(str, found))
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to check")
    parser.add_argument("--junit", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    try:
        results = violations(options.root)
    except ValueError as error:
        print(f"{TABLE}: {error}")
        return 1
    for rule, found in results.items():
        for violation in found:
            print(violation)
        print(f"{rule}: {f'{len(found)} violations' if found else 'ok'}")
    if options.junit:
        write_junit(options.junit, results)
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
