//===- TableAccess.cpp - Tables over all their shards ---------------------===//
//
// Copies between a dense row-major buffer and the shards of one table. Reading
// compares values that several shards hold: replicas, row-wise state of column
// shards.
//
//===----------------------------------------------------------------------===//

#include "TableAccess.h"
#include "Step/CatchUp.h"
#include "Step/Steps.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {
namespace {

/// Calls function(device, shard) for the table's shards and all their copies,
/// by column, then rank.
template <typename Function>
void forShards(nsrt_world &world, int32_t table, const Function &function) {
  std::vector<std::pair<nsrt_device *, Shard *>> shards;
  for (const auto &device : world.devices) {
    catchUpAll(*device);
    for (Shard &shard : device->slots)
      if (shard.spec().table == table)
        shards.push_back({device.get(), &shard});
  }
  std::stable_sort(shards.begin(), shards.end(), [](auto a, auto b) {
    return a.second->spec().cols.begin < b.second->spec().cols.begin;
  });
  for (auto [device, shard] : shards)
    function(*device, *shard);
}

void checkRange(const nsrt_world &world, int32_t table, const Range &rows) {
  const auto &tables = world.manifest().tables;
  if (table < 0 || static_cast<size_t>(table) >= tables.size())
    fail("there is no table ", table, "; the artifact has ", tables.size());
  if (rows.begin < 0 || rows.begin > rows.end ||
      rows.end > tables[static_cast<size_t>(table)].rows)
    fail("rows [", rows.begin, ", ", rows.end, ") are not in table \"",
         tables[static_cast<size_t>(table)].name, "\" with ",
         tables[static_cast<size_t>(table)].rows, " rows");
}

void checkState(const nsrt_world &world, int32_t table, int32_t state,
                const Range &rows) {
  checkRange(world, table, rows);
  const TableSpec &spec = world.manifest().tables[static_cast<size_t>(table)];
  int states = spec.visibleStates().count();
  if (state < 0 || state >= states)
    fail("table \"", spec.name, "\" has ", states,
         " state arrays; there is no state ", state);
}

/// Copies `bytes` bytes from a shard, or, unless it is the `first`, compares
/// them with those copied from another one.
void take(bool first, const void *from, void *to, int64_t bytes,
          const Shard &shard, const char *what, int64_t row) {
  if (first)
    std::memcpy(to, from, static_cast<size_t>(bytes));
  else if (std::memcmp(to, from, static_cast<size_t>(bytes)) != 0)
    fail("copies of the ", what, " of table \"", shard.table().name,
         "\" differ in row ", row,
         shard.spec().copiesDrift()
             ? "; they drift (sync_every): average them first, by "
               "nsrt_device_average_copies on all devices"
             : "");
}

/// Index of a shard's row-wise state among those of the column shards of a
/// row.
int64_t statePlace(const Manifest &manifest, const ShardSpec &shard,
                   int64_t row) {
  if (manifest.optimizerSemantics == OptimizerSemantics::Exact)
    return 0;
  return std::count_if(manifest.shards.begin(), manifest.shards.end(),
                       [&](const ShardSpec &other) {
                         return other.table == shard.table &&
                                other.rows.begin <= row &&
                                row < other.rows.end &&
                                other.cols.begin < shard.cols.begin;
                       });
}

/// Index of a shard's first state value in the dense row.
int64_t stateColumn(const Manifest &manifest, const Shard &shard, int32_t state,
                    int64_t row) {
  return shard.table().states().isPerRow(state)
             ? statePlace(manifest, shard.spec(), row)
             : shard.spec().cols.begin;
}

/// Whether this shard's values are copied; else they are compared, as are those
/// of copies but the first.
bool isFirstCopy(const Device &device, const Shard &shard) {
  return device.rank() == shard.spec().devices.front();
}

/// The same of a state: an exact row-wise one is compared on column shards but
/// the first.
bool isFirstState(const Manifest &manifest, const Device &device,
                  const Shard &shard, int32_t state) {
  if (!isFirstCopy(device, shard))
    return false;
  return !shard.table().states().isPerRow(state) ||
         manifest.optimizerSemantics == OptimizerSemantics::PerShard ||
         shard.spec().cols.begin == 0;
}

/// The bytes of a shard's part of a whole row of its table: the scale and bias
/// in front of it, which all column shards have, and the elements.
struct RowPart {
  explicit RowPart(const Shard &shard) {
    ElementType type = shard.table().elementType;
    const Range &cols = shard.spec().cols;
    whole = rowBytes(shard.table().dim, type);
    prefix = rowPrefixBytes(type);
    begin = rowBytes(cols.begin, type);
    size = rowBytes(cols.size(), type) - prefix;
  }

