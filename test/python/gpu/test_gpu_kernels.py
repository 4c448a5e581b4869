"""The GPU kernels, run by the emulator, against numpy: forward, backward with every optimizer,
shards, edges, bad ids and rows far away. Bits must be equal wherever an order is stated."""

import os

import numpy
import pytest
import torch

import gpu_models as models
from gpu_memory import Memory, unusable
from support import matrix, sealing

pytestmark = pytest.mark.skipif(bool(unusable()), reason=unusable())
if not unusable():
    from neuroshard import cuda

    from gpu_device import OpenDevice, random_tables
    from gpu_shards import train_shards
    from gpu_steps import Step, train_step

ALL = bool(os.environ.get("NEUROSHARD_ALL"))
KINDS = ("ragged", "one", "empty", "equal", "once", "none", "huge", "fixed1", "fixed3",
         "fixed20")


def chosen_dims(salt):
    """All dims, or some narrow and wide ones drawn with the seed."""
    if ALL:
        return models.DIMS
    return tuple(matrix.sample(models.DIMS[:10], 4, salt)
                 + matrix.sample(models.DIMS[10:], 3, salt))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu")


# Forward

FORWARD = [(rotation, output) for rotation in range(3) for output in models.DTYPES]
if not ALL:
    FORWARD = [(rotation, models.DTYPES[(rotation + matrix.seed()) % 3]) for rotation in range(3)]


@pytest.fixture(scope="module", params=FORWARD, ids=lambda p: f"rotation{p[0]}-to-{p[1]}")
def forward_device(request, folder):
    rotation, output = request.param
    model = models.forward_model(rotation, chosen_dims(f"forward {rotation}"))
    compiled = models.compile_model(model, models.whole_plan(model),
                                    folder / f"forward{rotation}{output}", "--gpu-output", output)
    return model, compiled, output


@pytest.mark.parametrize("kind", KINDS)
def test_forward(forward_device, kind, generator):
    model, artifact, output = forward_device
    tables = random_tables(model, generator, integers=False)
    with OpenDevice(artifact, model, tables, output=output) as opened, Memory() as memory:
        batches = models.make_batches(model, kind, generator)
        step = Step(opened, batches, memory, models.fixed_pooling(kind))
        step.forward(cuda.INFERENCE)
        step.check_results()


