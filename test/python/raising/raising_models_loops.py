"""Modules whose loops gather and add up rows."""

from raising_model import BAG, DIM, ROWS, Offsets, PerId, PerSample, RaisedModel, Table, bags, rows

TABLE = f"tensor<{ROWS}x{DIM}xf32>"
ROW = f"tensor<1x{DIM}xf32>"
SUMS = f"tensor<?x{DIM}xf32>"
USER = f'%user: {TABLE} loc("user")'


def module(arguments, body):
    return f"""module attributes {{neuroshard.batch = 8 : i64}} {{
func.func @forward({", ".join((USER, *arguments))}) -> {SUMS} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bag = arith.constant {BAG} : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : {ROW}{body}
  return %result : {SUMS}
}}
}}
"""


def slice_of(index, row="row", row_type=ROW):
    return f"""
      %{row} = tensor.extract_slice %user[{index}, 0] [1, {DIM}] [1, 1] : {TABLE} to {row_type}"""


def over_samples(count, body, inserted, row_type=ROW):
    return f"""
  %room = tensor.empty({count}) : {SUMS}
  %result = scf.for %i = %c0 to {count} step %c1 iter_args(%acc = %room) -> {SUMS} {{{body}
    %next = tensor.insert_slice {inserted} into %acc[%i, 0] [1, {DIM}] [1, 1] : {row_type} into {SUMS}
    scf.yield %next : {SUMS}
  }}"""


def over_bag(begin, end, ids, id_type, extra=""):
    """extra: between the row and the sum, which takes %term or %row."""
    term = "%term" if "%term" in extra else "%row"
    return f"""
    %sum = scf.for %j = {begin} to {end} step %c1 iter_args(%s = %zeros) -> {ROW} {{
      %id = tensor.extract {ids} : {id_type}
      %x = arith.index_cast %id : i64 to index{slice_of("%x")}{extra}
      %t = arith.addf %s, {term} : {ROW}
      scf.yield %t : {ROW}
    }}"""


FLAT = "tensor<?xi64>"
BAGS = f"tensor<?x{BAG}xi64>"
COUNT = f"""
  %n = tensor.dim %ids, %c0 : {FLAT}"""
READ_ID = f"""
    %id = tensor.extract %ids[%i] : {FLAT}
    %x = arith.index_cast %id : i64 to index"""
BATCH = f"""
  %n = tensor.dim %ids, %c0 : {BAGS}"""
OF_OFFSETS = f"""
  %entries = tensor.dim %offsets, %c0 : {FLAT}
  %n = arith.subi %entries, %c1 : index"""
BOUNDS = f"""
    %i1 = arith.addi %i, %c1 : index
    %first = tensor.extract %offsets[%i] : {FLAT}
    %last = tensor.extract %offsets[%i1] : {FLAT}
    %begin = arith.index_cast %first : i64 to index
    %end = arith.index_cast %last : i64 to index"""
WEIGH = f"""
      %w1 = tensor.extract %w[%j] : tensor<?xf32>
      %ws = tensor.splat %w1 : {ROW}
      %term = arith.mulf %row, %ws : {ROW}"""
WEIGH2 = WEIGH.replace("[%j] : tensor<?xf32>", f"[%i, %j] : tensor<?x{BAG}xf32>")
MEAN = f"""
    %least = arith.constant 1 : i64
    %length = arith.subi %last, %first : i64
    %count = arith.maxsi %length, %least : i64
    %number = arith.sitofp %count : i64 to f32
    %numbers = tensor.splat %number : {ROW}
    %mean = arith.divf %sum, %numbers : {ROW}"""
FIXED_MEAN = f"""
    %number = arith.constant {BAG}.0 : f32
    %numbers = tensor.splat %number : {ROW}
    %mean = arith.divf %sum, %numbers : {ROW}"""
FORALL = f"""
  %room = tensor.empty(%n) : {SUMS}
  %result = scf.forall (%i) in (%n) shared_outs(%out = %room) -> ({SUMS}) {{{READ_ID}{slice_of("%x")}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %row into %out[%i, 0] [1, {DIM}] [1, 1] : {ROW} into {SUMS}
    }}
  }}"""

