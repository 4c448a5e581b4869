"""The table of facts in docs/architecture.md: each owner is in the file that it names, and no other
part of the sources defines something of that name."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
PART = re.compile(r"(?:include/neuroshard|lib)/(\w+)/")


def facts():
    text = (ROOT / "docs/architecture.md").read_text()
    section = text.split("## Facts and their owners")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [(re.findall(r"`(\w+)`", owners), file.strip()) for _, owners, file in rows[1:]]


def definition_of(name):
    """Matches types, macros, constants and functions of this name where they are defined, and where
    a function is declared."""
    return re.compile(rf"""^(?:
          (?:typedef\ )?(?:struct|class|enum\ class)\ {name}\b(?!\s*;)
        | \#define\ {name}\b
        | \s*(?:static\ |inline\ )*constexpr\b[^;()]*\b{name}(?:\[\])?\s*[={{]
        | [A-Za-z_][\w:<>,\[\]&*\ ]*[\ &*]{name}\(
        )""", re.MULTILINE | re.VERBOSE)


def parts_that_define(name):
    command = ["git", "grep", "-lw", name, "--", "include/neuroshard", "lib"]
    found = subprocess.run(command, cwd=ROOT, text=True, capture_output=True,
                           check=True).stdout.split()
    definition = definition_of(name)
    return {PART.match(file)[1] for file in found
            if definition.search((ROOT / file).read_text(errors="replace"))}


def test_every_owner_is_in_its_file():
    table = facts()
    assert len(table) >= 40
    for owners, file in table:
        text = (ROOT / file).read_text()
        missing = [owner for owner in owners if not re.search(rf"\b{owner}\b", text)]
        assert owners and not missing, f"{file} has no {missing}"


def test_no_other_part_defines_an_owner():
    others = {}
    for owners, file in facts():
        if file.endswith(".def"):  # those who include it define its macros
            continue
        for owner in owners:
            parts = parts_that_define(owner)
            if parts != {PART.match(file)[1]}:
                others[owner] = parts
    assert others == {}


def test_definitions_are_found():
    for text in ("struct Foo {", "typedef struct Foo {", "enum class Foo {", "#define Foo 1",
                 "inline constexpr int Foo = 1;", "    static constexpr int64_t Foo = 1;",
                 "constexpr std::array<A, 2> Foo = {", "bool Foo(int a);",
                 "std::vector<bool> Foo("):
        assert definition_of("Foo").search(text), text
    for text in ("struct Foo;", "  return Foo(1);", "using Foo = int;", "auto a = Foo(1);",
                 "A ns::Foo(int a) {"):
        assert not definition_of("Foo").search(text), text
