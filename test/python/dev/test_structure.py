"""The check of structure finds each violation in a small tree, and nothing in a sound one. The
table of docs/architecture.md is that of tools/dev/layers.toml."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "dev"))

import check_structure  # noqa: E402
from structure.files import guard_of  # noqa: E402
from structure.layers import Layers  # noqa: E402
from structure.names import definitions  # noqa: E402

TABLE = """
[cxx.Low]
uses = []
[cxx.High]
uses = ["Low", "Side/Open.h"]
outside = ["json"]
[cxx.Side]
uses = ["Low"]
[outside]
json = ["nlohmann/"]
[tests]
"test/Unit/Renamed" = "Low"
[tools]
shared = ["tools/words"]
[python.core]
uses = []
[python.top]
uses = ["core"]
"""


def header(path, body=""):
    name, guard = Path(path).name, guard_of(path)
    return f"//===- {name} - A unit ---*- C++ -*-===//\n\n#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


def source(path, body=""):
    return f"//===- {Path(path).name} - A unit -----------===//\n{body}\n"


SOUND = {
    "include/neuroshard/Low/Base.h": "struct Base {};",
    "include/neuroshard/Side/Open.h": "",
    "include/neuroshard/Side/Closed.h": "",
    "include/neuroshard/High/Top.h": '#include "neuroshard/Low/Base.h"',
    "lib/Low/Base.cpp": '#include "neuroshard/Low/Base.h"',
    "lib/Low/Room/Hidden.h": "",
    "lib/High/Room/Top.cpp": '#include "neuroshard/High/Top.h"\n#include "Room/Inner.h"\n'
                             '#include "neuroshard/Side/Open.h"\n#include <nlohmann/json.hpp>',
    "lib/High/Room/Inner.h": "",
    "lib/High/Other/Inner.h": "",
    "test/Unit/Low/HiddenTest.cpp": '#include "Room/Hidden.h"',
    "test/Unit/Renamed/AgainTest.cpp": '#include "Room/Hidden.h"',
    "python/neuroshard/__init__.py": "from neuroshard import base, top\n",
    "python/neuroshard/base.py": "from neuroshard import _planner\n",
    "python/neuroshard/top/__init__.py": "from neuroshard.top._inner import x\n",
    "python/neuroshard/top/_inner.py": "from neuroshard import base\nx = 1\n",
}


def make(folder, changes=None):
    """Writes the sound tree with some files changed; C++ bodies get a header line and a guard,
    texts that begin with `raw:` do not."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for path, body in {**SOUND, "tools/dev/layers.toml": TABLE, **(changes or {})}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if body.startswith("raw:"):
            body = body.removeprefix("raw:")
        elif path.endswith(".h"):
            body = header(path, body)
        elif path.endswith(".cpp"):
            body = source(path, body)
        file.write_text(body)
    return folder


def found(folder, changes=None):
    """(rule of the check, file, what is said) of each violation of a changed tree."""
    results = check_structure.violations(make(folder, changes))
    return [(rule, violation.path, violation.advice)
            for rule, violations in results.items() for violation in violations]


def test_nothing_is_found_in_a_sound_tree(tmp_path):
    assert found(tmp_path) == []


