"""neuroshard.pack of tensors whose sizes do not fit is an error on all devices, and reads no other
memory."""

import pytest
import torch
from support import artifact
from support.host import RuntimeFailure, World
from support.mutants import run

MODULE = """
!ids = !neuroshard.jagged<["a", "b"], i64, weighted>
module attributes {neuroshard.batch = 3 : i64} {
  neuroshard.table private @t : 23 x 4 x f32
  func.func @forward(%i: tensor<?xi64>, %j: tensor<?xi64>, %o: tensor<?xi64>, %p: tensor<?xi64>,
                     %v: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?x4xf32> {
    %ids = neuroshard.pack ids(%i, %j : tensor<?xi64>, tensor<?xi64>)
      offsets(%o, %p : tensor<?xi64>, tensor<?xi64>)
      weights(%v, %w : tensor<?xf32>, tensor<?xf32>) : !ids
    %rows = neuroshard.lookup sum @t[%ids, "b"] weighted : !ids -> tensor<?x4xf32>
    return %rows : tensor<?x4xf32>
  }
}
"""
IDS = torch.tensor([3, 22, 0, 7, 7, 1, 19, 4, 11])
WEIGHTS = torch.arange(9.0) - 3
OFFSETS = torch.tensor([0, 2, 5, 9])
TABLE = torch.arange(92.0).reshape(23, 4) / 8


def arguments(**changes):
    given = {"i": IDS, "j": IDS, "o": OFFSETS, "p": OFFSETS, "v": WEIGHTS, "w": WEIGHTS}
    return list({**given, **changes}.values())


@pytest.fixture(scope="module", params=[1, 2])
def world(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    (folder / "model.mlir").write_text(MODULE)
    run(artifact.tool("neuroshard-compile"), folder / "model.mlir", "-o", folder / "artifact",
        "--topology", f"{request.param}xCPU", "-O", "0")
    with World(folder / "artifact") as opened:
        opened.write_table("t", TABLE)
        yield opened


def sums(ids, offsets, weights):
    return torch.nn.functional.embedding_bag(ids, TABLE, offsets, mode="sum",
                                             per_sample_weights=weights, include_last_offset=True)


@pytest.mark.parametrize("changes, message", [
    ({"w": WEIGHTS[:3]}, "expected one weight for each of the 18 ids, found 12"),
    ({"v": WEIGHTS[:0]}, "expected one weight for each of the 18 ids, found 9"),
    ({"w": torch.ones(30)}, "expected one weight for each of the 18 ids, found 39"),
    ({"p": torch.tensor([0, 2, 5, 12])}, "the last offset must be the number of ids 18, found 21"),
    ({"o": torch.tensor([0, 2, 5, 12])}, "the last offset must be the number of ids 18, found 21"),
], ids=["few-weights", "no-weights", "many-weights", "few-ids", "few-ids-of-first"])
def test_sizes_that_do_not_fit(world, changes, message):
    with pytest.raises(RuntimeFailure, match=message):
        world.invoke("forward", [arguments(**changes)] * world.devices)
    # The next step works.
    results = world.invoke("forward", [arguments()] * world.devices)
    torch.testing.assert_close(results[0][0], sums(IDS, OFFSETS, WEIGHTS))


def test_ids_behind_the_last_offset_are_of_no_bag(world):
    shorter = torch.tensor([0, 2, 5, 7])
    results = world.invoke("forward", [arguments(p=shorter)] * world.devices)
    torch.testing.assert_close(results[0][0], sums(IDS[:7], shorter, WEIGHTS[:7]))