# As torch-mlir lowers an embedding bag: over bags, ids and columns, whatever bag an id is of.
IN_ONE = f"""
  %n = tensor.dim %offsets, %c0 : {FLAT}
  %total = tensor.dim %ids, %c0 : {FLAT}
  %n64 = arith.index_cast %n : index to i64
  %total64 = arith.index_cast %total : index to i64
  %room = tensor.empty(%n) : {SUMS}
  %nothing = linalg.fill ins(%zero : f32) outs(%room : {SUMS}) -> {SUMS}
  %result = linalg.generic {{indexing_maps = [affine_map<(b, l, d) -> (l)>,
      affine_map<(b, l, d) -> (b)>, affine_map<(b, l, d) -> (b, d)>],
      iterator_types = ["parallel", "reduction", "parallel"]}}
      ins(%ids, %offsets : {FLAT}, {FLAT}) outs(%nothing : {SUMS}) {{
  ^bb0(%id: i64, %begin: i64, %sum: f32):
    %unit = arith.constant 1 : i64
    %b = linalg.index 0 : index
    %b64 = arith.index_cast %b : index to i64
    %next64 = arith.addi %b64, %unit : i64
    %next = arith.index_cast %next64 : i64 to index
    %last = arith.cmpi eq, %n64, %next64 : i64
    %other = tensor.extract %offsets[%next] : {FLAT}
    %end = arith.select %last, %total64, %other : i64
    %l = linalg.index 1 : index
    %l64 = arith.index_cast %l : index to i64
    %after = arith.cmpi slt, %begin, %l64 : i64
    %at = arith.cmpi eq, %begin, %l64 : i64
    %from = arith.ori %after, %at : i1
    %before = arith.cmpi slt, %l64, %end : i64
    %inside = arith.andi %from, %before : i1
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %user[%i, %d] : {TABLE}
    %more = arith.addf %x, %sum : f32
    %kept = arith.select %inside, %more, %sum : f32
    linalg.yield %kept : f32
  }} -> {SUMS}"""

# What a bag adds up, in one generic: a row times its weight, and a row of f16.
SAME = "affine_map<(r, d) -> (r, d)>"
SUM_OF_PRODUCT = f"""
      %w1 = tensor.extract %w[%j] : tensor<?xf32>
      %t = linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel", "parallel"]}}
          ins(%row : {ROW}) outs(%s : {ROW}) {{
      ^bb0(%x1: f32, %s1: f32):
        %product = arith.mulf %x1, %w1 : f32
        %more = arith.addf %product, %s1 : f32
        linalg.yield %more : f32
      }} -> {ROW}"""
HALF_ROW = ROW.replace("f32", "f16")
SUM_OF_HALF = f"""
      %t = linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel", "parallel"]}}
          ins(%row : {HALF_ROW}) outs(%s : {ROW}) {{
      ^bb0(%x1: f16, %s1: f32):
        %wide = arith.extf %x1 : f16 to f32
        %more = arith.addf %s1, %wide : f32
        linalg.yield %more : f32
      }} -> {ROW}"""
EXTEND = f"""
      %term = arith.extf %row : {HALF_ROW} to {ROW}"""


def added_by(text, body):
    """A module whose bags are added up by %t of `body`."""
    line = f"\n      %t = arith.addf %s, %row : {ROW}"
    assert text.count(line) == 1
    return text.replace(line, body)


def of_half(text):
    """A module whose table has f16."""
    half = TABLE.replace("f32", "f16")
    return text.replace(f"{TABLE} to {ROW}", f"{half} to {HALF_ROW}").replace(TABLE, half)


IDS1 = (f"%ids: {FLAT}",)
IDS2 = (f"%ids: {BAGS}",)
IDS_OFFSETS = (f"%offsets: {FLAT}", f"%ids: {FLAT}")
OFFSET_ARGUMENTS = (Table("user"), Offsets(), PerId())
FIXED_SUM = over_bag("%c0", "%bag", "%ids[%i, %j]", BAGS)
OFFSET_SUM = over_bag("%begin", "%end", "%ids[%j]", FLAT)

