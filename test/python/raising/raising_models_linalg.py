"""Modules of tensor, linalg and arith ops that gather and pool rows."""

import torch

from raising_model import BAG, DIM, ROWS, PerSample, RaisedModel, Table, rows

TABLE = f"tensor<{ROWS}x{DIM}xf32>"
IDS = f"tensor<?x{BAG}xi64>"
WEIGHTS = f"tensor<?x{BAG}xf32>"
ROWS3 = f"tensor<?x{BAG}x{DIM}xf32>"
SUMS = f"tensor<?x{DIM}xf32>"
MAPS = """#bl = affine_map<(b, l, d) -> (b, l)>
#bld = affine_map<(b, l, d) -> (b, l, d)>
#bd = affine_map<(b, l, d) -> (b, d)>
#b2 = affine_map<(b, d) -> (b)>
#bd2 = affine_map<(b, d) -> (b, d)>
"""
# Sizes, zeros and room for rows of %ids.
SETUP = f"""
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %ids, %c0 : {IDS}
  %room = tensor.empty(%b) : {SUMS}
  %room3 = tensor.empty(%b) : {ROWS3}
  %zeros = linalg.fill ins(%zero : f32) outs(%room : {SUMS}) -> {SUMS}"""
PARALLEL3 = 'iterator_types = ["parallel", "parallel", "parallel"]'
REDUCE3 = 'iterator_types = ["parallel", "reduction", "parallel"]'


def module(arguments, results, body, head=""):
    listed = ", ".join(results)
    return f"""{MAPS}{NESTED_MAPS}module attributes {{neuroshard.batch = 8 : i64}} {{
{head}func.func @forward({", ".join(arguments)}) -> ({listed}) {{{body}
}}
}}
"""


def gathered(name, table, index, ids="%ids : " + IDS, id_type="i64", element="f32"):
    """Rows of `table` by a generic; `index` computes %i from %id."""
    rows3 = f"tensor<?x{BAG}x{DIM}x{element}>"
    return f"""
  %{name} = linalg.generic {{indexing_maps = [#bl, #bld], {PARALLEL3}}}
      ins({ids}) outs(%room3 : {rows3}) {{
  ^bb0(%id: {id_type}, %out: {element}):{index}
    %d = linalg.index 2 : index
    %x = tensor.extract {table}[%i, %d] : tensor<{ROWS}x{DIM}x{element}>
    linalg.yield %x : {element}
  }} -> {rows3}"""


CAST = """
    %i = arith.index_cast %id : i64 to index"""
REDUCED = f"""
  %sums = linalg.reduce {{arith.addf}} ins(%rows : {ROWS3}) outs(%zeros : {SUMS}) dimensions = [1]"""
THREE = f"""
  %three = arith.constant {BAG}.0 : f32
  %threes = linalg.fill ins(%three : f32) outs(%room : {SUMS}) -> {SUMS}"""
TABLE_AND_IDS = (Table("user"), PerSample())
ARGUMENTS = (f'%user: {TABLE} loc("user")', f"%ids: {IDS}")
RETURN = f"\n  return %sums : {SUMS}"


def tensor_gather(shape, keep):
    ids = "x".join(["?", *map(str, shape[1:]), "1"])
    result = "x".join(["?", *map(str, shape[1:]), *(["1"] if keep else []), str(DIM)])
    return module([f'%user: {TABLE} loc("user")', f"%ids: tensor<{ids}xi64>"],
                  [f"tensor<{result}xf32>"], f"""
  %rows = tensor.gather %user[%ids] gather_dims([0])
    : ({TABLE}, tensor<{ids}xi64>) -> tensor<{result}xf32>
  return %rows : tensor<{result}xf32>""")


FUSED = f"""
  %sums = linalg.generic {{indexing_maps = [#bl, #bl, #bd], {REDUCE3}}}
      ins(%ids, %w : {IDS}, {WEIGHTS}) outs(%zeros : {SUMS}) {{
  ^bb0(%id: i64, %weight: f32, %out: f32):{CAST}
    %d = linalg.index 2 : index
    %x = tensor.extract %user[%i, %d] : {TABLE}
    %y = arith.mulf %weight, %x : f32
    %s = arith.addf %y, %out : f32
    linalg.yield %s : f32
  }} -> {SUMS}"""

FUSED_PLAIN = FUSED.replace("[#bl, #bl, #bd]", "[#bl, #bd]").replace(
    f"%ids, %w : {IDS}, {WEIGHTS}", f"%ids : {IDS}").replace(", %weight: f32", "").replace(
    "    %y = arith.mulf %weight, %x : f32\n", "").replace("%y, %out", "%x, %out")

