"""neuroshard.cuda refuses wrong arguments, each by one clear error, and works as before afterwards.
On the emulator, with arrays of torch and numpy."""

import ctypes

import numpy
import pytest
import torch

from support import table_models as models
from neuroshard import cuda
from support.model import Input, Lookup, Model, Optimizer, Table
from support.threads import in_threads

pytestmark = models.usable()

BATCH = 3


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    sgd = Optimizer("sgd")
    model = Model([Table("user", 10, 8, "f32", sgd), Table("item", 6, 8, "f16", sgd)],
                  [Input("x", ("a", "b"), (Lookup("a", "user"), Lookup("b", "item"))),
                   Input("w", ("c",), (Lookup("c", "user", weighted=True),), weighted=True)])
    return models.compiled(model, tmp_path_factory.mktemp("cuda_arguments") / "model")


@pytest.fixture
def device(artifact):
    with cuda.Device(artifact) as opened:
        yield opened


def good():
    """Valid arguments of make_parts."""
    x = cuda.Input(torch.arange(6) % 3, torch.arange(7), BATCH)
    w = cuda.Input(torch.arange(3), torch.arange(4), BATCH, sample_weights=torch.ones(3))
    return [x, w], [(torch.empty((BATCH, 8)), 8) for _ in range(3)]


def step(device):
    inputs, outputs = good()
    parts = device.make_parts(inputs, outputs)
    device.forward(parts, cuda.TRAINING)
    device.check()
    return parts


def spoilt_input(number=0, **changes):
    inputs, outputs = good()
    inputs[number] = inputs[number]._replace(**changes)
    return inputs, outputs


def spoilt_output(number, array, stride):
    inputs, outputs = good()
    outputs[number] = array, stride
    return inputs, outputs


LONGS = torch.arange(6)
WRONG_PARTS = {
    "ids of floats": (spoilt_input(ids=torch.zeros(6)),
                      r"inputs\[0\].ids: expected int64, found float32"),
    "narrow ids": (spoilt_input(ids=LONGS.int()), r"\[0\].ids: expected int64, found int32"),
    "narrow ids of numpy": (spoilt_input(ids=numpy.zeros(6, numpy.int32)),
                            r"\[0\].ids: expected int64, found int32"),
    "ids of another order of bytes": (spoilt_input(ids=numpy.zeros(6, ">i8")),
                                      r"\[0\].ids: expected int64, found >i8"),
    "ids with gaps": (spoilt_input(ids=torch.arange(12)[::2]),
                      r"\[0\].ids: expected a contiguous array, .* strides \(2,\)"),
    "ids backwards": (spoilt_input(ids=numpy.arange(6)[::-1]),
                      r"\[0\].ids: expected a contiguous array"),
    "ids as a list": (spoilt_input(ids=[0] * 6), r"\[0\].ids: expected an array of .* found list"),
    "ids as a text": (spoilt_input(ids="012345"), r"\[0\].ids: expected an array .* found str"),
    "ids that are None": (spoilt_input(ids=None), r"\[0\].ids: expected an array, found None"),
    "ids without memory": (spoilt_input(ids=LONGS.to("meta")),
                           r"\[0\].ids: expected memory of a GPU, found a tensor on meta"),
    "sparse ids": (spoilt_input(ids=LONGS.to_sparse()), r"\[0\].ids: .* of layout torch.sparse"),
    "a negative address": (spoilt_input(ids=-8, num_ids=6), r"\[0\].ids: .*found the number -8"),
    "an address without a number": (spoilt_input(ids=64), r"\[0\].ids: expected an array, found 64"),
    "more ids than there are": (spoilt_input(num_ids=7), r"\[0\].ids: expected 7 elements, found 6"),
    "a negative number of ids": (spoilt_input(num_ids=-1), r"\[0\].num_ids: .* found -1"),
    "narrow offsets": (spoilt_input(offsets=torch.arange(7).int()),
                       r"\[0\].offsets: expected int64, found int32"),
    "too few offsets": (spoilt_input(offsets=torch.arange(6)),
                        r"\[0\].offsets: expected 7 elements, found 6"),
    "a huge batch": (spoilt_input(batch=2**64), r"\[0\].batch: expected a number from 0 to"),
    "half a batch": (spoilt_input(batch=1.5), r"\[0\].batch: expected a whole number, got: 1.5"),
    "pooling of None": (spoilt_input(pooling=None), r"\[0\].pooling: expected a whole number"),
    "weights of doubles": (spoilt_input(1, sample_weights=torch.ones(3).double()),
                           r"\[1\].sample_weights: expected float32, found float64"),
    "too few weights": (spoilt_input(1, sample_weights=torch.ones(2)),
                        r"\[1\].sample_weights: expected 3 elements, found 2"),
    "no weights": (spoilt_input(1, sample_weights=None),
                   r"\[1\].sample_weights: .*feature \"c\" reads them, found None"),
    "too short a feature_begin": (spoilt_input(feature_begin=[0, 3]),
                                  r"expected feature_begin\[2\] from 3 to 6, found -1"),
    "feature_begin that is none": (spoilt_input(feature_begin=5),
                                   r"\[0\].feature_begin: expected a list of numbers, got: 5"),
    "feature_begin of texts": (spoilt_input(feature_begin=["0", 3, 6]),
                               r"\[0\].feature_begin: expected a whole number, got: '0'"),
    "a tuple for an input": (([LONGS, good()[0][1]], good()[1]), r"\[0\]: expected a cuda.Input"),
    "one input": ((good()[0][:1], good()[1]), "inputs: expected 2, .* found 1"),
    "one output": ((good()[0], good()[1][:1]), "expected 3 outputs, one per lookup"),
    "an output without a stride": ((good()[0], [torch.empty((BATCH, 8))] * 3),
                                   r"outputs\[0\]: expected \(array, stride\)"),
    "results of another type": (spoilt_output(1, torch.empty((BATCH, 8)).half(), 8),
                                r"outputs\[1\]: expected float32, found float16"),
    "too few rows of results": (spoilt_output(0, torch.empty((BATCH - 1, 8)), 8),
                                r"outputs\[0\]: expected 3 rows of 8 .* are 24, found 16"),
    "another stride": (spoilt_output(0, torch.empty((BATCH, 12)), 8),
                       r"outputs\[0\]: expected rows with 8 elements from one to the next"),
    "a huge stride": (spoilt_output(0, torch.empty((BATCH, 8)), 2**70),
                      r"outputs\[0\]: its stride: expected a number from 0"),
}


