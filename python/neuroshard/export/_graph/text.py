"""Writes an exported model as logical IR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuroshard.export._graph.linalg import Signature, signature_of, split_linalg
from neuroshard.export._signature import Dense, Input, Lookup, Table, Value
from neuroshard.export._trace.locations import quote
from neuroshard.tables import Optimizer

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


@dataclass(frozen=True)
class ModuleText:
    """What a module is written from. dense: None leaves a @forward that returns the rows."""

    name: str
    batch: int
    tables: Sequence[Table]
    optimizers: Mapping[str, Optimizer]
    inputs: Sequence[Input]
    lookups: Sequence[Lookup]
    mean_pooling: Mapping[tuple, float]
    dense: Dense | None

    def __str__(self) -> str:
        header, functions = self._dense_function()
        body = [self._table(table) for table in self.tables]
        lines = [*header, *map(self._alias, self.inputs),
                 f"module {symbol(self.name)} attributes {{neuroshard.batch = {self.batch} : i64}} "
                 "{", *("  " + line for line in body), *functions, *self._forward(), "}"]
        return "\n".join(lines) + "\n"

    def _alias(self, one: Input) -> str:
        names = ", ".join(map(quote, one.features))
        weighted = ", weighted" if one.weighted else ""
        return f"!{one.name} = !neuroshard.jagged<[{names}], {one.id_type}{weighted}>"

    def _table(self, table: Table) -> str:
        optimizer = self.optimizers.get(table.name)
        trained = f" {{optimizer = {optimizer_text(optimizer)}}}" if optimizer else ""
        return (f"neuroshard.table private {symbol(table.name)} : {table.rows} x {table.dim} x "
                f"{table.type}{trained} loc({quote(table.parameter)})")

    def _dense_function(self) -> tuple[list[str], list[str]]:
        """Lines before the module, and lines in it."""
        if self.dense is None:
            return [], []
        if self.dense.linalg is not None:
            return split_linalg(self.dense.linalg)
        types = ", ".join([*(shaped_type(one) for one in self.lookups),
                           *map(value_type, self.dense.inputs)])
        results = ", ".join(map(value_type, self.dense.tensors))
        return [], [f"  func.func private @dense({types}) -> ({results})"]

    def _forward(self) -> list[str]:
        body = _Body()
        arguments = [f"%{one.name}: !{one.name} loc({quote(one.name)})" for one in self.inputs]
        values = [self._lookup(one, body) for one in self.lookups]
        if self.dense is not None:
            values = [_reshape(one, rows, body) for one, (rows, _) in zip(self.lookups, values)]
            plain = [*self.dense.inputs, *(self.dense.parameters if self.dense.linalg else [])]
            given = [f"%{one.name}: {value_type(one)} loc({quote(one.parameter or one.name)})"
                     for one in plain]
            inputs = len(self.dense.inputs)
            arguments = [*given[:inputs], *arguments, *given[inputs:]]
            values = self._call([*values, *((f"%{one.name}", value_type(one)) for one in plain)],
                                body)
        names, types = (", ".join(part) for part in zip(*values))
        return [f"  func.func @forward({', '.join(arguments)}) -> ({types}) {{",
                *("    " + line for line in body.lines), f"    return {names} : {types}",
                f"  }} loc({quote(self.name)})"]

    def _lookup(self, one: Lookup, body: _Body) -> tuple[str, str]:
        input_ = self.inputs[one.input]
        weighted = " weighted" if one.weighted else ""
        padding = "" if one.padding_idx is None else f" padding_idx {one.padding_idx}"
        mean = self.mean_pooling[one.input, one.feature]
        type_ = row_type(one)
        return body.add(
            f"neuroshard.lookup {one.pooling} {symbol(one.table)}[%{input_.name}, "
            f"{quote(one.feature)}]{weighted}{padding} {{stats = #neuroshard.feature<mean = "
            f"{decimal(mean)}>}} : !{input_.name} -> {type_} {one.location}"), type_

    def _call(self, values: list[tuple[str, str]], body: _Body) -> list[tuple[str, str]]:
        """Adds the call of @dense, and casts where torch-mlir knows more or fewer sizes."""
        wanted = tuple(map(value_type, self.dense.tensors))
        signature = signature_of(self.dense.linalg) if self.dense.linalg else Signature(
            tuple(type_ for _, type_ in values), wanted)
        given = ", ".join(_cast(*value, expected, body)
                          for value, expected in zip(values, signature.arguments, strict=True))
        call = body.add(f"call @dense({given}) : ({', '.join(signature.arguments)}) -> "
                        f"({', '.join(signature.results)})", len(wanted))
        return [(_cast(f"{call}#{number}", found, type_, body), type_)
                for number, (found, type_) in enumerate(zip(signature.results, wanted,
                                                            strict=True))]


class _Body:
    """Lines of a function. Values are numbered, so that none has the name of an argument."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values = 0

    def add(self, text: str, results: int | None = None) -> str:
        """The value, or with a number the pack of results, that the text gives."""
        name = f"%{self._values}"
        self._values += 1
        self.lines.append(f"{name}{'' if results is None else f':{results}'} = {text}")
        return name