MEAN_BY_GENERIC = f"""
  %means = linalg.generic {{indexing_maps = [#bd2, #bd2],
      iterator_types = ["parallel", "parallel"]}} ins(%sums : {SUMS}) outs(%room : {SUMS}) {{
  ^bb0(%s: f32, %out: f32):
    %q = arith.divf %s, %three : f32
    linalg.yield %q : f32
  }} -> {SUMS}
  return %means : {SUMS}"""

CLAMPED = f"""
    %raw = arith.index_cast %id : i64 to index
    %least = arith.constant 0 : index
    %most = arith.constant {ROWS - 1} : index
    %above = arith.maxsi %raw, %least : index
    %i = arith.minsi %above, %most : index"""
WRAPPED = f"""
    %none = arith.constant 0 : i64
    %all = arith.constant {ROWS} : i64
    %negative = arith.cmpi slt, %id, %none : i64
    %moved = arith.addi %id, %all : i64
    %row = arith.select %negative, %moved, %id : i64
    %i = arith.index_cast %row : i64 to index"""
CHECKED = f"""
    %none = arith.constant 0 : i64
    %all = arith.constant {ROWS} : i64
    %high = arith.cmpi slt, %id, %all : i64
    cf.assert %high, "index must be smaller than dim size"
    %low = arith.cmpi sge, %id, %none : i64
    cf.assert %low, "index must be larger or equal to 0"
    %i = arith.index_cast %id : i64 to index"""
READ = f"""
    %b0 = linalg.index 0 : index
    %l0 = linalg.index 1 : index
    %read = tensor.extract %ids[%b0, %l0] : {IDS}
    %i = arith.index_cast %read : i64 to index"""
WEIGHED = f"""
  %w3 = linalg.broadcast ins(%w : {WEIGHTS}) outs(%room3 : {ROWS3}) dimensions = [2]
  %rows = arith.mulf %plain, %w3 : {ROWS3}"""
HALF = SETUP.replace(f"%room3 = tensor.empty(%b) : {ROWS3}",
                     f"%room3 = tensor.empty(%b) : {ROWS3.replace('f32', 'f16')}")
CONSTANT = torch.arange(ROWS * DIM, dtype=torch.float32).reshape(ROWS, DIM) / 8
DENSE = "dense<[" + ", ".join(str(line) for line in CONSTANT.tolist()) + "]>"
MEMREF = f"memref<{ROWS}x{DIM}xf32>"

# Ids of two bags of each sample.
NESTED, NESTED_SUMS = f"tensor<?x2x{BAG}x{DIM}xf32>", f"tensor<?x2x{DIM}xf32>"
NESTED_MAPS = """#ksl = affine_map<(k, s, l, d) -> (k, s, l)>
#ksld = affine_map<(k, s, l, d) -> (k, s, l, d)>
"""
PARALLEL4 = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
NESTED_SETUP = f"""
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %ids, %c0 : tensor<?x2x{BAG}xi64>
  %room4 = tensor.empty(%b) : {NESTED}
  %room3 = tensor.empty(%b) : {NESTED_SUMS}
  %zeros = linalg.fill ins(%zero : f32) outs(%room3 : {NESTED_SUMS}) -> {NESTED_SUMS}"""


def with_table(name, head, load):
    """The table is no argument: `load` makes %t of the global in `head`."""
    return RaisedModel(
        name, module((f"%ids: {IDS}",), [SUMS], SETUP + load + gathered("rows", "%t", CAST) +
                     REDUCED + RETURN, head), (PerSample(),), ("sum",),
        lambda ids: [rows(CONSTANT, ids).sum(1)], runs="ml_program" not in head,
        options=("weights",), constants={"w": CONSTANT})


