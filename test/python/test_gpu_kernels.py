"""The GPU kernels, run by the emulator, against numpy: forward, backward with every optimizer,
shards, edges, bad ids and rows far away. Bits must be equal wherever an order is stated."""

import os

import pytest

import gpu_models as models
from gpu_memory import Memory, unusable
from support import matrix

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    from neuroshard import cuda

    from gpu_steps import OpenDevice, Step, random_tables, train_step

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
KINDS = ("ragged", "one", "empty", "equal", "none", "huge", "fixed1", "fixed3", "fixed20")


def chosen_dims(salt):
    """All dims, or some drawn with the seed; narrow and wide ones."""
    if ALL:
        return models.DIMS
    return tuple(matrix.sample(models.DIMS[:10], 4, salt) + matrix.sample(models.DIMS[10:], 3, salt))


class Artifacts:
    """Compiled models by name, made when first asked for."""

    def __init__(self, folder):
        self.folder, self.made = folder, {}

    def get(self, name, make, *options):
        """(model, artifact); make() gives (model, plan)."""
        if name not in self.made:
            model, plan = make()
            self.made[name] = model, models.compile_model(model, plan, self.folder / name, *options)
        return self.made[name]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    return Artifacts(tmp_path_factory.mktemp("gpu"))


def with_whole_plan(make, *arguments):
    model = make(*arguments)
    return model, models.whole_plan(model)


# Forward

FORWARD = [(rotation, output) for rotation in range(3) for output in models.DTYPES]
if not ALL:
    FORWARD = [(rotation, models.DTYPES[(rotation + matrix.seed()) % 3]) for rotation in range(3)]


@pytest.fixture(scope="module", params=FORWARD, ids=lambda p: f"rotation{p[0]}-to-{p[1]}")
def forward_device(request, artifacts):
    rotation, output = request.param
    model, artifact = artifacts.get(
        f"forward{rotation}{output}",
        lambda: with_whole_plan(models.forward_model, rotation, chosen_dims(f"forward {rotation}")),
        "--gpu-output", output)
    return model, artifact, output


@pytest.mark.parametrize("kind", KINDS)
def test_forward(forward_device, kind, generator):
    model, artifact, output = forward_device
    tables = random_tables(model, generator, integers=False)
    with OpenDevice(artifact, model, tables, output=output) as opened, Memory() as memory:
        batches = models.make_batches(model, kind, generator)
        step = Step(opened, batches, memory, models.fixed_pooling(kind))
        step.forward(cuda.INFERENCE)
        step.check_results()


# Backward

ROTATIONS = range(len(models.OPTIMIZERS) * 3)
TRAINING = matrix.sample(ROTATIONS, 3, "gpu training")


@pytest.fixture(scope="module", params=TRAINING, ids=lambda r: f"rotation{r}")
def training_model(request, artifacts):
    return artifacts.get(
        f"training{request.param}",
        lambda: with_whole_plan(models.training_model, request.param,
                                chosen_dims(f"training {request.param}")), "--training")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integers", [True, False], ids=["integers", "reals"])
def test_training(training_model, kind, integers, generator):
    """On integers sums over columns are exact, so that all bits are compared."""
    model, artifact = training_model
    with OpenDevice(artifact, model, random_tables(model, generator, integers)) as opened:
        for number in (1, 2):
            # Once with the ids of features told apart, once not.
            train_step(opened, models.make_batches(model, kind, generator, integers), generator,
                       number, integers=integers, fixed=models.fixed_pooling(kind),
                       known=number == 1)
