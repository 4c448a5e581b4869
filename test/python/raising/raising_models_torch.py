"""Modules of the torch dialect, as torch-mlir prints them in generic form."""

import torch

from raising_model import BAG, DIM, ROWS, Offsets, PerId, PerSample, RaisedModel, Table, bags, rows

TABLE = f"!torch.vtensor<[{ROWS},{DIM}],f32>"
SUMS = f"!torch.vtensor<[?,{DIM}],f32>"
ROWS3 = f"!torch.vtensor<[?,{BAG},{DIM}],f32>"
IDS = f"!torch.vtensor<[?,{BAG}],si64>"
FLAT = "!torch.vtensor<[?],si64>"
WEIGHTS = "!torch.vtensor<[?],f32>"
SCALARS = """
    %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %yes = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %none = "torch.constant.none"() : () -> !torch.none
    %zero = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
    %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
    %two = "torch.constant.int"() <{value = 2 : i64}> : () -> !torch.int
    %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int"""


def module(arguments, results, body):
    """arguments: (name, type)."""
    types = ", ".join(kind for _, kind in arguments)
    listed = ", ".join(f"%{name}: {kind} loc(\"{name}\")" for name, kind in arguments)
    return f""""builtin.module"() ({{
  "func.func"() <{{function_type = ({types}) -> ({", ".join(results)}), sym_name = "forward"}}> ({{
  ^bb0({listed}):{SCALARS}{body}
  }}) : () -> ()
}}) {{neuroshard.batch = 8 : i64}} : () -> ()
"""


def returned(*values):
    names = ", ".join(f"%{name}" for name, _ in values)
    return f"""
    "func.return"({names}) : ({", ".join(kind for _, kind in values)}) -> ()"""


def embedding(name, ids, ids_type, result, padding="minus"):
    return f"""
    %{name} = "torch.aten.embedding"(%user, %{ids}, %{padding}, %no, %no) : ({TABLE}, {ids_type}, !torch.int, !torch.bool, !torch.bool) -> {result}"""


def bag(op, mode, weights="none", last="no", padding=None):
    weight_type = "!torch.none" if weights == "none" else WEIGHTS
    pad = f", %{padding}" if padding else ""
    pad_type = "" if not padding else ", !torch.none" if padding == "none" else ", !torch.int"
    return f"""
    %bags:4 = "torch.aten.{op}"(%user, %ids, %offsets, %no, %{mode}, %yes, %{weights}, %{last}{pad}) : ({TABLE}, {FLAT}, {FLAT}, !torch.bool, !torch.int, !torch.bool, {weight_type}, !torch.bool{pad_type}) -> ({SUMS}, {FLAT}, {FLAT}, {FLAT})
    "func.return"(%bags#0) : ({SUMS}) -> ()"""


def reduced(op, dim):
    return f"""
    %dims = "torch.prim.ListConstruct"(%{dim}) : (!torch.int) -> !torch.list<int>
    %pooled = "torch.aten.{op}"(%rows, %dims, %no, %none) : ({ROWS3}, !torch.list<int>, !torch.bool, !torch.none) -> {SUMS}"""


ARGUMENTS = (("user", TABLE), ("ids", IDS))
BAG_ARGUMENTS = (("user", TABLE), ("offsets", FLAT), ("ids", FLAT))


def by_torch(mode, padding_idx=None, weighted=False):
    def forward(table, offsets, ids, weights=None):
        return [torch.nn.functional.embedding_bag(
            ids, table, offsets, mode=mode, padding_idx=padding_idx, include_last_offset=True,
            per_sample_weights=weights if weighted else None)]
    return forward


def of_bags(name, text, last, forward, weighted=False):
    more = (PerId("f32"),) if weighted else ()
    return RaisedModel(name, text, (Table("user"), Offsets(last=last), PerId(), *more),
                       ("mean" if "mean" in name else "sum",), forward, runs=False)