@pytest.mark.parametrize("case", WRONG_PARTS)
def test_inputs_and_outputs(case, device):
    arguments, message = WRONG_PARTS[case]
    with pytest.raises((cuda.CudaError, TypeError), match=message):
        device.make_parts(*arguments)
    step(device)


class OnGpu:
    """An array that claims to be on a GPU, as CuPy's are."""

    def __init__(self, typestr="<i8"):
        self.__cuda_array_interface__ = {"shape": (6,), "typestr": typestr, "strides": None,
                                         "data": (2**40, False), "version": 3}


def test_arrays_elsewhere(device):
    with pytest.raises(cuda.CudaError, match=r"\[0\].ids: expected an array on cpu \(the driver is "
                                             "the emulator\\), found one on cuda"):
        device.make_parts(*spoilt_input(ids=OnGpu()))
    device._place = "cuda:0"  # as if this were a GPU
    with pytest.raises(cuda.CudaError, match=r"\[0\].ids: expected an array on cuda:0, found one "
                                             "on cpu"):
        device.make_parts(*good())
    with pytest.raises(cuda.CudaError, match="gradients.*on cuda:0, found one on cpu"):
        parts = device.make_parts(*[[one._replace(ids=OnGpu(), offsets=OnGpu(), num_ids=0, batch=0,
                                                  sample_weights=None if number == 0 else
                                                  OnGpu("<f4")) for number, one in
                                     enumerate(good()[0])], [(None, 0)] * 3])
        device.forward(parts, cuda.TRAINING)
        device.backward([(torch.empty((1, 8)), 8), (None, 0), (None, 0)])


PART = {"lookup": 0, "ids": LONGS[:3], "offsets": torch.arange(4),
        "out": torch.empty((BATCH, 8)), "out_stride": 8, "bags": BATCH}


@pytest.mark.parametrize("changes, message", [
    ({"ids": torch.zeros(3)}, "ids: expected int.*, found float32"),
    ({"ids": torch.arange(6)[::2]}, "ids: expected a contiguous array"),
    ({"ids": 64}, "ids: expected an array, found 64; of an address, say how many"),
    ({"id_end": 4}, "ids: expected 4 elements, found 3"),
    ({"offsets": torch.arange(3)}, "offsets: expected 4 elements, found 3"),
    ({"offsets": torch.arange(4.)}, "offsets: expected int64, found float32"),
    ({"sample_weights": torch.ones(2)}, "sample_weights: expected 3 elements, found 2"),
    ({"out": torch.empty((BATCH, 8)).double()}, "out: expected float32.*, found float64"),
    ({"out": torch.empty((8, BATCH)).t()}, "out: expected rows with 8 elements"),
    ({"out": [1.0]}, "out: expected an array of torch, CuPy or numpy"),
    ({"out_stride": "8"}, "out_stride: expected a whole number, got: '8'"),
    ({"bags": -1}, "bags: expected a number from 0"),
    ({"feature": 2**40}, "feature: expected a number from 0"),
])
def test_parts(changes, message, device):
    for make in (cuda.part, device.part):
        with pytest.raises((cuda.CudaError, TypeError), match=message):
            make(**{**PART, **changes})


