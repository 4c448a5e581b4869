"""Runs reference.so: level 1 lowered to naive loops, the truth for level 5.

Every function takes the tables it reads after its other arguments, in the order of the
model: the weights, and, where they are updated, the states.
"""

import ctypes

from support.host import Function

JAGGED = {"kind": "jagged"}


def tensor_spec(type_, rank):
    return {"kind": "tensor", "type": type_, "shape": [-1] * rank}


class Reference:
    """Weights and states are this object's own copies; an update changes them in place."""

    def __init__(self, artifact, model):
        self.library = ctypes.CDLL(str(artifact / "reference.so"))
        self.model = model
        self.weights = {}
        self.states = {}

    def set_table(self, name, weights, states):
        self.weights[name] = weights.clone().contiguous()
        # Without shards a row-wise optimizer has one state per row.
        self.states[name] = [(s[:, 0] if self.is_rowwise(name) else s).clone().contiguous()
                             for s in states]

    def is_rowwise(self, name):
        optimizer = self.model.table(name).optimizer
        return optimizer is not None and optimizer.kind == "rowwise_adagrad"

    def get_states(self, name):
        return [s.unsqueeze(1) if s.dim() == 1 else s for s in self.states[name]]

    def tables_of_forward(self):
        read = {lookup.table for _, lookup in self.model.lookups()}
        return [(table, False) for table in self.model.tables if table.name in read]

    def tables_of_update(self):
        """(table, with states): those with an optimizer, and those whose rows the gradient
        of sample weights reads."""
        weighted = {lookup.table for _, lookup in self.model.lookups() if lookup.weighted}
        return [(table, bool(table.optimizer)) for table, _ in self.tables_of_forward()
                if table.optimizer or table.name in weighted]

    def call(self, name, values, arguments, results):
        """Calls nsrt_invoke_<name>; arguments and results are manifest-like specs."""
        function = Function({"args": arguments, "results": results})
        frame = function.frame(None, values)
        entry = getattr(self.library, f"nsrt_invoke_{name}")
        entry.restype, entry.argtypes = None, [ctypes.c_void_p]
        entry(ctypes.addressof(frame.pointers))
        return function.take_results(frame) if frame.results is not None else []

    def table_arguments(self, tables):
        values, specs = [], []
        for table, with_states in tables:
            for value in [self.weights[table.name],
                          *(self.states[table.name] if with_states else [])]:
                values.append(value)
                specs.append(tensor_spec("f32", value.dim()))
        return values, specs

    def forward(self, batches, others=(), other_specs=(), result_types=None):
        """Results of @forward for one Jagged per input of the model."""
        values, specs = self.table_arguments(self.tables_of_forward())
        result_types = result_types or [lookup.result for _, lookup in self.model.lookups()]
        return self.call("forward", [*batches, *others, *values],
                         [JAGGED] * len(batches) + list(other_specs) + specs,
                         [tensor_spec(type_, 2) for type_ in result_types])

    def update(self, batches, gradients, learning_rate, number):
        """One training step; gives the gradients of the sample weights."""
        values, specs = self.table_arguments(self.tables_of_update())
        gradient_specs = [tensor_spec("f32", 2)] * len(gradients)
        scalars = [{"kind": "scalar", "type": "f32"}, {"kind": "scalar", "type": "i64"}]
        read = [input_ for input_ in self.model.inputs
                if any(lookup.weighted for lookup in input_.lookups)]
        return self.call("embeddings_update",
                         [*batches, *gradients, learning_rate, number, *values],
                         [JAGGED] * len(batches) + gradient_specs + scalars + specs,
                         [tensor_spec("f32", 1) for _ in read])
