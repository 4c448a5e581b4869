"""The points at which speed is measured, and the bytes that each moves.

All have 32 tables of the same shape, one feature each, sum pooling, i64 ids, f32 results,
and row-wise Adagrad in the update."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

TABLES = 32
ID_BYTES = 8
OFFSET_BYTES = 8
OUTPUT_BYTES = 4
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
DLRM_BATCH = 65536
# At most so many rows of each table: all, then as many as fit a GPU of 80 GB.
DLRM_ROWS = (None, 20_000_000)
DLRM = Path(__file__).resolve().parents[2] / "workloads" / "mlperf_dlrm_v2.json"


@dataclass(frozen=True)
class Point:
    """rows: of each table; bags: the batch; ids: of every bag; zipf: whether ids follow
    1 / rank^1.05, else they are uniform."""

    rows: int
    dim: int
    bags: int
    ids: int
    dtype: str = "f32"
    zipf: bool = False

    @property
    def name(self):
        return (f"E{self.rows:.0e}_D{self.dim}_B{self.bags}_L{self.ids}_{self.dtype}"
                f"{'_zipf' * self.zipf}").replace("e+0", "e")

    @property
    def program(self):
        """Points of one program share an artifact."""
        return f"E{self.rows:.0e}_D{self.dim}_{self.dtype}".replace("e+0", "e")

    @property
    def element_bytes(self):
        return ELEMENT_BYTES[self.dtype]

    @property
    def row_bytes(self):
        return -(-self.dim * self.element_bytes // 16) * 16

    @property
    def lookups(self):
        return TABLES * self.bags * self.ids

    @property
    def table_bytes(self):
        return TABLES * self.rows * self.row_bytes

    def step_bytes(self):
        """Device memory that one input set of a training step takes in all, about: ids,
        offsets, results, gradients, and 64 bytes per id to sort."""
        return (self.lookups * (ID_BYTES + 64) + self.bags * TABLES * OFFSET_BYTES
                + 2 * self.bags * TABLES * self.dim * 4)

    def forward_bytes(self):
        return (self.lookups * (self.dim * self.element_bytes + ID_BYTES)
                + (TABLES * self.bags + 1) * OFFSET_BYTES
                + TABLES * self.bags * self.dim * OUTPUT_BYTES)

    def backward_bytes(self, unique_rows):
        """The gradient once, distinct rows and their state read and written, ids twice."""
        return (TABLES * self.bags * self.dim * 4
                + 2 * unique_rows * (self.dim * self.element_bytes + 4)
                + 2 * self.lookups * ID_BYTES)


def listed():
    """The listed subset: 40 points."""
    million = 10**6
    sweep = [Point(million, 128, bags, ids) for bags in (512, 8192, 65536)
             for ids in (1, 4, 20, 100)]
    dims = [Point(million, dim, bags, ids) for dim in (64, 256)
            for bags, ids in ((512, 20), (8192, 4), (8192, 20), (65536, 20))]
    small = [Point(10**5, 128, bags, 20) for bags in (512, 8192, 65536)]
    large = [Point(10**7, 64, 8192, 20), Point(10**7, 64, 65536, 20),
             Point(10**7, 64, 8192, 20, "bf16"), Point(10**7, 64, 65536, 20, "bf16", True)]
    halves = [Point(million, 128, 8192, ids, "bf16") for ids in (1, 4, 20, 100)]
    halves.append(Point(million, 128, 8192, 20, "f16"))
    skewed = [Point(million, 128, 512, 20, zipf=True), Point(million, 128, 8192, 20, zipf=True),
              Point(million, 128, 65536, 1, zipf=True), Point(million, 128, 8192, 100, zipf=True),
              Point(million, 64, 8192, 20, zipf=True), Point(million, 256, 8192, 20, zipf=True)]
    few = [Point(60, 128, 512, 20), Point(60, 128, 8192, 20)]
    return [*small, *sweep, *dims, *halves, *skewed, *large, *few]


def tiny():
    """The points of a dry run."""
    return [Point(48, 64, 8, 4), Point(40, 64, 5, 1, zipf=True),
            Point(40, 128, 4, 3, "bf16")]


def dlrm_features(rows_at_most=None):
    """(rows, dim, ids per sample) of each table of MLPerf DLRM-v2."""
    workload = json.loads(DLRM.read_text())
    pooling = {feature["table"]: int(feature["mean_pooling"]) for feature in workload["features"]}
    return [(min(table["rows"], rows_at_most or table["rows"]), table["dim"],
             pooling[table["name"]]) for table in workload["tables"]]


def dlrm_name(rows_at_most=None):
    """Of the record and the program of DLRM-v2's forward."""
    cut = f"_rows_at_most_{rows_at_most // 10**6}M" if rows_at_most else ""
    return f"dlrm_v2_forward{cut}"


def as_json(point):
    return {"name": point.name, **asdict(point)}