def test_parts_that_a_device_knows_to_be_wrong(device):
    for changes, message in (
            ({"ids": LONGS[:3].int()}, "ids: expected int64, found int32"),
            ({"out": torch.empty((BATCH, 8)).half()}, "out: expected float32, found float16"),
            ({"out": torch.empty((BATCH - 1, 8))}, "out: expected 3 rows of 8 elements"),
            ({"lookup": 3}, "there is no lookup 3; the device has 3"),
            ({"ids": OnGpu()}, "ids: expected an array on cpu")):
        with pytest.raises(cuda.CudaError, match=message):
            device.part(**{**PART, **changes})
    device.forward([device.part(**PART)])


@pytest.mark.parametrize("call, message", [
    (lambda d: d.forward(None), "parts: expected a list of cuda.Part, got: None"),
    (lambda d: d.forward([1]), r"parts\[0\]: expected a cuda.Part, got: 1"),
    (lambda d: cuda.parts_of([None]), r"parts\[0\]: expected a cuda.Part"),
    (lambda d: d.forward((ctypes.c_int32 * 4)()), "parts: expected a list of cuda.Part, got: <"),
    (lambda d: d.forward([], 3), "training: expected a number from 0 to 2, found 3"),
    (lambda d: d.forward([], "train"), "training: expected a whole number, got: 'train'"),
    (lambda d: d.forward([], 0, torch), "stream: expected None or the number of a CUDA stream"),
    (lambda d: d.prepare([], 0, -1), "stream: expected None or the number .* found -1"),
    (lambda d: d.set_step("fast"), "learning_rate: expected a number, got: 'fast'"),
    (lambda d: d.set_step(float("nan")), "learning_rate: expected a finite number"),
    (lambda d: d.set_step(-0.1), "learning_rate: expected a number from 0"),
    (lambda d: d.set_step(1e39), "learning_rate: expected a number from 0 to 3.4e38"),
    (lambda d: d.set_step(0.1, 0), "step: expected a number from 1"),
    (lambda d: d.set_step(0.1, 2**63), "step: expected a number from 1"),
    (lambda d: d.backward(None), r"gradients: expected a list of \(array, stride\)"),
    (lambda d: d.backward([torch.ones(8)]), r"gradients\[0\]: expected \(array, stride\[, "),
    (lambda d: d.backward([]), "nsc_backward comes after an nsc_forward with training"),
    (lambda d: d.backward_apply(), "nsc_backward_apply comes after nsc_backward"),
    (lambda d: d.norms(2**32), "there is no slot 4294967296; the device has 2"),
    (lambda d: d.norms(0), "slot 0 has no norms"),
    (lambda d: d.initialize(-1), "seed: expected a number from 0"),
    (lambda d: d.initialize(None), "seed: expected a whole number, got: None"),
    (lambda d: d.read_weights(2, None, 0, 1), "there is no slot 2"),
    (lambda d: d.read_weights(-1, None, 0, 1), "there is no slot -1"),
    (lambda d: d.read_weights(0, None, 0, 1), "the values are null"),
    (lambda d: d.read_weights(0, torch.empty((1, 8)), 9.0, 10), "begin: expected a whole number"),
    (lambda d: d.read_weights(0, torch.empty((2, 8)), 9, 11), r"rows \[9, 11\) of a shard with 10"),
    (lambda d: d.read_weights(0, torch.empty((1, 7)), 0, 1), "1 rows are 32 bytes, .* has 28"),
    (lambda d: d.read_weights(0, torch.empty(4).double(), 0, 1), "values: expected float32"),
    (lambda d: d.read_weights(0, torch.empty((8, 2)).t(), 0, 2), "values: expected a contiguous"),
    (lambda d: d.read_weights(0, b"0" * 32, 0, 1), "values: expected an array .* found bytes"),
    (lambda d: d.write_weights(1, torch.empty((1, 8)), 0, 1), "values: expected float16"),
    (lambda d: d.write_weights(0, OnGpu("<f4"), 0, 1), "values: expected an array on cpu"),
    (lambda d: d.read_state(0, 2**40, torch.empty(1), 0, 1), "state: expected a number from 0"),
    (lambda d: d.write_state(0, 0, torch.empty((1, 8)), 0, 1), "there is no optimizer state 0"),
])
def test_calls(call, message, device):
    with pytest.raises((cuda.CudaError, TypeError, ValueError), match=message):
        call(device)
    step(device)


