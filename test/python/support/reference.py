"""Runs reference.so: level 1 lowered to naive loops, the truth for level 5.

Its functions are described in the manifest: they take the weights and states of the tables
that they use as arguments.
"""

import ctypes
import json

from support.host import Function
from support.optimizers import STATES


class Reference:
    """Weights and states are this object's own copies; an update changes them in place."""

    def __init__(self, artifact, model):
        manifest = json.loads((artifact / "manifest.json").read_text())
        self.library = ctypes.CDLL(str(artifact / manifest["reference"]["library"]))
        self.functions = manifest["reference"]["functions"]
        self.names = [table["name"] for table in manifest["tables"]]
        self.model = model
        self.weights = {}
        self.states = {}

    def set_table(self, name, weights, states):
        self.weights[name] = weights.clone().contiguous()
        optimizer = self.model.table(name).optimizer
        # Without shards a state per row has one value.
        self.states[name] = [
            (state[:, 0] if width is None else state).clone().contiguous()
            for state, width in zip(states, STATES[optimizer.kind] if optimizer else (), strict=True)]

    def get_states(self, name):
        return [s.unsqueeze(1) if s.dim() == 1 else s for s in self.states[name]]

    def argument(self, spec, values):
        """The value of one argument: a table's memory, or the next of `values`."""
        if spec["kind"] == "weights":
            return self.weights[self.names[spec["table"]]]
        if spec["kind"] == "state":
            return self.states[self.names[spec["table"]]][spec["state"]]
        return next(values)

    def call(self, name, values):
        """Calls nsrt_invoke_<name> with the tables and, in their order, `values`."""
        specs = self.functions[name]
        rest = iter(values)
        arguments = [self.argument(spec, rest) for spec in specs["args"]]
        function = Function(specs)
        frame = function.frame(None, arguments)
        entry = getattr(self.library, f"nsrt_invoke_{name}")
        entry.restype, entry.argtypes = None, [ctypes.c_void_p]
        entry(ctypes.addressof(frame.pointers))
        return function.take_results(frame) if frame.results is not None else []

    def forward(self, batches, others=()):
        """Results of @forward for one Jagged per input of the model."""
        return self.call("forward", [*batches, *others])

    def update(self, batches, gradients, learning_rate, number):
        """One training step; gives the gradients of the sample weights. The context of the
        reference program is the ids themselves."""
        context = [tensor for batch in batches for tensor in batch.tensors()]
        return self.call("embeddings_update", [*context, *gradients, learning_rate, number])