MODELS = [
    RaisedModel("gather", tensor_gather((1,), False), (Table("user"), PerSample((1,))),
                ("unpooled",), lambda t, ids: [rows(t, ids[:, 0])], runs=False),
    RaisedModel("gather-kept-dim", tensor_gather((1,), True), (Table("user"), PerSample((1,))),
                ("unpooled",), lambda t, ids: [rows(t, ids)], ((3, "f32"),), runs=False),
    RaisedModel("gather-sum", module(
        (ARGUMENTS[0], f"%indices: tensor<?x{BAG}x1xi64>"), [SUMS], f"""
  %ids = tensor.collapse_shape %indices [[0], [1, 2]] : tensor<?x{BAG}x1xi64> into {IDS}""" +
        SETUP + f"""
  %rows = tensor.gather %user[%indices] gather_dims([0])
    : ({TABLE}, tensor<?x{BAG}x1xi64>) -> {ROWS3}""" + REDUCED + RETURN),
                (Table("user"), PerSample((BAG, 1))), ("sum",),
                lambda t, ids: [rows(t, ids[:, :, 0]).sum(1)], runs=False),
    RaisedModel("linalg-rows", module(ARGUMENTS, [ROWS3], SETUP + gathered(
        "rows", "%user", CAST) + f"\n  return %rows : {ROWS3}"), TABLE_AND_IDS, ("unpooled",),
                lambda t, ids: [rows(t, ids)], ((3, "f32"),)),
    RaisedModel("linalg-rows-i32", module(
        (ARGUMENTS[0], f"%ids: tensor<?x{BAG}xi32>"), [ROWS3],
        SETUP.replace(IDS, f"tensor<?x{BAG}xi32>") +
        gathered("rows", "%user", CAST.replace("i64", "i32"), f"%ids : tensor<?x{BAG}xi32>",
                 "i32") + f"\n  return %rows : {ROWS3}"),
                (Table("user"), PerSample(element="i32")), ("unpooled",),
                lambda t, ids: [rows(t, ids)], ((3, "f32"),)),
    RaisedModel("linalg-checked-sum", module(ARGUMENTS, [SUMS], SETUP + gathered(
        "rows", "%user", CHECKED) + REDUCED + RETURN), TABLE_AND_IDS, ("sum",),
                lambda t, ids: [rows(t, ids).sum(1)]),
    RaisedModel("linalg-mean", module(ARGUMENTS, [SUMS], SETUP + THREE + gathered(
        "rows", "%user", CAST) + REDUCED + f"""
  %means = arith.divf %sums, %threes : {SUMS}
  return %means : {SUMS}"""), TABLE_AND_IDS, ("mean",), lambda t, ids: [rows(t, ids).mean(1)]),
    RaisedModel("linalg-mean-generic", module(ARGUMENTS, [SUMS], SETUP + THREE + gathered(
        "rows", "%user", CAST) + REDUCED + MEAN_BY_GENERIC), TABLE_AND_IDS, ("mean",),
                lambda t, ids: [rows(t, ids).mean(1)]),
    RaisedModel("linalg-fused-sum", module(ARGUMENTS, [SUMS], SETUP + FUSED_PLAIN + RETURN),
                TABLE_AND_IDS, ("sum",), lambda t, ids: [rows(t, ids).sum(1)]),
    RaisedModel("linalg-fused-weighted", module(
        (*ARGUMENTS, f"%w: {WEIGHTS}"), [SUMS], SETUP + FUSED + RETURN),
                (*TABLE_AND_IDS, PerSample(element="f32")), ("sum",),
                lambda t, ids, w: [(rows(t, ids) * w[..., None]).sum(1)]),
    RaisedModel("linalg-weighted", module(
        (*ARGUMENTS, f"%w: {WEIGHTS}"), [SUMS], SETUP + gathered("plain", "%user", CAST) +
        WEIGHED + REDUCED + RETURN), (*TABLE_AND_IDS, PerSample(element="f32")), ("sum",),
                lambda t, ids, w: [(rows(t, ids) * w[..., None]).sum(1)]),
    RaisedModel("linalg-clamped", module(ARGUMENTS, [SUMS], SETUP + gathered(
        "rows", "%user", CLAMPED) + REDUCED + RETURN),
                (Table("user"), PerSample(low=-9, high=ROWS + 9)), ("sum",),
                lambda t, ids: [rows(t, ids.clamp(0, ROWS - 1)).sum(1)]),
    RaisedModel("linalg-wrapped", module(ARGUMENTS, [SUMS], SETUP + gathered(
        "rows", "%user", WRAPPED) + REDUCED + RETURN),
                (Table("user"), PerSample(low=-ROWS)), ("sum",),
                lambda t, ids: [t[ids].sum(1)]),
    RaisedModel("linalg-read-in-body", module(ARGUMENTS, [SUMS], SETUP + gathered(
        "rows", "%user", READ) + REDUCED + RETURN), TABLE_AND_IDS, ("sum",),
                lambda t, ids: [rows(t, ids).sum(1)]),
    RaisedModel("linalg-f16-rows", module(
        (ARGUMENTS[0].replace("f32", "f16"), ARGUMENTS[1]), [ROWS3.replace("f32", "f16")],
        HALF + gathered("rows", "%user", CAST, element="f16") +
        f"\n  return %rows : {ROWS3.replace('f32', 'f16')}"),
                (Table("user", "f16"), PerSample()), ("unpooled",),
                lambda t, ids: [rows(t, ids)], ((3, "f16"),)),
    RaisedModel("linalg-f16-sum-in-f32", module(
        (ARGUMENTS[0].replace("f32", "f16"), ARGUMENTS[1]), [SUMS],
        HALF + gathered("half", "%user", CAST, element="f16") +
        f"\n  %rows = arith.extf %half : {ROWS3.replace('f32', 'f16')} to {ROWS3}" +
        REDUCED + RETURN), (Table("user", "f16"), PerSample()), ("sum",),
                lambda t, ids: [rows(t, ids).float().sum(1)]),
    RaisedModel("two-tables-and-rows", module(
        (*ARGUMENTS, f'%item: {TABLE} loc("item")'), [SUMS, ROWS3], SETUP +
        gathered("rows", "%user", CAST) + REDUCED + gathered("others", "%item", CAST) + f"""
  %more = linalg.reduce {{arith.addf}} ins(%others : {ROWS3}) outs(%zeros : {SUMS}) dimensions = [1]
  %both = arith.addf %sums, %more : {SUMS}
  return %both, %rows : {SUMS}, {ROWS3}"""), (*TABLE_AND_IDS, Table("item")),
                ("sum", "sum", "unpooled"),
                lambda t, ids, u: [rows(t, ids).sum(1) + rows(u, ids).sum(1), rows(t, ids)],
                ((2, "f32"), (3, "f32"))),
    with_table("memref-global", f'memref.global "private" constant @w : {MEMREF} = {DENSE}\n', f"""
  %buffer = memref.get_global @w : {MEMREF}
  %t = bufferization.to_tensor %buffer restrict : {MEMREF} to {TABLE}"""),
    with_table("ml-program-global", f"ml_program.global private @w({DENSE} : {TABLE}) : {TABLE}\n",
               f"""
  %t = ml_program.global_load_const @w : {TABLE}"""),
    with_table("constant", "", f'\n  %t = arith.constant {DENSE} : {TABLE} loc("w")'),
    RaisedModel("rows-and-sums-of-bags", module(
        (ARGUMENTS[0], f"%ids: tensor<?x2x{BAG}xi64>"), [NESTED, NESTED_SUMS], NESTED_SETUP + f"""
  %rows = linalg.generic {{indexing_maps = [#ksl, #ksld], {PARALLEL4}}}
      ins(%ids : tensor<?x2x{BAG}xi64>) outs(%room4 : {NESTED}) {{
  ^bb0(%id: i64, %out: f32):{CAST}
    %d = linalg.index 3 : index
    %x = tensor.extract %user[%i, %d] : {TABLE}
    linalg.yield %x : f32
  }} -> {NESTED}
  %sums = linalg.reduce {{arith.addf}} ins(%rows : {NESTED}) outs(%zeros : {NESTED_SUMS})
    dimensions = [2]
  return %rows, %sums : {NESTED}, {NESTED_SUMS}"""),
                (Table("user"), PerSample((2, BAG))), ("sum", "unpooled"),
                lambda t, ids: [rows(t, ids), rows(t, ids).sum(2)],
                ((4, "f32"), (3, "f32"))),
    RaisedModel("ids-after-a-result", module(
        (*ARGUMENTS, f'%item: {TABLE} loc("item")'), [SUMS, SUMS], SETUP +
        gathered("rows", "%user", CAST) + REDUCED + f"""
  %doubled = arith.addf %sums, %sums : {SUMS}
  %one = arith.constant 1 : i64
  %room_ids = tensor.empty(%b) : {IDS}
  %ones = linalg.fill ins(%one : i64) outs(%room_ids : {IDS}) -> {IDS}
  %halves = arith.shrsi %ids, %ones : {IDS}""" +
        gathered("others", "%item", CAST, "%halves : " + IDS) + f"""
  %more = linalg.reduce {{arith.addf}} ins(%others : {ROWS3}) outs(%zeros : {SUMS}) dimensions = [1]
  return %doubled, %more : {SUMS}, {SUMS}"""), (*TABLE_AND_IDS, Table("item")), ("sum", "sum"),
                lambda t, ids, u: [2 * rows(t, ids).sum(1), rows(u, ids // 2).sum(1)],
                ((2, "f32"), (2, "f32"))),
]