def _reshape(one: Lookup, rows: str, body: _Body) -> tuple[str, str]:
    """Rows [n, dim] in the shape that the model has them in."""
    if len(one.shape) == 2:
        return rows, row_type(one)
    zero = body.add("arith.constant 0 : index")
    size = body.add(f"arith.constant {one.rows_per_sample} : index")
    count = body.add(f"tensor.dim {rows}, {zero} : {row_type(one)}")
    batch = body.add(f"arith.divui {count}, {size} : index")
    inner, sizes = list(range(len(one.shape) - 1)), ", ".join(map(str, one.shape[1:]))
    shaped = shaped_type(one)
    return body.add(f"tensor.expand_shape {rows} [{inner}, [{len(inner)}]] output_shape "
                    f"[{batch}, {sizes}] : {row_type(one)} into {shaped}"), shaped


def _cast(value: str, found: str, expected: str, body: _Body) -> str:
    if found == expected:
        return value
    return body.add(f"tensor.cast {value} : {found} to {expected}")


def symbol(name: str) -> str:
    return f"@{name}" if _BARE.fullmatch(name) else f"@{quote(name)}"


def value_type(one: Value) -> str:
    sizes = "".join("?x" if size is None else f"{size}x" for size in one.shape)
    return f"tensor<{sizes}{one.type}>"


def row_type(one: Lookup) -> str:
    return f"tensor<?x{one.dim}x{one.type}>"


def shaped_type(one: Lookup) -> str:
    sizes = "".join(f"{size}x" for size in one.shape[1:])
    return f"tensor<?x{sizes}{one.type}>"


def optimizer_text(optimizer: Optimizer) -> str:
    plain = Optimizer(optimizer.kind)
    settings = "".join(
        f", {name} = {decimal(getattr(optimizer, name))}"
        for name in ("eps", "beta1", "beta2", "initial_accumulator", "weight_decay", "l1_penalty",
                     "l2_penalty", "eta", "counter_halflife", "adjustment_iter", "adjustment_ub",
                     "max_gradient")
        if getattr(optimizer, name) != getattr(plain, name))
    if optimizer.weight_decay_mode != plain.weight_decay_mode:
        settings += f", weight_decay_mode = {optimizer.weight_decay_mode}"
    if optimizer.stochastic_rounding:
        settings += ", stochastic_rounding"
    if optimizer.catch_up:
        settings += ", catch_up"
    return f"#neuroshard.optimizer<{optimizer.kind}{settings}>"


def decimal(value: float) -> str:
    """Exact, and with the point that MLIR wants."""
    text = repr(float(value))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