WEIGHED = f"""
    %column = "torch.aten.unsqueeze"(%w, %minus) : (!torch.vtensor<[?,{BAG}],f32>, !torch.int) -> !torch.vtensor<[?,{BAG},1],f32>
    %rows = "torch.aten.mul.Tensor"(%plain, %column) : ({ROWS3}, !torch.vtensor<[?,{BAG},1],f32>) -> {ROWS3}"""
CONSTANT = torch.arange(ROWS * DIM, dtype=torch.float32).reshape(ROWS, DIM) / 4
LITERAL = f"""
    %user = "torch.vtensor.literal"() <{{value = dense<{CONSTANT.tolist()}> : tensor<{ROWS}x{DIM}xf32>}}> : () -> {TABLE} loc("user")"""

MODELS = [
    RaisedModel("torch-embedding", module(
        (("user", TABLE), ("ids", FLAT)), [SUMS],
        embedding("rows", "ids", FLAT, SUMS, "one") + returned(("rows", SUMS))),
                (Table("user"), PerSample(())), ("unpooled",), lambda t, ids: [rows(t, ids)],
                runs=False),
    RaisedModel("torch-embedding-2d", module(
        ARGUMENTS, [ROWS3], embedding("rows", "ids", IDS, ROWS3) + returned(("rows", ROWS3))),
                (Table("user"), PerSample()), ("unpooled",), lambda t, ids: [rows(t, ids)],
                ((3, "f32"),), runs=False),
    RaisedModel("torch-embedding-sum", module(
        ARGUMENTS, [SUMS], embedding("rows", "ids", IDS, ROWS3) +
        reduced("sum.dim_IntList", "one") + returned(("pooled", SUMS))),
                (Table("user"), PerSample()), ("sum",), lambda t, ids: [rows(t, ids).sum(1)],
                runs=False),
    RaisedModel("torch-embedding-mean", module(
        ARGUMENTS, [SUMS], embedding("rows", "ids", IDS, ROWS3) +
        reduced("mean.dim", "one") + returned(("pooled", SUMS))),
                (Table("user"), PerSample()), ("mean",), lambda t, ids: [rows(t, ids).mean(1)],
                runs=False),
    RaisedModel("torch-embedding-weighted", module(
        (*ARGUMENTS, ("w", f"!torch.vtensor<[?,{BAG}],f32>")), [SUMS],
        embedding("plain", "ids", IDS, ROWS3) + WEIGHED + reduced("sum.dim_IntList", "one") +
        returned(("pooled", SUMS))),
                (Table("user"), PerSample(), PerSample(element="f32")), ("sum",),
                lambda t, ids, w: [(rows(t, ids) * w[..., None]).sum(1)], runs=False),
    RaisedModel("torch-literal", module(
        (("ids", IDS),), [ROWS3], LITERAL + embedding("rows", "ids", IDS, ROWS3) +
        returned(("rows", ROWS3))), (PerSample(),), ("unpooled",),
                lambda ids: [rows(CONSTANT, ids)], ((3, "f32"),), runs=False,
                options=("weights",), constants={"user": CONSTANT}),
    of_bags("torch-bag-sum", module(BAG_ARGUMENTS, [SUMS], bag(
        "embedding_bag.padding_idx", "zero", padding="none")), False, by_torch("sum")),
    of_bags("torch-bag-mean-last", module(BAG_ARGUMENTS, [SUMS], bag(
        "embedding_bag.padding_idx", "one", last="yes", padding="two")), True,
            by_torch("mean", 2)),
    of_bags("torch-bag-sum-no-padding", module(BAG_ARGUMENTS, [SUMS], bag(
        "embedding_bag.padding_idx", "zero", last="yes", padding="minus")), True,
            by_torch("sum")),
    of_bags("torch-bag-sum-weighted", module(
        (*BAG_ARGUMENTS, ("w", WEIGHTS)), [SUMS], bag("embedding_bag", "zero", "w")), False,
            by_torch("sum", weighted=True), weighted=True),
    of_bags("torch-bag-mean-no-padding", module(BAG_ARGUMENTS, [SUMS], bag(
        "_embedding_bag", "one", padding="minus")), False,
            lambda t, offsets, ids: [bags(t, ids, offsets, mode="mean")]),
]
