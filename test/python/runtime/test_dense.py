"""A dense part around the lookups runs on each device's samples and gives the same bits."""

import pytest
import torch

from support import artifact, plans
from support.batch import local_sizes
from support.model import Input, Lookup, Model, Optimizer, Table
from support.session import Session

# relu(dense + result) * weights, per sample.
DENSE = """
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %dense, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%batch) : tensor<?x8xf32>
  %hidden = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%dense, %r0 : tensor<?x8xf32>, tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      %m = arith.maximumf %s, %zero : f32
      linalg.yield %m : f32
  } -> tensor<?x8xf32>
  %out = tensor.empty(%batch) : tensor<?x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x5xf32>) -> tensor<?x5xf32>
  %scores = linalg.matmul ins(%hidden, %weights : tensor<?x8xf32>, tensor<8x5xf32>)
                          outs(%start : tensor<?x5xf32>) -> tensor<?x5xf32>""".splitlines()[1:]


def dense_model():
    tables = [Table("users", 30, 8, optimizer=Optimizer("sgd"))]
    inputs = [Input("ids", ("user_id",), (Lookup("user_id", "users", "mean"),))]
    return Model(tables, inputs, arguments=["%dense: tensor<?x8xf32>", "%weights: tensor<8x5xf32>"],
                 dense=DENSE, results=[("%scores", "tensor<?x5xf32>")])


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_dense_part(devices, training, tmp_path, generator):
    model = dense_model()
    plan = plans.random_plan(model, devices, 3, kinds=("columns",))
    folder = artifact.compile_model(model, plan, tmp_path / "model", training=training)
    with Session(folder, model, plan) as session:
        session.fill(generator, False)
        session.sync_reference()
        for size in (1, 11):
            jagged = session.random_batch(size, generator, False)
            dense = torch.randn((size, 8), generator=generator)
            weights = torch.randn((8, 5), generator=generator)
            parts = dense.split(local_sizes(size, devices))
            out = session.world.invoke("forward", [
                [*local, parts[rank].contiguous(), weights]
                for rank, local in enumerate(session.scatter(jagged))])
            scores = torch.cat([result[0] for result in out])
            expected = session.reference.forward(jagged, [dense, weights])[0]
            assert torch.equal(scores, expected)
            check_with_torch(scores, session, jagged[0], dense, weights)


def check_with_torch(scores, session, jagged, dense, weights):
    table = session.reference.weights["users"].double()
    ids, offsets, _ = jagged.feature(0)
    pooled = torch.nn.functional.embedding_bag(ids, table, offsets, mode="mean",
                                               include_last_offset=True)
    theirs = torch.relu(dense.double() + pooled) @ weights.double()
    torch.testing.assert_close(scores.double(), theirs, rtol=1e-5, atol=1e-5)
