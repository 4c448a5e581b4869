"""Rules on C++ includes: who may use whom, private headers, circles of units and of folders."""

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath

from structure.cycles import cycles, shortest_circle
from structure.layers import is_public, part_of
from structure.tree import Violation

INTERFACE = "ABI.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)


@dataclass(frozen=True)
class Include:
    source: str
    spelling: str
    target: str  # empty: not a file of the tree


class Includes:
    """Every include of a tree, with the file it means."""

    def __init__(self, tree):
        self.tree = tree
        self._known = set(tree.cxx)
        self._by_name = defaultdict(list)
        for path in tree.cxx:
            self._by_name[posixpath.basename(path)].append(path)
        self.all = [Include(source, spelling, self._resolve(source, spelling))
                    for source in tree.cxx
                    for spelling in INCLUDE.findall(tree.text(source))]
        self.inside = [include for include in self.all if include.target]

    def _resolve(self, source, spelling):
        folders = PurePosixPath(source).parts
        places = [posixpath.dirname(source), "include", "/".join(folders[:2]),
                  "/".join(folders[:3])]
        for place in places:
            path = posixpath.normpath(posixpath.join(place, spelling))
            if path in self._known:
                return path
        # A folder that a CMake file adds: the file that ends so, of a library if there is one.
        ends = [path for path in self._by_name[posixpath.basename(spelling)]
                if path.endswith("/" + spelling.removeprefix("../"))]
        ends.sort(key=lambda path: (path.split("/")[0] != "lib", path))
        return ends[0] if ends and not spelling.startswith("neuroshard/Dialect/Neuro") else ""


def tested_part(layers, path):
    """The library whose private headers a test may include, or None."""
    for folder, part in layers.tests.items():
        if path.startswith(folder + "/"):
            return part
    folders = path.split("/")
    return folders[2] if folders[:2] == ["test", "Unit"] and len(folders) > 3 else None


def check_layers(tree, layers, includes):
    """Libraries include only headers of the libraries that layers.toml lists for them."""
    for name in sorted({part_of(path) for path in tree.cxx if path.startswith(("lib/", "include/"))}):
        if name not in layers.cxx:
            yield Violation(f"lib/{name}", "unlisted part", f"add [cxx.{name}] to layers.toml")
    for include in includes.inside:
        part, used = part_of(include.source), part_of(include.target)
        if part not in layers.cxx or used == part or not is_public(include.target):
            continue
        header = include.target.removeprefix("include/neuroshard/")
        if not layers.cxx[part].may_use(used, header):
            yield Violation(include.source, "layer",
                            f'{part} may not use {used}: drop #include "{include.spelling}", move'
                            " what both need to a part below, or change tools/dev/layers.toml")
    for include in includes.all:
        part = part_of(include.source)
        group = None if include.target else layers.outside_group(include.spelling)
        if group and part in layers.cxx and group not in layers.cxx[part].outside:
            yield Violation(include.source, "layer",
                            f"{part} may not use {group}: drop #include <{include.spelling}>")


def check_private(layers, includes):
    """Private headers are included only by their own library and its tests."""
    for include in includes.inside:
        source, target = include.source, include.target
        part, owner = part_of(source), part_of(target)
        if "../" in include.spelling:
            yield Violation(source, "private header",
                            f'write "{include.spelling}" relative to lib/{owner}')
        if is_public(target) or part == owner:
            continue
        if owner in layers.shared_tools and source.startswith(("tools/", "test/")):
            continue
        if target.startswith("lib/"):
            if not source.startswith("test/") or tested_part(layers, source) != owner:
                yield Violation(source, "private header",
                                f'"{include.spelling}" is private to {owner}: move what is needed'
                                f" to include/neuroshard/{owner}")
        elif target.startswith("tools/") or source.startswith(("lib/", "include/")):
            yield Violation(source, "private header",
                            f'"{include.spelling}" lies in {posixpath.dirname(target)}: move it to'
                            " a library, or to test/Support if only tests need it")


class Units:
    """A header and the source file of the same name are one unit, if a library has one pair of
    that name; files of a name that several folders use are units by folder. A C interface
    (...ABI.h) is a unit of its own: it declares what others call and holds no code, so that what
    implements it may use those who include it."""

    def __init__(self, tree):
        groups = defaultdict(list)
        for path in tree.cxx:
            name = PurePosixPath(path)
            interface = path.endswith(INTERFACE)
            groups[part_of(path), name.name if interface else name.stem].append(path)
        self.of = {}
        self.room = {}
        for (part, stem), paths in groups.items():
            suffixes = [PurePosixPath(path).suffix == ".h" for path in paths]
            alone = (suffixes.count(True) <= 1 and suffixes.count(False) <= 1
                     and not part.startswith("test"))
            for path in paths:
                self.of[path] = f"{part}/{stem}" if alone else self._by_folder(part, path, stem)
        for path, unit in self.of.items():
            if path.startswith("lib/") and path.count("/") > 2:
                self.room[unit] = posixpath.dirname(path)

    @staticmethod
    def _by_folder(part, path, stem):
        folder = posixpath.dirname(path)
        folder = folder.removeprefix("include/neuroshard/").removeprefix("lib/")
        return f"{folder}/{stem}" if folder != part else f"{part}/{stem}"


def graph_of(names, edges):
    graph = {name: set() for name in names}
    for source, target in edges:
        if source != target:
            graph[source].add(target)
    return graph


def describe(graph, component):
    circle = " -> ".join(shortest_circle(graph, component))
    return circle if len(component) == 2 else f"{circle} (all in circles: {', '.join(component)})"


def check_unit_cycles(units, includes):
    """No circle of includes between units."""
    graph = graph_of(units.of.values(), ((units.of[include.source], units.of[include.target])
                                         for include in includes.inside))
    for component in cycles(graph):
        yield Violation(component[0], "circle of units",
                        f"move what both need to a unit of its own: {describe(graph, component)}")


def check_folder_cycles(units, includes):
    """No circle between the folders inside a library. Public headers without a source file are
    no folder's."""
    def room(path):
        return units.room.get(units.of[path], units.of[path])

    edges = [(room(include.source), room(include.target)) for include in includes.inside
             if part_of(include.source) == part_of(include.target)]
    graph = graph_of({name for edge in edges for name in edge}, edges)
    for component in cycles(graph):
        folders = [name for name in component if name.startswith("lib/")]
        if len(folders) > 1:
            uses = sorted(f"{include.source} includes {include.spelling}"
                          for include in includes.inside
                          if room(include.source) in folders and room(include.target) in folders
                          and room(include.source) != room(include.target))
            yield Violation(folders[0], "circle of folders",
                            f"move files so that these use each other one way: "
                            f"{', '.join(folders)}; {len(uses)} includes: {'; '.join(uses)}")
