"""Tables, the features that read them, and their statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from neuroshard import _fields
from neuroshard._vocabulary import (ELEMENT_TYPES, ID_TYPES, OPTIMIZERS, POOLINGS, REUSE_BINS,
                                    TABLE_TYPES, WEIGHT_DECAY_MODES, WIRE_TYPES)

ElementType = Literal["f32", "f16", "bf16"]
# The last three are for serving (neuroshard.freeze): int8 and int4 with a scale and a bias per row.
TableType = Literal["f32", "f16", "bf16", "int8", "int4", "fp8"]
# Of results and gradients, or of results / of gradients. int8 and fp8 (e4m3): rows with a scale each.
WireType = Literal["f32", "f16", "bf16", "int8", "fp8", "f32/f16", "f32/bf16", "f32/int8",
                   "f32/fp8", "f16/f32", "f16/bf16", "f16/int8", "f16/fp8", "bf16/f32", "bf16/f16",
                   "bf16/int8", "bf16/fp8", "int8/f32", "int8/f16", "int8/bf16", "int8/fp8",
                   "fp8/f32", "fp8/f16", "fp8/bf16", "fp8/int8"]
IdType = Literal["i32", "i64"]
OptimizerKind = Literal["sgd", "adagrad", "rowwise_adagrad", "adam", "momentum", "adamw",
                        "partial_rowwise_adam", "rowwise_rmsprop", "ftrl", "lars_sgd", "lamb",
                        "partial_rowwise_lamb", "rowwise_adagrad_with_counter"]
WeightDecayMode = Literal["default", "l2", "decoupled", "adagradw"]
Pooling = Literal["sum", "mean", "none"]


@dataclass(frozen=True)
class Optimizer(_fields.Record):
    """An optimizer. A problem whose optimizer has a setting of another is refused, with those that it has.

    kind: its name; docs/kernels.md has the formulas. eps: added to the root in the denominator.
    initial_accumulator: what the sum of squares of Adagrad begins with. beta2: decay of the second
    moment. beta1: decay of the first moment; for momentum the factor of its buffer. weight_decay_mode:
    l2 adds weight_decay * weights to the gradient, decoupled takes learning_rate * weight_decay
    of the weights away before the step; default: as the optimizer has it, which is decoupled for
    adamw, partial_rowwise_adam and the lambs, which add weight_decay * weights to the direction of
    the step. l1_penalty, l2_penalty: lambda1 and lambda2 of ftrl, whose beta
    is eps. eta: factor of the trust ratio of lars_sgd. counter_halflife, adjustment_iter, adjustment_ub:
    of rowwise_adagrad_with_counter, whose weight_decay_mode may be adagradw, too; all as FBGEMM's
    CounterBasedRegularizationDefinition has them. max_gradient: elements of a row's summed gradient
    are clamped to +-max_gradient before all else; 0: not at all. stochastic_rounding: weights of f16
    and bf16 are rounded up or down at random. catch_up: rows that a step does not touch take it, too,
    by a gradient of 0, late and all at once before they are read, as dense optimizers of torch.optim
    have it; of sgd, momentum, adagrad, adam and adamw.
    """

    kind: OptimizerKind = field(default="sgd", metadata={"always": True})
    eps: float = 1e-8
    beta1: float = 0.9
    beta2: float = 0.999
    initial_accumulator: float = 0
    weight_decay: float = 0
    weight_decay_mode: WeightDecayMode = "default"
    l1_penalty: float = 0
    l2_penalty: float = 0
    eta: float = 0.001
    counter_halflife: float = -1
    adjustment_iter: float = -1
    adjustment_ub: float = 1
    max_gradient: float = 0
    stochastic_rounding: bool = False
    catch_up: bool = False

    def __post_init__(self) -> None:
        self._choice("kind", OPTIMIZERS)
        self._number("eps", "beta1", "beta2", "initial_accumulator", "weight_decay", "l1_penalty",
                     "l2_penalty", "eta", "counter_halflife", "adjustment_iter", "adjustment_ub",
                     "max_gradient")
        self._choice("weight_decay_mode", WEIGHT_DECAY_MODES)
        self._flag("stochastic_rounding", "catch_up")


@dataclass(frozen=True)
class RowMass(_fields.Record):
    """The hottest row_share of the rows get lookup_share of the lookups; both in [0, 1]."""

    row_share: float
    lookup_share: float

    def __post_init__(self) -> None:
        self._number("row_share", "lookup_share")


@dataclass(frozen=True, kw_only=True)
class Access(_fields.Record):
    """How the ids of a table repeat within one batch.

    reuse: of the distinct ids of a batch, the share seen once, 2, 3-4, 5-8, ... times, doubling
    up to 32768, and more often: 17 numbers that add up to 1. batch: the global batch at which
    that was measured. row_mass: which rows are hot; optional, ascending. rows_by_use: the rows are in
    the order of their use, those with most lookups first, so that row_mass is that of the first rows.
    """

    batch: int
    reuse: tuple[float, ...]
    row_mass: tuple[RowMass, ...] = ()
    rows_by_use: bool = False

    if TYPE_CHECKING:
        def __init__(self, *, batch: int, reuse: Iterable[float],
                     row_mass: Iterable[RowMass] = (), rows_by_use: bool = False) -> None:
            ...

    def __post_init__(self) -> None:
        self._whole("batch")
        shares = _fields.items(self.reuse, "Access.reuse", "shares")
        if len(shares) != REUSE_BINS:
            raise ValueError(f"Access.reuse: expected {REUSE_BINS} shares, got: {len(shares)}")
        self._set("reuse", tuple(_fields.number(share, "Access.reuse") for share in shares))
        self._records("row_mass", RowMass)
        self._flag("rows_by_use")


@dataclass(frozen=True)
class Table(_fields.Record):
    """An embedding table of rows x dim elements.

    name: as features name it. type: of the elements. optimizer: an Optimizer, or the name of one with its default settings. hashed: ids are
    hashed into the rows. dynamic_ids: ids are any numbers, to which rows are given as they are seen
    (DynamicIds), of which id_candidates without a row are counted at most. access: None when nothing is known (ids are then taken as uniform).
    """

    name: str
    rows: int
    dim: int
    type: TableType = "f32"
    optimizer: Optimizer = Optimizer()
    hashed: bool = False
    access: Access | None = None
    dynamic_ids: bool = False
    id_candidates: int = 0

    if TYPE_CHECKING:
        def __init__(self, name: str, rows: int, dim: int, type: TableType = "f32",
                     optimizer: Optimizer | OptimizerKind = Optimizer(), hashed: bool = False,
                     access: Access | None = None, dynamic_ids: bool = False,
                     id_candidates: int = 0) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("name")
        self._whole("rows", "dim")
        self._choice("type", TABLE_TYPES)
        if isinstance(self.optimizer, str):
            self._set("optimizer", Optimizer(self.optimizer))
        self._record("optimizer", Optimizer)
        self._flag("hashed", "dynamic_ids")
        self._whole("id_candidates")
        self._record("access", Access, optional=True)


@dataclass(frozen=True)
class Feature(_fields.Record):
    """One input that reads a table.

    name: as batches name it; table: which it reads. pooling: "sum" or "mean" of a sample's rows, or "none".
    mean_pooling: mean ids per sample that has the feature. p99_pooling: ids per sample that
    99 % of batches stay below, samples without the feature included; 0: mean_pooling x
    presence. presence: share of samples that have it. batch: its own global batch; 0: that of
    the problem. weighted, needs_weight_gradient: ids carry per-sample weights, and those need
    gradients.
    """

    name: str
    table: str
    pooling: Pooling = "sum"
    mean_pooling: float = 1
    p99_pooling: float = 0
    presence: float = 1
    batch: int = 0
    weighted: bool = False
    needs_weight_gradient: bool = False

    def __post_init__(self) -> None:
        self._text("name", "table")
        self._choice("pooling", POOLINGS)
        self._number("mean_pooling", "p99_pooling", "presence")
        self._whole("batch")
        self._flag("weighted", "needs_weight_gradient")


@dataclass(frozen=True)
class Batch(_fields.Record):
    """Samples over all devices, and the types that travel.

    global_size: samples. id_type: of ids; output_type: of results, f32, f16 or bf16.
    wire_type: in which results and gradients travel; "f32/bf16": results as f32, gradients as
    bf16; int8 and fp8: bytes with a scale per row. input_copies: copies of the ids that a pipelined
    input keeps. backwards: those whose gradients make one update; owners keep the gradients of all.
    """

    global_size: int
    id_type: IdType = "i64"
    output_type: ElementType = "f32"
    wire_type: WireType = "f32"
    input_copies: int = 2
    backwards: int = 1

    def __post_init__(self) -> None:
        self._whole("global_size", "input_copies", "backwards")
        self._choice("id_type", ID_TYPES)
        self._choice("output_type", ELEMENT_TYPES)
        self._choice("wire_type", WIRE_TYPES)


@dataclass(frozen=True)
class FeatureStatistics(_fields.Record):
    """Statistics of a feature in one period. mean_pooling, p99_pooling, presence: as of a Feature; None: the value
    of the feature itself."""

    feature: str
    mean_pooling: float | None = None
    p99_pooling: float | None = None
    presence: float | None = None

    def __post_init__(self) -> None:
        self._text("feature")
        for name in ("mean_pooling", "p99_pooling", "presence"):
            if getattr(self, name) is not None:
                self._number(name)

    @property
    def inherits(self) -> bool:
        """Whether some value is that of the feature itself."""
        return None in (self.mean_pooling, self.p99_pooling, self.presence)


@dataclass(frozen=True)
class TableStatistics(_fields.Record):
    """How the ids of a table repeat in one period, in which access stands for that of the table."""

    table: str
    access: Access

    def __post_init__(self) -> None:
        self._text("table")
        self._record("access", Access)


@dataclass(frozen=True)
class Snapshot(_fields.Record):
    """Statistics of one period (a day, the peak hour). What its features and tables do not list
    stays as the problem has it. name: for people. weight: above 0, relative to the other snapshots."""

    name: str
    weight: float = 1
    features: tuple[FeatureStatistics, ...] = ()
    tables: tuple[TableStatistics, ...] = ()

    if TYPE_CHECKING:
        def __init__(self, name: str, weight: float = 1,
                     features: Iterable[FeatureStatistics] = (),
                     tables: Iterable[TableStatistics] = ()) -> None:
            ...

    def __post_init__(self) -> None:
        self._text("name")
        self._number("weight")
        self._records("features", FeatureStatistics)
        self._records("tables", TableStatistics)


def table_of_plain(plain: dict[str, Any]) -> Table:
    values = dict(plain)
    if isinstance(values.get("optimizer"), dict):
        values["optimizer"] = Optimizer(**values["optimizer"])
    if "access" in values:
        values["access"] = access_of_plain(values["access"])
    return Table(**values)


def access_of_plain(plain: dict[str, Any]) -> Access:
    points = tuple(RowMass(**point) for point in plain.get("row_mass", ()))
    return Access(batch=plain["batch"], reuse=tuple(plain["reuse"]), row_mass=points,
                  rows_by_use=plain.get("rows_by_use", False))


def snapshot_of_plain(plain: dict[str, Any]) -> Snapshot:
    return Snapshot(
        name=plain["name"], weight=plain.get("weight", 1),
        features=tuple(FeatureStatistics(**one) for one in plain.get("features", ())),
        tables=tuple(TableStatistics(one["table"], access_of_plain(one["access"]))
                     for one in plain.get("tables", ())))
