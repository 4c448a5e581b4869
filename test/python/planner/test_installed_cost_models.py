"""Cost models that installed packages name by entry points: found by plan() and the command line,
and what is wrong with such a package is one error that names it."""

import os
import subprocess
import sys
import textwrap

import pytest

import neuroshard as ns
from support.planning import small_problem

MODULE = '''
    import neuroshard as ns

    class LinkBytes(ns.CostModel):
        """Time of bytes over a bandwidth of 10 GB/s, of memory and links alike."""
        name = "link-bytes"

        def compute_ms(self, shard_sets):
            return [(sum(s.lookups * s.width for s in one.shards) * 4e-7,
                     sum(s.update_unique_rows * s.width for s in one.shards) * 4e-7)
                    for one in shard_sets]

        def communication_ms(self, traffic, skews=None, direction="forward"):
            return [max(out, into) * 1e-7 + (max(skews) - skews[device] if skews else 0)
                    for device, (out, into) in enumerate(zip(traffic.bytes_out,
                                                             traffic.bytes_in))]

    class Negative(LinkBytes):
        def compute_ms(self, shard_sets):
            return [(-1, 0)] * len(shard_sets)

    class Few(LinkBytes):
        def communication_ms(self, traffic, skews=None, direction="forward"):
            return []

    class NoNumber(LinkBytes):
        def compute_ms(self, shard_sets):
            return [(float("nan"), 0)] * len(shard_sets)

    class Raises(LinkBytes):
        def compute_ms(self, shard_sets):
            raise ZeroDivisionError("no bandwidth")

    class RaisesLate(LinkBytes):
        def communication_ms(self, traffic, skews=None, direction="forward"):
            return (traffic.missing for _ in traffic.dims)

    class Exits(LinkBytes):
        def compute_ms(self, shard_sets):
            raise SystemExit

    class Impostor(LinkBytes):
        name = "roofline"

    class Nameless(LinkBytes):
        @property
        def name(self):
            raise OSError("no name server")

    instance = LinkBytes()
    text = "no model"

    def fails():
        raise RuntimeError("no licence")

    def leaves():
        raise SystemExit(3)
'''


def install(folder, package, module, points):
    """What pip leaves of a package with these entry points."""
    (folder / f"{module}.py").write_text(textwrap.dedent(MODULE))
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[neuroshard.cost_models]\n" + "".join(
        f"{name} = {module}:{attribute}\n" for name, attribute in points.items()))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    install(tmp_path, "fast-links", "fast_links",
            {"link-bytes": "LinkBytes", "instance": "instance", "negative": "Negative",
             "few": "Few", "nan": "NoNumber", "text": "text", "fails": "fails",
             "missing": "Missing",
             **{name: name for name in ("Raises", "RaisesLate", "Exits", "Impostor", "Nameless", "leaves")}})
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["link-bytes", "instance"])
def test_a_named_model_plans_as_the_object(installed, name):
    import fast_links

    problem = small_problem()
    named = ns.plan(problem, cost_model=name)
    given = ns.plan(problem, cost_model=fast_links.LinkBytes())
    assert named.plan == given.plan and named.cost_ms == given.cost_ms
    assert named.plan.provenance.cost_model == "link-bytes"
    assert ns.evaluate(problem, named.plan, cost_model=name).cost_ms == pytest.approx(
        named.cost_ms, rel=1e-12)


@pytest.mark.parametrize("name, message", [
    ("negative", "cost model 'negative' .entry point fast_links:Negative of the package fast-links.: "
                 "compute_ms: time.0. forward: expected a finite number"),
    ("nan", "compute_ms: time.0. forward: expected a finite number of milliseconds.*nan"),
    ("few", "communication_ms: expected 2 times, one per device, got: 0"),
    ("text", "cost model 'text' .entry point fast_links:text of the package fast-links.: "
             "expected an object derived from"),
    ("fails", "fast_links:fails of the package fast-links.: cannot be loaded: RuntimeError: no licence"),
    ("leaves", "cost model 'leaves' .entry point fast_links:leaves.*: cannot be loaded: SystemExit: 3$"),
    ("missing", "fast_links:Missing of the package fast-links.: cannot be loaded: AttributeError"),
    ("links", "got: 'links'; installed packages have Exits, Impostor.*, link-bytes"),
    ("Raises", "^cost model 'Raises' .entry point fast_links:Raises of the package fast-links. "
               "raised ZeroDivisionError: no bandwidth$"),
    ("RaisesLate", "fast_links:RaisesLate .* raised AttributeError: .*missing"),
    ("Exits", "fast_links:Exits of the package fast-links. raised SystemExit$"),
    ("Nameless", "fast_links:Nameless of .*: cannot be read: OSError: no name server"),
    ("Impostor", "Impostor.name: expected another name than those of NeuroShard's own models"),
])
def test_what_is_wrong_is_one_error(installed, name, message):
    with pytest.raises(ns.CostModelError, match=message):
        ns.plan(small_problem(), cost_model=name)


def test_a_name_of_two_packages_is_refused(installed, monkeypatch):
    other = installed / "other"
    other.mkdir()
    install(other, "slow-links", "slow_links", {"instance": "instance"})
    monkeypatch.syspath_prepend(other)
    with pytest.raises(ns.CostModelError, match="one package with this name, got: "
                                                "fast-links, slow-links; uninstall all but one"):
        ns.plan(small_problem(), cost_model="instance")


def test_names_of_ours_are_not_replaced(installed, tmp_path):
    install(tmp_path, "impostor", "impostor", {"roofline": "instance"})
    assert ns.plan(small_problem(), cost_model="roofline").plan.provenance.cost_model == "roofline"


def test_the_command_line_finds_it(installed):
    problem = installed / "problem.json"
    small_problem().save(problem)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [installed, *sys.path]))}

    def plan(name):
        return subprocess.run([sys.executable, "-m", "neuroshard", "plan", problem, "--json",
                               "--cost-model", name], env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300)

    right = plan("link-bytes")
    assert right.returncode == 0, right.stderr
    assert '"cost_model":"link-bytes"' in right.stdout.replace('": "', '":"')
    wrong = plan("negative")
    assert wrong.returncode != 0 and "Traceback" not in wrong.stderr
    assert "expected a finite number of milliseconds, at least 0, got: -1" in wrong.stdout
    for name in ("Exits", "leaves"):
        ended = plan(name)
        assert ended.returncode == 1 and "SystemExit" in ended.stdout, (ended.stdout, ended.stderr)


def test_an_object_with_a_name_of_ours_is_refused():
    class Mine(ns.CostModel):
        name = "roofline"

    with pytest.raises(ns.CostModelError, match="^Mine.name: expected another name .* got: 'roofline'"):
        ns.plan(small_problem(), cost_model=Mine())


def test_what_an_object_raises_comes_out_as_it_is():
    class Mine(ns.CostModel):
        def compute_ms(self, shard_sets):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="^'?mine'?$"):
        ns.plan(small_problem(), cost_model=Mine())
