"""Invented measurements of shard sets, in the file format of neuroshard-collect."""

import numpy as np
from safetensors.numpy import save_file

TABLES = 200
HELD_OUT_TABLES = 50


def draw_shards(random, held_out, batch):
    """Columns of a few whole tables with rowwise Adagrad and without statistics."""
    count = random.integers(1, 6)
    tables = random.integers(TABLES - HELD_OUT_TABLES, TABLES, count) if held_out \
        else random.integers(0, TABLES - HELD_OUT_TABLES, count)
    rows = 1000 * (1 + tables.astype(np.int64) % 97)
    width = 4 * (1 + tables % 32)
    pooling = 1 + tables % 13
    lookups = batch * pooling
    unique = rows * -np.expm1(-lookups / rows)
    return {
        "table": tables, "rows": rows, "width": width, "table_rows": rows, "table_dim": width,
        "element_type": tables * 0, "output_type": tables * 0, "optimizer": tables * 0 + 2,
        "pooling": pooling, "features": tables * 0 + 1, "lookups": lookups,
        "output_rows": tables * 0 + batch, "unique_rows": unique, "update_lookups": lookups,
        "update_gradient_rows": tables * 0 + batch, "update_unique_rows": unique,
        "id_bytes": tables * 0 + 8, "weighted": tables * 0, "row_split": tables * 0,
        "column_split": tables * 0, "replicated": tables * 0, "exact_norms": tables * 0,
        "dims": width, "input_bytes": lookups * 8, "forward_bytes": batch * width * 4,
        "backward_bytes": batch * width * 4}


TYPES = {
    "table": np.int32, "rows": np.int64, "width": np.int32, "table_rows": np.int64,
    "table_dim": np.int32, "features": np.int32,
    **{name: np.uint8 for name in ("element_type", "output_type", "optimizer", "id_bytes",
                                   "weighted", "row_split", "column_split", "replicated",
                                   "exact_norms")}}


def write(path, count, repeats=20, noise=0.02, slowness=1.0, seed=3):
    """`count` sets, the first fifth of them of tables that the others do not use; the first
    `repeats` are measured again at the end."""
    random = np.random.default_rng(seed)
    sets = []
    for index in range(count):
        batch = int(2 ** random.integers(8, 13))
        sets.append((index < count // 5, batch, draw_shards(random, index < count // 5, batch)))
    sets += sets[:repeats]
    origin = [-1] * count + list(range(repeats))
    times = [[slowness * (0.01 + (a * s["lookups"] * s["width"]).sum() * 1e-6) *
              np.exp(random.normal(0, noise)) for a in (1, 2)] for _, _, s in sets]
    samples = len(sets)
    columns = {f"shard.{name}": np.concatenate([s[name] for _, _, s in sets])
               .astype(TYPES.get(name, np.float32)) for name in sets[0][2]}
    columns |= {
        "pool.reuse": np.zeros((TABLES, 17)), "pool.batch": np.zeros(TABLES, np.int64),
        "sample.first_shard": np.cumsum([0] + [len(s["table"]) for _, _, s in sets]),
        "sample.batch": np.array([batch for _, batch, _ in sets], np.int64),
        "sample.forward_ms": np.array(times)[:, 0].copy(),
        "sample.backward_ms": np.array(times)[:, 1].copy(),
        "sample.spread": np.zeros(samples, np.float32),
        "sample.reference_before_ms": np.ones(samples),
        "sample.reference_after_ms": np.ones(samples),
        "sample.set": np.array([*range(count), *range(repeats)], np.int32),
        "sample.repeat_of": np.array(origin, np.int32),
        "sample.held_out": np.array([held for held, _, _ in sets], np.uint8),
        "sample.time": np.zeros(samples, np.int64)}
    save_file(columns, path, {"schema": "neuroshard.compute_samples.v1", "device_class": "CPU",
                              "machine": "made up"})
    return path