  int64_t whole, prefix, begin, size;
};

} // namespace

void writeTable(nsrt_world &world, int32_t table, Range rows,
                const std::byte *values) {
  checkRange(world, table, rows);
  forShards(world, table, [&](Device &device, Shard &shard) {
    finishDeferred(device);
    RowPart own(shard);
    shard.writeWeights(rows, [&](const HostRows &part) {
      forRows(device.threads, part.rows, [&](int64_t row) {
        const std::byte *from = values + (row - rows.begin) * own.whole;
        std::memcpy(part.row(row), from, static_cast<size_t>(own.prefix));
        std::memcpy(part.row(row) + own.prefix, from + own.begin,
                    static_cast<size_t>(own.size));
      });
    });
  });
}

void readTable(nsrt_world &world, int32_t table, Range rows,
               std::byte *values) {
  world.requireWhole("reading a table");
  checkRange(world, table, rows);
  forShards(world, table, [&](Device &device, Shard &shard) {
    RowPart own(shard);
    bool first = isFirstCopy(device, shard);
    bool firstPart = first && shard.spec().cols.begin == 0;
    shard.readWeights(rows, [&](const HostRows &part) {
      forRows(device.threads, part.rows, [&](int64_t row) {
        std::byte *to = values + (row - rows.begin) * own.whole;
        take(firstPart, part.row(row), to, own.prefix, shard, "scales", row);
        take(first, part.row(row) + own.prefix, to + own.begin, own.size, shard,
             "weights", row);
      });
    });
  });
}

int64_t stateWidth(const Manifest &manifest, int32_t table, int32_t state) {
  const TableSpec &spec = manifest.tables[static_cast<size_t>(table)];
  if (!spec.states().isPerRow(state))
    return spec.dim;
  int64_t width = 1;
  for (const ShardSpec &shard : manifest.shards)
    if (shard.table == table)
      for (int64_t row : {shard.rows.begin, shard.rows.end - 1})
        width = std::max(width, statePlace(manifest, shard, row) + 1);
  return width;
}

void writeState(nsrt_world &world, int32_t table, int32_t state, Range rows,
                const float *values) {
  checkState(world, table, state, rows);
  int64_t width = stateWidth(world.manifest(), table, state);
  forShards(world, table, [&](Device &device, Shard &shard) {
    auto write = [&](const HostRows &part) {
      forRows(device.threads, part.rows, [&](int64_t row) {
        int64_t offset = (row - rows.begin) * width +
                         stateColumn(world.manifest(), shard, state, row);
        std::copy_n(values + offset,
                    shard.stateWidth(static_cast<size_t>(state)),
                    reinterpret_cast<float *>(part.row(row)));
      });
    };
    shard.writeState(static_cast<size_t>(state), rows, write);
  });
}

void readState(nsrt_world &world, int32_t table, int32_t state, Range rows,
               float *values) {
  world.requireWhole("reading optimizer state");
  checkState(world, table, state, rows);
  int64_t width = stateWidth(world.manifest(), table, state);
  std::fill_n(values, rows.size() * width, 0.0f);
  forShards(world, table, [&](Device &device, Shard &shard) {
    bool first = isFirstState(world.manifest(), device, shard, state);
    auto read = [&](const HostRows &part) {
      forRows(device.threads, part.rows, [&](int64_t row) {
        int64_t offset = (row - rows.begin) * width +
                         stateColumn(world.manifest(), shard, state, row);
        take(first, part.row(row), values + offset,
             shard.stateWidth(static_cast<size_t>(state)) *
                 static_cast<int64_t>(sizeof(float)),
             shard, "optimizer state", row);
      });
    };
    shard.readState(static_cast<size_t>(state), rows, read);
  });
}

void initializeTable(nsrt_world &world, int32_t table, uint64_t seed) {
  checkRange(world, table, {0, 0});
  if (!world.manifest().weights.empty())
    return;
  forShards(world, table, [&](Device &device, Shard &shard) {
    finishDeferred(device);
    shard.initialize(seed, device.threads);
  });
}

} // namespace neuroshard::runtime
