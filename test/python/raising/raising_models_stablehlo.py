"""Modules of StableHLO, as it prints them in generic form. Ids that are out of range are moved
into the table."""

from raising_model import BAG, DIM, ROWS, PerSample, RaisedModel, Table, rows

TABLE = f"tensor<{ROWS}x{DIM}xf32>"
SAMPLES = 6
USER = f'%user: {TABLE} loc("user")'


def shape(*sizes, element="f32"):
    return f"tensor<{'x'.join(map(str, sizes))}x{element}>"


def numbers(offset, vector):
    return (f"dimension_numbers = #stablehlo.gather<offset_dims = [{offset}], "
            f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {vector}>")


def module(arguments, result, body):
    return f"""module attributes {{neuroshard.batch = 6 : i64}} {{
func.func @forward({", ".join((USER, *arguments))}) -> {result} {{{body}
}}
}}
"""


def gather(ids, ids_type, rows_type, offset, vector):
    return f"""
  %rows = "stablehlo.gather"(%user, {ids}) <{{{numbers(offset, vector)}, indices_are_sorted = false, slice_sizes = array<i64: 1, {DIM}>}}> : ({TABLE}, {ids_type}) -> {rows_type}"""


def reduced(batch, rows="%rows"):
    return f"""
  %zero = "stablehlo.constant"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
  %sums = "stablehlo.reduce"({rows}, %zero) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%a: tensor<f32>, %c: tensor<f32>):
    %s = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }}) : ({shape(batch, BAG, DIM)}, tensor<f32>) -> {shape(batch, DIM)}"""


def result(name, kind):
    return f"\n  return %{name} : {kind}"


IDS = shape("?", BAG, element="i64")
STATIC = shape(SAMPLES, BAG, element="i32")
ANY = PerSample(low=-9, high=ROWS + 9)


def taken(table, ids):
    return rows(table, ids.clamp(0, ROWS - 1))


DYNAMIC = f"""
  %sizes = "stablehlo.constant"() <{{value = dense<[1, {DIM}]> : tensor<2xi64>}}> : () -> tensor<2xi64>
  %rows = "stablehlo.dynamic_gather"(%user, %ids, %sizes) <{{{numbers(2, 2)}}}> : ({TABLE}, {IDS}, tensor<2xi64>) -> {shape("?", BAG, DIM)}"""
RESHAPED = f"""
  %indices = "stablehlo.reshape"(%ids) : ({STATIC}) -> {shape(SAMPLES, BAG, 1, element="i32")}"""
BROADCAST = RESHAPED.replace('"stablehlo.reshape"(%ids)', '"stablehlo.broadcast_in_dim"(%ids) '
                             "<{broadcast_dimensions = array<i64: 0, 1>}>")
MEANS = f"""
  %three = "stablehlo.constant"() <{{value = dense<{BAG}.0> : {shape(SAMPLES, DIM)}}}> : () -> {shape(SAMPLES, DIM)}
  %means = "stablehlo.divide"(%sums, %three) : ({shape(SAMPLES, DIM)}, {shape(SAMPLES, DIM)}) -> {shape(SAMPLES, DIM)}"""
WEIGHED = f"""
  %w3 = "stablehlo.broadcast_in_dim"(%w) <{{broadcast_dimensions = array<i64: 0, 1>}}> : ({shape(SAMPLES, BAG)}) -> {shape(SAMPLES, BAG, DIM)}
  %weighed = "stablehlo.multiply"(%rows, %w3) : ({shape(SAMPLES, BAG, DIM)}, {shape(SAMPLES, BAG, DIM)}) -> {shape(SAMPLES, BAG, DIM)}"""

MODELS = [
    RaisedModel("stablehlo-gather", module(
        (f"%ids: {IDS}",), shape("?", BAG, DIM), gather("%ids", IDS, shape("?", BAG, DIM), 2, 2) +
        result("rows", shape("?", BAG, DIM))),
                (Table("user"), ANY), ("unpooled",), lambda t, ids: [taken(t, ids)],
                ((3, "f32"),), runs=False),
    RaisedModel("stablehlo-gather-vector", module(
        (f"%ids: {shape('?', 1, element='i64')}",), shape("?", DIM),
        gather("%ids", shape("?", 1, element="i64"), shape("?", DIM), 1, 1) +
        result("rows", shape("?", DIM))),
                (Table("user"), PerSample((1,), low=-9, high=ROWS + 9)), ("unpooled",),
                lambda t, ids: [taken(t, ids[:, 0])], runs=False),
    RaisedModel("stablehlo-sum", module(
        (f"%ids: {IDS}",), shape("?", DIM), gather("%ids", IDS, shape("?", BAG, DIM), 2, 2) +
        reduced("?") + result("sums", shape("?", DIM))),
                (Table("user"), ANY), ("sum",), lambda t, ids: [taken(t, ids).sum(1)], runs=False),
    RaisedModel("stablehlo-valid-sum", module(
        (f"%ids: {IDS}",), shape("?", DIM), gather("%ids", IDS, shape("?", BAG, DIM), 2, 2) +
        reduced("?") + result("sums", shape("?", DIM))),
                (Table("user"), PerSample()), ("sum",), lambda t, ids: [rows(t, ids).sum(1)],
                runs=False, options=("valid",)),
    RaisedModel("stablehlo-dynamic-sum", module(
        (f"%ids: {IDS}",), shape("?", DIM), DYNAMIC + reduced("?") +
        result("sums", shape("?", DIM))), (Table("user"), ANY), ("sum",),
                lambda t, ids: [taken(t, ids).sum(1)], runs=False),
    RaisedModel("stablehlo-mean", module(
        (f"%ids: {STATIC}",), shape(SAMPLES, DIM), RESHAPED +
        gather("%indices", shape(SAMPLES, BAG, 1, element="i32"), shape(SAMPLES, BAG, DIM), 2, 2) +
        reduced(SAMPLES) + MEANS + result("means", shape(SAMPLES, DIM))),
                (Table("user"), PerSample(element="i32", low=-9, high=ROWS + 9)), ("mean",),
                lambda t, ids: [taken(t, ids).mean(1)], runs=False, samples=SAMPLES),
    RaisedModel("stablehlo-weighted", module(
        (f"%ids: {STATIC}", f"%w: {shape(SAMPLES, BAG)}"), shape(SAMPLES, DIM), BROADCAST +
        gather("%indices", shape(SAMPLES, BAG, 1, element="i32"), shape(SAMPLES, BAG, DIM), 2, 2) +
        WEIGHED + reduced(SAMPLES, "%weighed") + result("sums", shape(SAMPLES, DIM))),
                (Table("user"), PerSample(element="i32"), PerSample(element="f32")), ("sum",),
                lambda t, ids, w: [(taken(t, ids) * w[..., None]).sum(1)], runs=False,
                samples=SAMPLES),
]