MODELS = [
    RaisedModel("for-rows", module(IDS1, COUNT + over_samples("%n", READ_ID + slice_of("%x"),
                                                              "%row")),
                (Table("user"), PerSample(())), ("unpooled",), lambda t, ids: [rows(t, ids)]),
    RaisedModel("for-reduced-rows", module(IDS1, COUNT + over_samples(
        "%n", READ_ID + slice_of("%x", row_type=f"tensor<{DIM}xf32>"), "%row",
        f"tensor<{DIM}xf32>")),
                (Table("user"), PerSample(())), ("unpooled",), lambda t, ids: [rows(t, ids)]),
    RaisedModel("forall-rows", module(IDS1, COUNT + FORALL), (Table("user"), PerSample(())),
                ("unpooled",), lambda t, ids: [rows(t, ids)]),
    RaisedModel("for-fixed-sum", module(IDS2, BATCH + over_samples("%n", FIXED_SUM, "%sum")),
                (Table("user"), PerSample()), ("sum",), lambda t, ids: [rows(t, ids).sum(1)]),
    RaisedModel("for-fixed-weighted", module((*IDS2, f"%w: tensor<?x{BAG}xf32>"),
                                             BATCH + over_samples("%n", over_bag(
        "%c0", "%bag", "%ids[%i, %j]", BAGS, WEIGH2), "%sum")),
                (Table("user"), PerSample(), PerSample(element="f32")), ("sum",),
                lambda t, ids, w: [(rows(t, ids) * w[..., None]).sum(1)]),
    RaisedModel("for-fixed-mean", module(IDS2, BATCH + over_samples(
        "%n", FIXED_SUM + FIXED_MEAN, "%mean")),
                (Table("user"), PerSample()), ("mean",), lambda t, ids: [rows(t, ids).mean(1)]),
    # Two of three ids: a part of each row.
    RaisedModel("for-part-of-bags", module(IDS2, BATCH + """
  %two = arith.constant 2 : index""" + over_samples("%n", over_bag(
        "%c0", "%two", "%ids[%i, %j]", BAGS), "%sum")),
                (Table("user"), PerSample()), ("sum",),
                lambda t, ids: [rows(t, ids[:, :2]).sum(1)]),
    RaisedModel("for-offsets-sum", module(IDS_OFFSETS, OF_OFFSETS + over_samples(
        "%n", BOUNDS + OFFSET_SUM, "%sum")), OFFSET_ARGUMENTS, ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)]),
    RaisedModel("for-offsets-valid", module(IDS_OFFSETS, OF_OFFSETS + over_samples(
        "%n", BOUNDS + OFFSET_SUM, "%sum")), OFFSET_ARGUMENTS, ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)], options=("valid",)),
    RaisedModel("for-offsets-from-two", module(IDS_OFFSETS, OF_OFFSETS + over_samples(
        "%n", BOUNDS + OFFSET_SUM, "%sum")), (Table("user"), Offsets(first=2), PerId()), ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)]),
    RaisedModel("for-offsets-weighted", module((*IDS_OFFSETS, "%w: tensor<?xf32>"),
                                               OF_OFFSETS + over_samples("%n", BOUNDS + over_bag(
        "%begin", "%end", "%ids[%j]", FLAT, WEIGH), "%sum")),
                (Table("user"), Offsets(first=1), PerId(), PerId("f32")), ("sum",),
                lambda t, offsets, ids, w: [bags(t, ids, offsets, w)]),
    RaisedModel("for-offsets-weighted-generic", added_by(module(
        (*IDS_OFFSETS, "%w: tensor<?xf32>"), OF_OFFSETS + over_samples(
            "%n", BOUNDS + OFFSET_SUM, "%sum")), SUM_OF_PRODUCT),
                (Table("user"), Offsets(), PerId(), PerId("f32")), ("sum",),
                lambda t, offsets, ids, w: [bags(t, ids, offsets, w)]),
    RaisedModel("for-offsets-f16-generic", of_half(added_by(module(
        IDS_OFFSETS, OF_OFFSETS + over_samples("%n", BOUNDS + OFFSET_SUM, "%sum")), SUM_OF_HALF)),
                (Table("user", "f16"), Offsets(), PerId()), ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)]),
    RaisedModel("for-fixed-f16", of_half(module(IDS2, BATCH + over_samples("%n", over_bag(
        "%c0", "%bag", "%ids[%i, %j]", BAGS, EXTEND), "%sum"))),
                (Table("user", "f16"), PerSample()), ("sum",),
                lambda t, ids: [rows(t, ids).float().sum(1)]),
    RaisedModel("bag-in-one-generic", module(IDS_OFFSETS, IN_ONE),
                (Table("user"), Offsets(last=False), PerId()), ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)]),
    RaisedModel("bag-in-one-generic-from-two", module(IDS_OFFSETS, IN_ONE),
                (Table("user"), Offsets(last=False, first=2), PerId()), ("sum",),
                lambda t, offsets, ids: [bags(t, ids, offsets)]),
    RaisedModel("for-offsets-mean", module(IDS_OFFSETS, OF_OFFSETS + over_samples(
        "%n", BOUNDS + OFFSET_SUM + MEAN, "%mean")), OFFSET_ARGUMENTS, ("mean",),
                lambda t, offsets, ids: [bags(t, ids, offsets, mode="mean")]),
]
