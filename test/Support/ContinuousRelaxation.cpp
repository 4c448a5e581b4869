//===- ContinuousRelaxation.cpp - Relaxation of cuts to bytes -------------===//
//---------===//

#include "SearchOracleForms.h"

#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace neuroshard;
using namespace neuroshard::oracle;

/// With more devices there are no separate cases for the sets of devices that
/// hold a relaxation.
static constexpr int kMaxSupportDevices = 5;

/// A lower bound of a row's bytes in a shard of these columns. The terms that
/// do not grow with rows are smallest per row if the shard has all rows, or all
/// but one (results of row shards have another type).
double Cases::leastPerRow(size_t table, int64_t colBegin,
                          int64_t colEnd) const {
  Shard shard = whole(table);
  shard.devices = {0};
  shard.colBegin = colBegin;
  shard.colEnd = colEnd;
  double least = static_cast<double>(bytes(table, shard)) /
                 static_cast<double>(shard.rows());
  if (--shard.rowEnd > 0)
    least = std::min(least, static_cast<double>(bytes(table, shard)) /
                                static_cast<double>(shard.rows()));
  return least;
}

/// A lower bound of the bytes of these columns in any cut into rectangles: each
/// row is cut into the best widths.
int64_t Cases::relaxedBytes(size_t table, int64_t colBegin, int64_t colEnd,
                            bool columns) const {
  int64_t minWidth = tableRules[table].minWidth;
  std::map<int64_t, double> leastUpTo = {{colBegin, 0}};
  for (int64_t end = colBegin; end < colEnd;) {
    end = std::min(colEnd, end / kColumnAlignment * kColumnAlignment +
                               kColumnAlignment);
    double least = std::numeric_limits<double>::infinity();
    for (auto [begin, before] : leastUpTo)
      if ((columns && end - begin >= minWidth) ||
          (begin == colBegin && end == colEnd))
        least = std::min(least, before + leastPerRow(table, begin, end));
    leastUpTo[end] = least;
  }
  double total =
      leastUpTo[colEnd] * static_cast<double>(source.tables[table].rows);
  if (source.memoryModel == MemoryModel::WeightsOnly)
    return static_cast<int64_t>(total * (1 - 1e-12));
  // Rounding of ids per feature, and of long segments (at most what the whole
  // has of them).
  double slack = 1 + 1e-12 * total;
  for (int index : features[table]) {
    const Feature &feature = source.features[static_cast<size_t>(index)];
    double ids = static_cast<double>(featureBatch(source, feature)) *
                 p99Pooling(feature);
    slack += 200 + std::floor(ids / 1024) * 4 *
                       static_cast<double>(source.tables[table].dim);
  }
  return std::max<int64_t>(0, static_cast<int64_t>(total - slack));
}

/// One case for each set of devices that all hold a part.
void Cases::addSupports(size_t table, OracleForm form,
                        std::vector<OracleForm> &forms) const {
  if (!tableRules[table].inSet || devices() > kMaxSupportDevices) {
    form.exactSupport = false;
    form.support |= form.relaxedOn;
    forms.push_back(form);
    return;
  }
  Mask certain = form.support, all = form.relaxedOn;
  for (Mask part = all; part; part = (part - 1) & all) {
    form.relaxedOn = part;
    form.support = certain | part;
    forms.push_back(form);
  }
}

bool Cases::cutsBothWays(size_t table) const {
  const Rules &rule = tableRules[table];
  const Table &what = source.tables[table];
  return rule.allows(ShardingKind::RowColumn) && what.rows > 1 &&
         what.dim > kColumnAlignment && what.dim >= 2 * rule.minWidth;
}

/// Cuts by rows alone: one case for each set of devices, each of which holds at
/// least the fixed bytes of a row shard. A single device has two shards.
bool Cases::addRowSupports(size_t table, Mask on,
                           std::vector<OracleForm> &forms) const {
  Shard shard = whole(table);
  int64_t rows = shard.rowEnd;
  if (rows < 4 || devices() > kMaxSupportDevices)
    return false;
  shard.devices = {0};
  shard.rowEnd = 1;
  double one = static_cast<double>(bytes(table, shard));
  shard.rowEnd = rows - 1;
  double most = static_cast<double>(bytes(table, shard));
  double perRow = (most - one) / static_cast<double>(rows - 2);
  // Rounding of ids, per feature, and of long segments.
  double slack = 1;
  for (int index : features[table]) {
    const Feature &feature = source.features[static_cast<size_t>(index)];
    slack += 100 + p99Pooling(feature) *
                       static_cast<double>(featureBatch(source, feature)) /
                       1024 * 4 * static_cast<double>(shard.width());
  }
  if (source.memoryModel == MemoryModel::WeightsOnly)
    slack = 0;
  OracleForm form;
  auto each = static_cast<int64_t>(std::max(0.0, one - perRow - slack));
  form.relaxation = static_cast<int64_t>(
      std::max(0.0, perRow * static_cast<double>(rows) * (1 - 1e-12) - slack));
  for (Mask part = on; part; part = (part - 1) & on) {
    bool single = (part & (part - 1)) == 0;
    form.bytes.assign(static_cast<size_t>(devices()), 0);
    for (int device = 0; device < devices(); ++device)
      if (part & bit(device))
        form.bytes[static_cast<size_t>(device)] = single ? 2 * each : each;
    form.relaxedOn = form.support = part;
    forms.push_back(form);
  }
  return true;
}

void Cases::addRelaxation(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  const Table &what = source.tables[table];
  bool both = cutsBothWays(table);
  bool rows = rule.allows(ShardingKind::RowWise) && what.rows > 1;
  bool inner = rule.allows(ShardingKind::TableRowWise) && what.rows > 1;
  OracleForm form;
  form.bytes.resize(static_cast<size_t>(devices()));
  form.relaxation = relaxedBytes(table, 0, what.dim, both);
  form.relaxedOn = rule.devices;
  if (both)
    return addSupports(table, form, forms);
  for (Mask group : rows ? std::vector<Mask>{rule.devices} : groups) {
    form.relaxedOn = rule.devices & group;
    if (!(rows || inner) || !form.relaxedOn)
      continue;
    if (!addRowSupports(table, form.relaxedOn, forms))
      addSupports(table, form, forms);
  }
}