VIOLATIONS = {
    "a library below includes one above": (
        {"lib/Low/Base.cpp": '#include "neuroshard/High/Top.h"'},
        ("layers", "lib/Low/Base.cpp", "Low may not use High")),
    "what is used by a used part is not allowed with it": (
        {"lib/Side/S.cpp": '#include "neuroshard/High/Top.h"'},
        ("layers", "lib/Side/S.cpp", "Side may not use High")),
    "one header is allowed, another is not": (
        {"lib/High/Room/Top.cpp": '#include "neuroshard/Side/Closed.h"'},
        ("layers", "lib/High/Room/Top.cpp", "High may not use Side")),
    "an include in angle brackets counts": (
        {"lib/Low/Base.cpp": "#include <neuroshard/High/Top.h>"},
        ("layers", "lib/Low/Base.cpp", "Low may not use High")),
    "a foreign header": (
        {"lib/Low/Base.cpp": "#  include <nlohmann/json.hpp>"},
        ("layers", "lib/Low/Base.cpp", "Low may not use json")),
    "a library that the table lacks": (
        {"lib/New/New.cpp": ""}, ("layers", "lib/New", "add [cxx.New]")),
    "a private header of another library": (
        {"lib/Low/Base.cpp": '#include "Room/Secret.h"', "lib/Side/Room/Secret.h": ""},
        ("private headers", "lib/Low/Base.cpp", "private to Side")),
    "a private header of another library, by its path": (
        {"lib/High/Room/Top.cpp": '#include "../../Low/Room/Hidden.h"'},
        ("private headers", "lib/High/Room/Top.cpp", "private to Low")),
    "a tool includes a private header": (
        {"tools/neuroshard-x/Main.cpp": '#include "Low/Room/Hidden.h"'},
        ("private headers", "tools/neuroshard-x/Main.cpp", "private to Low")),
    "a test includes a private header of a library it does not test": (
        {"test/Unit/High/T.cpp": '#include "Room/Hidden.h"'},
        ("private headers", "test/Unit/High/T.cpp", "private to Low")),
    "a test includes a header of a tool": (
        {"test/Unit/High/T.cpp": '#include "Dice.h"', "tools/neuroshard-x/Dice.h": ""},
        ("private headers", "test/Unit/High/T.cpp", "tools/neuroshard-x")),
    "two units include each other through their source files": (
        {"lib/Low/A.h": "", "lib/Low/B.h": "", "lib/Low/A.cpp": '#include "B.h"',
         "lib/Low/B.cpp": '#include "A.h"'},
        ("circles of units", "Low/A", "Low/A -> Low/B -> Low/A")),
    "a public header and its source file are one unit": (
        {"lib/High/Room/Top.cpp": '#include "Room/Inner2.h"',
         "lib/High/Room/Inner2.h": '#include "neuroshard/High/Top.h"'},
        ("circles of units", "High/Inner2", "High/Inner2 -> High/Top")),
    "two folders use each other": (
        {"lib/High/Room/A.h": '#include "Other/B.h"', "lib/High/Other/B.h": "",
         "lib/High/Other/C.h": '#include "Room/D.h"', "lib/High/Room/D.h": ""},
        ("circles of folders", "lib/High/Other", "lib/High/Other, lib/High/Room; 2 includes")),
    "one class name in two libraries": (
        {"lib/Low/R.h": "namespace neuroshard {\nclass Random {};\n}",
         "lib/Side/R.h": "namespace neuroshard {\nstruct Random final : Base {};\n}"},
        ("class names", "lib/Side/R.h", "neuroshard::Random is also defined in lib/Low/R.h")),
    "a file of 501 lines": (
        {"lib/Low/Base.cpp": "\n" * 499}, ("sizes", "lib/Low/Base.cpp", "501 lines")),
    "a folder of 31 files": (
        {f"test/Dialect/t{i}.mlir": "" for i in range(31)},
        ("sizes", "test/Dialect", "31 source files")),
    "no header line": (
        {"lib/Low/Base.cpp": "raw:// A base\n"},
        ("header lines and guards", "lib/Low/Base.cpp", "begin with one line")),
    "the header line of another file": (
        {"lib/Low/Base.cpp": "raw://===- Basis.cpp - A base ------===//\n"},
        ("header lines and guards", "lib/Low/Base.cpp", "//===- Base.cpp -")),
    "a header line of two lines": (
        {"lib/Low/Base.cpp": "raw://===- Base.cpp - A base ---*- C++\n//-*-===//\n"},
        ("header lines and guards", "lib/Low/Base.cpp", "begin with one line")),
    "a guard of another path": (
        {"lib/Low/Room/Hidden.h": "raw:" + header("lib/Low/Hidden.h").replace("Room", "")},
        ("header lines and guards", "lib/Low/Room/Hidden.h", "NEUROSHARD_LIB_LOW_ROOM_HIDDEN_H")),
    "a package imports one above, in a function": (
        {"python/neuroshard/base.py": "def f():\n    from neuroshard.top import x\n"},
        ("python layers", "python/neuroshard/base.py", "core may not use top")),
    "a package that the table lacks": (
        {"python/neuroshard/new/__init__.py": "", "python/neuroshard/new/a.py": ""},
        ("python layers", "python/neuroshard/new", "add [python.new]")),
    "a private module of another package": (
        {"python/neuroshard/base.py": "import neuroshard.top._inner\n"},
        ("private modules", "python/neuroshard/base.py", "private to neuroshard.top")),
    "modules import each other, one in a function": (
        {"python/neuroshard/a.py": "from neuroshard import b\n",
         "python/neuroshard/b.py": "def f():\n    from . import a\n"},
        ("circles of imports", "python/neuroshard/a.py", "neuroshard.a -> neuroshard.b")),
    "a module imports from its own package's face": (
        {"python/neuroshard/top/_inner.py": "from neuroshard.top import y\nx = 1\n"},
        ("circles of imports", "python/neuroshard/top/__init__.py", "neuroshard.top._inner")),
    "tests import each other": (
        {"test/python/a.py": "import b\n", "test/python/sub/b.py": "import a\n"},
        ("circles of imports", "test/python/a.py", "test/python:a -> test/python:sub.b")),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_finds(tmp_path, case):
    changes, (rule, path, advice) = VIOLATIONS[case]
    assert [one for one in found(tmp_path, changes)
            if one[:2] == (rule, path) and advice in one[2]], found(tmp_path, changes)


def test_tools_and_tests_may_use_what_tools_share_and_libraries_may_not(tmp_path):
    changes = {"tools/words/Words.h": "", "tools/neuroshard-a/Main.cpp": '#include "Words.h"',
               "test/Unit/Words/WordsTest.cpp": '#include "Words.h"'}
    assert found(tmp_path, changes) == []
    changes["lib/Low/Base.cpp"] = '#include "Words.h"'
    assert [one[:2] for one in found(tmp_path, changes)] == [("private headers", "lib/Low/Base.cpp")]


def test_allows_the_same_class_name_in_separate_programs(tmp_path):
    one = "namespace neuroshard {\nstruct Options {};\n}"
    assert found(tmp_path, {"tools/neuroshard-a/Options.h": one, "tools/neuroshard-b/Options.h": one,
                            "test/Unit/Low/Options.cpp": one}) == []


def test_what_implements_a_c_interface_may_use_those_who_include_it(tmp_path):
    assert found(tmp_path, {"include/neuroshard/Low/CallABI.h": "",
                            "lib/Low/Room/Call.h": '#include "neuroshard/Low/CallABI.h"',
                            "lib/Low/Room/CallABI.cpp": '#include "Room/Call.h"\n'
                                                        '#include "neuroshard/Low/CallABI.h"'}) == []


def test_reads_definitions_at_the_scope_of_named_namespaces():
    text = """
    // struct Comment {};
    #define MACRO struct Defined {
    const char *text = "struct Quoted {";  char brace = '{';  int big = 1'000'000;
    namespace neuroshard { namespace ir {
    struct Seen { struct Nested {}; };
    class Forward;
    template <class T> class Template : Base<T> { };
    template <> struct Special<int> {};
    enum class Kind : int { A };
    namespace { struct Local {}; }
    Seen make(struct Parameter p) { struct Inside {}; return {}; }
    struct Seen variable = {};
    } }
    extern "C" { struct Plain {}; }
    namespace a::b { union Both {}; }
    """
    assert list(definitions(text)) == [
        "neuroshard::ir::Seen", "neuroshard::ir::Template", "neuroshard::ir::Kind", "Plain",
        "a::b::Both"]


def test_a_table_that_contradicts_itself_is_refused(tmp_path, capsys):
    circle = TABLE.replace('[cxx.Low]\nuses = []', '[cxx.Low]\nuses = ["High"]')
    make(tmp_path, {"tools/dev/layers.toml": circle})
    assert check_structure.main(["--root", str(tmp_path)]) == 1
    assert "circle: ['High', 'Low']" in capsys.readouterr().out
    with pytest.raises(ValueError, match="unknown parts"):
        Layers('[cxx.A]\nuses = ["B"]')


def test_writes_a_test_case_for_each_rule(tmp_path, capsys):
    make(tmp_path, {"lib/New/New.cpp": ""})
    junit = tmp_path / "results.xml"
    assert check_structure.main(["--root", str(tmp_path), "--junit", str(junit)]) == 1
    cases = list(ElementTree.parse(junit).iter("testcase"))
    assert len(cases) == 10
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["layers"]
    assert "lib/New: unlisted part: add [cxx.New] to layers.toml" in capsys.readouterr().out


def test_the_page_shows_the_table():
    layers = Layers((ROOT / "tools" / "dev" / "layers.toml").read_text())
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")]
            for line in (ROOT / "docs" / "architecture.md").read_text().splitlines()
            if line.startswith("| ")]
    shown = {row[0]: (row[2], row[3]) for row in rows if len(row) == 4 and row[0] in layers.cxx}
    assert shown == {name: (", ".join(sorted(part.uses)) or "nothing",
                            ", ".join(sorted(part.outside)) or "nothing")
                     for name, part in layers.cxx.items()}


def test_the_page_names_every_folder_of_a_library():
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = {path.parent.relative_to(ROOT / "lib") for path in (ROOT / "lib").glob("*/*/*.cpp")}
    assert [str(folder) for folder in sorted(folders) if f"`{folder}`" not in page] == []
    named = {word for word in re.findall(r"`([A-Z]\w+/[A-Z]\w+)`", page)}
    assert sorted(named - {str(folder) for folder in folders}) == []
