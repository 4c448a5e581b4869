"""Rules on Python imports: who may use whom, and no circle between modules."""

import ast
from pathlib import PurePosixPath

from structure.cycles import cycles
from structure.includes import describe
from structure.tree import Violation

PACKAGE = "neuroshard"
FACADE = {f"{PACKAGE}", f"{PACKAGE}.__main__"}
EXTENSIONS = {f"{PACKAGE}._planner"}
# Folders from which a program imports by the plain name of a module.
PATHS = ("test/docs", "test/python", "tools/dev", "tools/gpu")


def module_of(path):
    """The dotted name of a file of Python, below the folder from which it is imported."""
    root = next((root for root in ("python", *PATHS) if path.startswith(root + "/")), None)
    if root is None:
        return None
    parts = PurePosixPath(path).relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name if root == "python" else f"{root}:{name}"


def package_of(module):
    """The row of layers.toml of a module, or None for the package's own __init__ and __main__."""
    if module in FACADE:
        return None
    folders = module.split(".")
    return folders[1]


class Imports:
    """Who imports whom, wherever in a module the import stands."""

    def __init__(self, tree):
        self.path = {}
        for path in tree.python:
            module = module_of(path)
            if module:
                self.path[module] = path
        self.graph = {module: self._targets(tree, module) for module in self.path}

    def _targets(self, tree, module):
        path = self.path[module]
        root, _, name = module.rpartition(":")
        base = name.split(".") if path.endswith("__init__.py") else name.split(".")[:-1]
        found = set()
        for node in ast.walk(ast.parse(tree.text(path), path)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                parts = base[:len(base) - node.level + 1] if node.level else []
                source = ".".join([*parts, *filter(None, [node.module])])
                for alias in node.names:
                    inner = f"{source}.{alias.name}"
                    if self._known(root, inner):
                        found.add(inner)
                    elif inner not in EXTENSIONS:
                        found.add(source)
        return {self._known(root, name) for name in found} - {None, module}

    def _known(self, root, name):
        """The module that an import of `name` in a file below `root` means. Tests and tools name
        modules of their own tree by the end of the path."""
        if root:
            own = [module for module in self.path
                   if module == f"{root}:{name}"
                   or module.startswith(f"{root}:") and module.endswith(f".{name}")]
            if len(own) == 1:
                return own[0]
        return name if name in self.path else None


def row_of(layers, module):
    package = package_of(module)
    return package if package is None or package in layers.python else "core"


def check_python_layers(layers, imports):
    """Packages import only the packages that layers.toml lists for them."""
    packages = {module.split(".")[1] for module in imports.path
                if ":" not in module and module.count(".") > 1}
    for name in sorted(packages - set(layers.python)):
        yield Violation(f"python/{PACKAGE}/{name}", "unlisted package",
                        f"add [python.{name}] to layers.toml")
    for module, targets in sorted(imports.graph.items()):
        if ":" in module or row_of(layers, module) is None:
            continue
        row = row_of(layers, module)
        for target in sorted(targets):
            used = None if ":" in target else row_of(layers, target)
            if used is None or row not in layers.python:
                continue
            if used != row and used not in layers.python[row].uses:
                yield Violation(imports.path[module], "layer",
                                f"{row} may not use {used}: drop the import of {target}, move what"
                                " both need, or change tools/dev/layers.toml")


def check_private_modules(imports):
    """A module or package whose name begins with _ is imported only below its own parent."""
    for module, targets in sorted(imports.graph.items()):
        for target in sorted(targets):
            folders = target.split(".")
            for depth, folder in enumerate(folders):
                parent = ".".join(folders[:depth])
                if (folder.startswith("_") and not folder.startswith("__") and ":" not in module
                        and module != parent and not module.startswith(parent + ".")):
                    yield Violation(imports.path[module], "private module",
                                    f"{target} is private to {parent}: import what {parent} offers")


def check_import_cycles(imports):
    """No circle of imports between modules; imports inside functions count too."""
    for component in cycles(imports.graph):
        yield Violation(imports.path[component[0]], "circle of imports",
                        f"move what both need to a module of its own: "
                        f"{describe(imports.graph, component)}")