def random_bits(tables, generator):
    """Every kind of value: denormals, infinities, NaN, what overflows when it is rounded."""
    filled = {}
    for name, (weights, states) in tables.items():
        pieces = torch.randint(-2**15, 2**15, (weights.numel() * weights.element_size() // 2,),
                               generator=generator).to(torch.int16)
        filled[name] = pieces.view(weights.dtype).view(weights.shape), states
    return filled


@pytest.mark.parametrize("kind", ["ragged", "fixed1"])
def test_forward_of_any_bits(forward_device, kind, generator):
    model, artifact, output = forward_device
    tables = random_bits(random_tables(model, generator, False), generator)
    with OpenDevice(artifact, model, tables, output=output) as opened, Memory() as memory:
        step = Step(opened, models.make_batches(model, kind, generator), memory,
                    models.fixed_pooling(kind))
        step.forward(cuda.INFERENCE)
        with numpy.errstate(all="ignore"):
            step.check_results()


# Of the four lookups of models.short_bags: the emulator holds 32 blocks, each of 8 groups.
BAGS_OF_A_WAVE = 32 * 8 // 4


@pytest.fixture(scope="module")
def short_bags(folder):
    model = models.short_bags()
    return model, models.compile_model(model, models.whole_plan(model), folder / "short_bags",
                                       "--training")


@pytest.mark.parametrize("items", [1, 2, 4, 8])
def test_groups_of_short_bags(short_bags, items, generator):
    """Groups take k bags, or ids without bags, from k * k waves on; the last ones fewer."""
    model, artifact = short_bags
    bags = items**2 * BAGS_OF_A_WAVE + 4 * items + 3
    lengths = torch.randint(0, 3, (bags,), generator=generator)
    batches = [models.make_batch(model, input_, "short", generator, True, lengths)
               for input_ in model.inputs]
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        train_step(opened, batches, generator, 1, integers=True)


@pytest.fixture(scope="module")
def weighted_means(folder):
    """The IR has no means with sample weights, as torch.nn.EmbeddingBag; manifests may."""
    tables = [models.Table(f"t{dim}", 23, dim, dtype, models.OPTIMIZERS[0])
              for dim, dtype in ((4, "f32"), (36, "f16"), (128, "bf16"), (1024, "f32"))]
    sums, means = (models.make_model(tables, [(key, t.name, t.name, pooling, True)
                                              for t in tables for key in ("wl", "wi")])
                   for pooling in ("sum", "mean"))
    artifact = models.compile_model(sums, models.whole_plan(sums), folder / "weighted_means",
                                    "--training")
    manifest = sealing.read_manifest(artifact)
    for exchange in manifest["exchanges"]:
        for lookup in exchange["lookups"]:
            lookup["pooling"] = "mean"
    sealing.write_manifest(artifact, manifest)
    return means, artifact


@pytest.mark.parametrize("kind", ["ragged", "empty", "huge", "fixed1", "fixed3"])
@pytest.mark.parametrize("integers", [True, False], ids=["integers", "reals"])
def test_weighted_means(weighted_means, kind, integers, generator):
    """sum(w x) / ids, and gradients of sample weights that are divided by the ids, too."""
    model, artifact = weighted_means
    with OpenDevice(artifact, model, random_tables(model, generator, integers)) as opened:
        train_step(opened, models.make_batches(model, kind, generator, integers), generator, 1,
                   integers=integers, fixed=models.fixed_pooling(kind))


# Backward

ROTATIONS = range(len(models.OPTIMIZERS) * 3)
TRAINING = matrix.sample(ROTATIONS, 3, "gpu training")


@pytest.fixture(scope="module", params=TRAINING, ids=lambda r: f"rotation{r}")
def training_model(request, folder):
    model = models.training_model(request.param, chosen_dims(f"training {request.param}"))
    return model, models.compile_model(model, models.whole_plan(model),
                                       folder / f"training{request.param}", "--training")


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


# Update kernels run 128 blocks in the emulator, each of at least 8 groups.
RUNS_OF_TWO = 128 * 8 * 4 * 2
ROWS = 30_000


@pytest.fixture(scope="module")
def short_runs(folder):
    model = models.short_runs(ROWS)
    return model, models.compile_model(model, models.whole_plan(model), folder / "short_runs",
                                       "--training")


@pytest.mark.parametrize("ids, runs_per_group", [(2000, 1), (3100, 2), (6300, 4), (14500, 8)])
def test_groups_of_short_runs(short_runs, ids, runs_per_group, generator):
    """Groups take k runs, and read about the next ones, if most rows occur once."""
    model, artifact = short_runs
    batch = models.make_batch(model, model.inputs[0], "short", generator, True,
                              torch.ones(ids, dtype=torch.int64))
    runs = len(model.tables) * len(batch.ids.unique())
    assert 3 * runs >= 2 * len(model.tables) * ids
    assert runs_per_group == max(k for k in (1, 2, 4, 8) if k == 1 or runs >= RUNS_OF_TWO * k // 2)
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        train_step(opened, [batch], generator, 1, integers=True)


def trained_bits(model, artifact, batches, seed, integers):
    """All tables and states after three steps whose threads run in the order of `seed`."""
    os.environ["NEUROSHARD_EMULATOR_SEED"] = str(seed)
    try:
        tables = random_tables(model, torch.Generator().manual_seed(5), integers)
        with OpenDevice(artifact, model, tables) as opened:
            gradients = torch.Generator().manual_seed(6)
            for number in (1, 2, 3):
                train_step(opened, batches, gradients, number, integers=integers)
            return opened.expected
    finally:
        del os.environ["NEUROSHARD_EMULATOR_SEED"]


def test_same_input_same_bits(training_model, generator):
    model, artifact = training_model
    batches = models.make_batches(model, "ragged", generator)
    runs = [trained_bits(model, artifact, batches, seed, integers=False) for seed in (1, 2)]
    for (weights, states), (again, others) in zip(*runs):
        assert torch.equal(weights, again)
        for state, other in zip(states, others, strict=True):
            assert (state == other).all()


def test_nothing_races(training_model, generator, monkeypatch):
    """The emulator fails a launch with accesses that nothing orders, or beside an array."""
    monkeypatch.setenv("NEUROSHARD_EMULATOR_RACES", "1")
    model, artifact = training_model
    with OpenDevice(artifact, model, random_tables(model, generator, True)) as opened:
        train_step(opened, models.make_batches(model, "ragged", generator), generator, 1,
                   integers=False)


# Shards


@pytest.fixture(scope="module", params=["exact", "per_shard"])
def sharded(request, folder):
    model = models.sharded_model()
    plan = models.sharded_plan(model, request.param)
    return model, plan, models.compile_model(model, plan, folder / request.param, "--training")


@pytest.mark.parametrize("integers", [True, False], ids=["integers", "reals"])
@pytest.mark.parametrize("kind", ["ragged", "one", "empty", "equal", "none", "huge"])
def test_shards(sharded, kind, integers, generator):
    """Shards of rows, of columns and of both; row-wise optimizers in two phases or, per shard,
    in one."""
    model, plan, artifact = sharded
    train_shards(model, plan, artifact, kind, generator, integers)
