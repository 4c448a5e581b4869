"""Writes an exported model as logical IR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuroshard.export.linalg import Signature, signature_of, split_linalg
from neuroshard.export.locations import quote
from neuroshard.export.program import Dense, Input, Lookup, Table, Value
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
        arguments = [f"%{one.name}: !{one.name} loc({quote(one.name)})" for one in self.inputs]
        values = [(f"%rows_{number}", row_type(one)) for number, one in enumerate(self.lookups)]
        lines = [self._lookup(number, one) for number, one in enumerate(self.lookups)]
        if self.dense is not None:
            values = [self._shape(one, value[0], lines) for one, value in zip(self.lookups, values)]
            plain = [*self.dense.inputs, *(self.dense.parameters if self.dense.linalg else [])]
            given = [f"{value_name(one)}: {value_type(one)} loc({quote(one.parameter or one.name)})"
                     for one in plain]
            inputs = len(self.dense.inputs)
            arguments = [*given[:inputs], *arguments, *given[inputs:]]
            values += [(value_name(one), value_type(one)) for one in plain]
            values = self._call(values, lines)
        names, types = (", ".join(part) for part in zip(*values))
        return [f"  func.func @forward({', '.join(arguments)}) -> ({types}) {{",
                *("    " + line for line in lines), f"    return {names} : {types}",
                f"  }} loc({quote(self.name)})"]

    def _lookup(self, number: int, one: Lookup) -> str:
        input_ = self.inputs[one.input]
        weighted = " weighted" if one.weighted else ""
        padding = "" if one.padding_idx is None else f" padding_idx {one.padding_idx}"
        mean = self.mean_pooling[one.input, one.feature]
        return (f"%rows_{number} = neuroshard.lookup {one.pooling} {symbol(one.table)}"
                f"[%{input_.name}, {quote(one.feature)}]{weighted}{padding} "
                f"{{stats = #neuroshard.feature<mean = {decimal(mean)}>}} : !{input_.name} -> "
                f"{row_type(one)} {one.location}")

    @staticmethod
    def _shape(one: Lookup, rows: str, lines: list[str]) -> tuple[str, str]:
        """Adds what gives rows [n, dim] the shape that the model has them in."""
        if len(one.shape) == 2:
            return rows, row_type(one)
        name, shaped = rows.replace("%rows", "%shaped"), shaped_type(one)
        sizes = ", ".join(map(str, one.shape[1:]))
        lines += [f"{name}_zero = arith.constant 0 : index",
                  f"{name}_size = arith.constant {one.rows_per_sample} : index",
                  f"{name}_rows = tensor.dim {rows}, {name}_zero : {row_type(one)}",
                  f"{name}_batch = arith.divui {name}_rows, {name}_size : index",
                  f"{name} = tensor.expand_shape {rows} "
                  f"[{list(range(len(one.shape) - 1))}, [{len(one.shape) - 1}]] output_shape "
                  f"[{name}_batch, {sizes}] : {row_type(one)} into {shaped}"]
        return name, shaped

    def _call(self, values: list[tuple[str, str]], lines: list[str]) -> list[tuple[str, str]]:
        """Adds the call of @dense, and casts where torch-mlir knows more or fewer sizes."""
        dense = self.dense
        results = [value_type(one) for one in dense.tensors]
        signature = signature_of(dense.linalg) if dense.linalg else Signature(
            tuple(type_ for _, type_ in values), tuple(results))
        given = [_cast(value, type_, expected, f"%given_{number}", lines)
                 for number, ((value, type_), expected) in enumerate(zip(values,
                                                                         signature.arguments))]
        count = len(results)
        lines.append(f"%results:{count} = call @dense({', '.join(given)}) : "
                     f"({', '.join(signature.arguments)}) -> ({', '.join(signature.results)})")
        return [(_cast(f"%results#{number}", found, type_, f"%result_{number}", lines), type_)
                for number, (found, type_) in enumerate(zip(signature.results, results))]


def _cast(value: str, found: str, expected: str, name: str, lines: list[str]) -> str:
    if found == expected:
        return value
    lines.append(f"{name} = tensor.cast {value} : {found} to {expected}")
    return name


def symbol(name: str) -> str:
    return f"@{name}" if _BARE.fullmatch(name) else f"@{quote(name)}"


def value_name(one: Value) -> str:
    return f"%{one.name}"


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
        for name in ("eps", "beta1", "beta2", "initial_accumulator", "weight_decay")
        if getattr(optimizer, name) != getattr(plain, name))
    return f"#neuroshard.optimizer<{optimizer.kind}{settings}>"


def decimal(value: float) -> str:
    """Exact, and with the point that MLIR wants."""
    text = repr(float(value))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
