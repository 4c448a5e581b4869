"""Cuts a traced graph into what makes the ids and what is done with the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from neuroshard.export._graph.embeddings import Found
from neuroshard.export.errors import ExportError
from neuroshard.export._trace.locations import describe
from neuroshard.export._trace.sizes import size_of

_ASSERTIONS = ("aten._assert_scalar", "aten._assert_async", "aten._functional_assert_async")


def needed_by(results: Iterable[object], stops: Iterable[Node] = ()) -> set[Node]:
    """All nodes that the results depend on, without those behind `stops`."""
    stops = set(stops)
    needed: set[Node] = set()
    stack = [one for one in results if isinstance(one, Node)]
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        if node not in stops:
            stack.extend(node.all_input_nodes)
    return needed


def checks_in(graph: Graph) -> list[Node]:
    """Assertions on values, such as of torch._check, which nothing reads: they stay in the part
    that has what they check. A size is no less than 0 anyway."""
    return [node for node in graph.nodes
            if str(node.target).startswith(_ASSERTIONS) and not _holds(node.args[0])]


def _holds(condition: object) -> bool:
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    expression = value.node.expr if isinstance(value, torch.SymBool) else None
    return isinstance(expression, sympy.Ge) and expression.rhs == 0 and expression.lhs.is_symbol


def _inputs(program: torch.export.ExportedProgram, needed: set[Node]) -> list[Node]:
    """Inputs that are needed, the model's own tensors after the arguments."""
    arguments = set(program.graph_signature.user_inputs)
    inputs = [node for node in program.graph.nodes
              if node.op == "placeholder" and node in needed]
    return sorted(inputs, key=lambda node: node.name not in arguments)


def extract(program: torch.export.ExportedProgram, results: Sequence[Node],
            kept: Iterable[Node]) -> tuple[GraphModule, list[str]]:
    """The part of the graph that makes the results, and the names of the inputs it takes."""
    needed, kept = needed_by(results), set(kept)
    checks = [node for node in checks_in(program.graph) if not kept & needed_by([node])]
    for node in kept:
        if node in needed:
            raise ExportError(f"ids, offsets or sample weights of a lookup are computed from the "
                              f"rows of {describe(node)}; expected them to come from the inputs")
    needed |= needed_by(checks)
    graph = Graph()
    inputs = _inputs(program, needed)
    copies = {node: graph.node_copy(node) for node in inputs}
    for node in program.graph.nodes:
        if node in needed and node not in copies:
            copies[node] = graph.node_copy(node, lambda one: copies[one])
    graph.output(tuple(copies[one] for one in results))
    return GraphModule(program.graph_module, graph), [node.name for node in inputs]


class DensePart:
    """Everything but the lookups, whose rows are its first inputs.

    module(rows_0, rows_1, ..., *inputs): rows in the shapes that the model has them in; inputs
    are those of the program, by name, the model's own tensors last."""

    def __init__(self, program: torch.export.ExportedProgram, found: Sequence[Found]) -> None:
        self._graph = Graph()
        self._copies: dict[Node, Node] = {}
        self._sizes = _sizes_of(found)
        self.results: list[object] = list(program.graph.output_node().args[0])
        sized = [node for node in program.graph.nodes if self._size(node)]
        rows_of = {one.node for one in found}
        checks = [node for node in checks_in(program.graph) if rows_of & needed_by([node])]
        needed = needed_by([*self.results, *checks], [*sized, *rows_of])
        inputs = _inputs(program, needed)
        self.inputs = [node.name for node in inputs]
        rows = [self._graph.placeholder(f"rows_{number}") for number in range(len(found))]
        self._copies.update((node, self._graph.node_copy(node)) for node in inputs)
        self._copies.update((one.node, value) for one, value in zip(found, rows))
        for node in program.graph.nodes:
            if node in needed and node not in self._copies:
                self._copies[node] = self._copy(node)
        self._graph.output(tuple(self._copies[one] if isinstance(one, Node) else one
                                 for one in self.results))
        self.module = GraphModule(program.graph_module, self._graph)

    def _size(self, node: Node) -> tuple[Node, int] | None:
        """The size of a lookup's rows that this number equals: no input is needed for its size
        alone."""
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.SymInt):
            return None
        return self._sizes.get(value.node.expr)

    def _copy(self, node: Node) -> Node:
        if size := self._size(node):
            return self._graph.call_function(torch.ops.aten.sym_size.int,
                                             (self._copies[size[0]], size[1]))
        return self._graph.node_copy(node, lambda one: self._copies[one])


def shape_of_rows(one: Found) -> tuple[int | None, ...]:
    """The shape in which the model has the rows of a lookup; None: depends on the data."""
    sizes = map(size_of, one.node.meta["val"].shape)
    shape = tuple(size if isinstance(size, int) else None for size in sizes)
    if None in shape[1:]:
        raise ExportError(f"{describe(one.call)}: expected ids [batch, ...] in which only the "
                          f"batch is dynamic, found {tuple(one.node.meta['val'].shape)}")
    return shape


def _sizes_of(found: Iterable[Found]) -> dict[object, tuple[Node, int]]:
    sizes: dict[object, tuple[Node, int]] = {}
    for one in found:
        for position, size in enumerate(map(size_of, one.node.meta["val"].shape)):
            if not isinstance(size, int):
                sizes.setdefault(size, (one.node, position))
    return sizes
