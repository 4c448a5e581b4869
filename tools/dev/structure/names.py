"""Finds classes of one name in different libraries, which break a program that links both."""

import re
from collections import defaultdict

from structure.layers import part_of
from structure.tree import Violation

NOISE = re.compile(
    r'R"(\w*)\((?s:.*?)\)\1"|//[^\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
TOKEN = re.compile(
    r"(?P<space>\b(?:inline\s+)?namespace\b\s*(?P<names>[\w:]*)\s*\{)"
    r'|(?P<linkage>extern\s*\{)'
    r"|(?<![\w<,])(?P<keyword>class|struct|union|enum(?:\s+class|\s+struct)?)\s+"
    r"(?:alignas\s*\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*(?P<name>[\w:]+)\s*(?P<rest>[^;{}()=]*)(?P<open>\{)"
    r"|(?P<brace>\{)|(?P<close>\})")


def definitions(text):
    """Qualified names of the classes and enumerations that a C++ file defines at the scope of a
    named namespace. Those in anonymous namespaces, in functions and in classes are left out."""
    text = NOISE.sub(" ", text)
    scopes = []
    for token in TOKEN.finditer(text):
        if token["space"]:
            scopes.append(token["names"] or None)
        elif token["linkage"]:
            scopes.append("")
        elif token["keyword"]:
            rest = token["rest"].strip()
            named = not rest or rest.startswith((":", "final"))
            if named and all(scope is not None for scope in scopes):
                yield "::".join([*filter(None, scopes), token["name"]])
            scopes.append(None)
        elif token["brace"]:
            scopes.append(None)
        elif scopes:
            scopes.pop()


def program_of(path):
    """Tools and the tests of a part are programs of their own; libraries may be in any."""
    folders = path.split("/")
    return "" if folders[0] in ("lib", "include") else "/".join(folders[:-1])


def check_names(tree):
    """No two classes of the same qualified name that one program may hold."""
    places = defaultdict(set)
    for path in tree.cxx:
        for name in definitions(tree.text(path)):
            places[name].add(path)
    for name, paths in sorted(places.items()):
        paths = sorted(paths)
        for i, path in enumerate(paths):
            others = [other for other in paths[:i]
                      if part_of(other) != part_of(path)
                      and ("" in (program_of(other), program_of(path))
                           or program_of(other) == program_of(path))]
            if others:
                yield Violation(path, "two classes of one name",
                                f"{name} is also defined in {others[0]}: rename one, or define it"
                                " once where both may use it")
                break