def test_memory_that_may_not_be_written(device):
    values = numpy.zeros((1, 8), numpy.float32)
    values.flags.writeable = False
    device.write_weights(0, values, 0, 1)
    with pytest.raises(cuda.CudaError, match="values: expected an array that can be written to"):
        device.read_weights(0, values, 0, 1)


def test_gradients_beside_the_parts(device):
    inputs, outputs = good()
    device.forward(device.make_parts(inputs, outputs), cuda.TRAINING)
    device.set_step(0.1)
    ones = [(torch.ones((BATCH, 8)), 8) for _ in range(3)]
    for gradient, message in (
            ((torch.ones((BATCH, 8)).half(), 8), r"gradients\[0\]: expected float32"),
            ((torch.ones((2, 8)), 8), r"gradients\[0\]: expected 3 rows of 8 .* found 16"),
            ((torch.ones((BATCH, 16))[:, ::2], 16), r"gradients\[0\]: expected rows with 16"),
            ((torch.ones((BATCH, 8)), 8, torch.ones(2)), "of the sample weights: expected 6 elem")):
        with pytest.raises(cuda.CudaError, match=message):
            device.backward([gradient, *ones[1:]])
    with pytest.raises(cuda.CudaError, match="expected 3 gradients, .* found 2"):
        device.backward(ones[:2])
    device.backward(ones)
    device.check()


@pytest.mark.parametrize("arguments, message", [
    ({"artifact": None}, "artifact: expected a path, .* got: None"),
    ({"artifact": "a\0b"}, "artifact: expected a path without NUL"),
    ({"plan_device": 2**32}, "plan_device: expected a number from 0"),
    ({"plan_device": 1}, "there is no device 1"),
    ({"gpu": "0"}, "gpu: expected a whole number, got: '0'"),
    ({"gpu": 100}, "there is no GPU 100; this machine has"),
    ({"seed": -1}, "seed: expected a number from 0 to"),
    ({"seed": 1.5}, "seed: expected a whole number, got: 1.5"),
    ({"memory": 5}, r"memory: expected a list of \(weights, state0, state1, state2\)"),
    ({"memory": [torch.empty(10)]}, r"memory\[0\]: expected \(weights, state0.* found 10 arrays"),
    ({"memory": [(torch.empty(96),)]}, "expected memory for 2 slots, .* found it for 1"),
    ({"memory": []}, "expected memory for 2 slots"),
])
def test_opening(arguments, message, artifact):
    with pytest.raises((cuda.CudaError, TypeError, ValueError), match=message):
        cuda.Device(**{"artifact": artifact, **arguments})


def test_memory_of_the_caller_is_looked_at_before_it_is_written(artifact):
    for user, message in ((torch.empty(4), r"weights of table \"user\": expected 320 bytes .* 16"),
                          (torch.empty(80).long(), "expected float32 or .*, found int64"),
                          (torch.empty(160)[::2], "expected a contiguous array")):
        item = torch.empty(6 * 8, dtype=torch.float16)
        with pytest.raises(cuda.CudaError, match=message):
            cuda.Device(artifact, seed=1, memory=[(user,), (item, None, None)])


def test_closed_devices(artifact):
    device = cuda.Device(artifact)
    parts = step(device)
    device.close()
    device.close()
    for call in (lambda: device.forward(parts), device.check, lambda: device.memory,
                 lambda: device.set_step(0.1), lambda: device.make_parts(*good()),
                 lambda: device.read_weights(0, torch.empty((1, 8)), 0, 1)):
        with pytest.raises(cuda.CudaError, match="the device is closed"):
            call()


def test_threads_wait_for_each_other(device):
    """Each step is complete or refused; without a lock this crashes."""
    def work():
        for _ in range(30):
            step(device)

    assert in_threads(work, [()] * 4) == [None] * 4


def test_bad_ids_of_host_arrays_are_shown(device):
    inputs, outputs = good()
    for ids, position, value in (([0, 1, 10, 0, 1, 2], 2, 10), ([0, 1, 2, 0, -7, 9], 4, -7)):
        inputs[0] = inputs[0]._replace(ids=numpy.array(ids))
        device.forward(device.make_parts(inputs, outputs))
        with pytest.raises(cuda.BadId, match=f"id {value} at position {position} of the ids of "
                                             r"lookup \d \(table \"\w+\", feature \"[ab]\"\)"):
            device.check()
    device.check()
