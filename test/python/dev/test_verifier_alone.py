"""The verifier of plans shares no code with any search: no file of lib/Planner outside
Verify includes a header of Verify, and Verify includes none of the searches'."""

import pathlib
import re

PLANNER = pathlib.Path(__file__).resolve().parents[3] / "lib" / "Planner"
PRIVATE = re.compile(r'#include "((?!neuroshard/)[^"]+)"')


def includes(path):
    return PRIVATE.findall(path.read_text())


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))


def test_nobody_includes_the_private_headers_of_the_verifier():
    others = [path for path in sources(PLANNER) if path.parent.name != "Verify"]
    assert len(others) > 50
    assert not [path.name for path in others
                if any("Verify" in header for header in includes(path))]


def test_the_verifier_includes_only_its_own_private_headers():
    verifier = sources(PLANNER / "Verify")
    own = {path.name for path in verifier}
    assert own
    assert not [(path.name, header) for path in verifier for header in includes(path)
                if header not in own]
