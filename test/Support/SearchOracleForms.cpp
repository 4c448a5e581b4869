//===- SearchOracleForms.cpp - Every form a table may take ----------------===//

#include "SearchOracleForms.h"

#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

using namespace neuroshard;
using namespace neuroshard::oracle;

namespace {

/// More column cuts than this are replaced by a relaxation.
constexpr size_t kMaxColumnModes = 3000;

constexpr ShardingKind kColumn = ShardingKind::ColumnWise;

/// Every way to give `count` equal things to the devices of a mask.
void forEachSplit(int64_t count, Mask devices, int deviceCount,
                  const std::function<void(const std::vector<int64_t> &)> &f) {
  std::vector<int64_t> share(static_cast<size_t>(deviceCount));
  std::function<void(int, int64_t)> next = [&](int device, int64_t left) {
    if (device == deviceCount) {
      if (left == 0)
        f(share);
      return;
    }
    int64_t most = devices & bit(device) ? left : 0;
    for (int64_t n = 0; n <= most; ++n) {
      share[static_cast<size_t>(device)] = n;
      next(device + 1, left - n);
    }
    share[static_cast<size_t>(device)] = 0;
  };
  next(0, count);
}

double splitCount(int64_t count, int devices) {
  double ways = 1;
  for (int i = 1; i < devices; ++i)
    ways *= static_cast<double>(count + i) / i;
  return ways;
}

} // namespace

Cases::Cases(const ShardingProblem &problem)
    : source(summarized(problem)), features(featuresOfTables(source)),
      tableRules(source.tables.size()) {
  int first = 0;
  for (int size : source.topology.levels.back().groupSizes) {
    Mask mask = 0;
    for (int device = first; device < first + size; ++device)
      mask |= bit(device);
    groups.push_back(mask);
    first += size;
  }
  collectRules();
}

void Cases::collectRules() {
  const Constraints &constraints = source.constraints;
  bool torchRec = source.target == Target::TorchRec19;
  auto of = [&](int table) -> Rules & {
    return tableRules[static_cast<size_t>(table)];
  };
  for (size_t i = 0; i < tableRules.size(); ++i) {
    tableRules[i].devices = (Mask(1) << devices()) - 1;
    std::fill(std::begin(tableRules[i].kinds), std::end(tableRules[i].kinds),
              true);
  }
  for (const TableConstraint &constraint : constraints.tables) {
    Rules &rule = of(constraint.table);
    rule.minWidth =
        std::min(constraint.minWidth,
                 source.tables[static_cast<size_t>(constraint.table)].dim);
    for (size_t kind = 0; kind < 6 && !constraint.allowedKinds.empty(); ++kind)
      rule.kinds[kind] = std::count(constraint.allowedKinds.begin(),
                                    constraint.allowedKinds.end(),
                                    static_cast<ShardingKind>(kind)) > 0;
    // The kinds as the verifier reads them.
    auto allow = [&](ShardingKind kind) {
      rule.kinds[static_cast<size_t>(kind)] = true;
    };
    if (devices() == 1)
      allow(ShardingKind::TableWise);
    if (rule.allows(ShardingKind::RowWise))
      allow(ShardingKind::TableRowWise);
    if (groups.size() == 1 && rule.allows(ShardingKind::TableRowWise))
      allow(ShardingKind::RowWise);
  }
  for (size_t i = 0; i < tableRules.size(); ++i) {
    const Optimizer &optimizer = source.tables[i].optimizer;
    bool exactRows = source.optimizerSemantics == OptimizerSemantics::Exact &&
                     optimizer.kind == OptimizerKind::RowWiseAdagrad;
    bool noColumns = exactRows && torchRec;
    if (noColumns)
      tableRules[i].kinds[static_cast<size_t>(kColumn)] = false;
    if (noColumns || torchRec)
      tableRules[i].kinds[static_cast<size_t>(ShardingKind::RowColumn)] = false;
  }
  auto maskOf = [](const std::vector<int> &list) {
    Mask mask = 0;
    for (int device : list)
      mask |= bit(device);
    return mask;
  };
  for (const PinConstraint &pin : constraints.pins)
    of(pin.table).devices &= maskOf(pin.devices);
  for (const ForbidConstraint &forbid : constraints.forbids)
    of(forbid.table).devices &= ~maskOf(forbid.devices);
  for (const auto *sets : {&constraints.coLocate, &constraints.separate})
    for (const std::vector<int> &set : *sets)
      for (int table : set)
        of(table).inSet = true;
  for (const Shard &shard : constraints.fixedShards)
    of(source.tableIndex(shard.table)).fixed.push_back(shard);
}

Shard Cases::whole(size_t table) const {
  Shard shard;
  shard.table = source.tables[table].name;
  shard.rowEnd = source.tables[table].rows;
  shard.colEnd = source.tables[table].dim;
  return shard;
}

int64_t Cases::bytes(size_t table, const Shard &shard, bool norms) const {
  MemoryTerms terms =
      shardMemory(source, source.tables[table], features[table], shard, norms);
  return terms.weightsBytes + terms.optimizerStateBytes + terms.idsBytes +
         terms.backwardBytes;
}

int64_t Cases::bytes(size_t table, const Shard &shard) const {
  return bytes(table, shard,
               needsNormExchange(source.tables[table],
                                 source.optimizerSemantics, {&shard, 1}));
}

int64_t Cases::room(int device) const {
  return source.topology.devices[static_cast<size_t>(device)].memoryBytes -
         deviceBaseMemory(source)[static_cast<size_t>(device)].peakBytes();
}

OracleForm Cases::formOf(size_t table, std::vector<Shard> shards) const {
  OracleForm form;
  form.bytes.resize(static_cast<size_t>(devices()));
  const Table &cut = source.tables[table];
  bool columns = isColumnSplit(cut, shards);
  bool norms =
      needsNormExchange(cut.optimizer.kind, source.optimizerSemantics, columns);
  for (const Shard &shard : shards) {
    for (int device : shard.devices) {
      form.bytes[static_cast<size_t>(device)] += bytes(table, shard, norms);
      form.support |= bit(device);
    }
  }
  if (columns)
    form.everywhere =
        columnPermuteBytes(source, source.tables[table], features[table]);
  form.shards = std::move(shards);
  return form;
}

void Cases::addWhole(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  if (!rule.allows(ShardingKind::TableWise))
    return;
  for (int device = 0; device < devices(); ++device) {
    Shard shard = whole(table);
    shard.devices = {device};
    if (rule.devices & bit(device))
      forms.push_back(formOf(table, {shard}));
  }
}

void Cases::addReplicas(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  if (!rule.allows(ShardingKind::Replicated) || devices() == 1 ||
      rule.devices != (Mask(1) << devices()) - 1)
    return;
  Shard shard = whole(table);
  for (int device = 0; device < devices(); ++device)
    shard.devices.push_back(device);
  forms.push_back(formOf(table, {shard}));
}

/// One piece per device is enough, since pieces of a device can be joined, but
/// a single device takes two. False: there are too many ways.
bool Cases::addColumns(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  if (!rule.allows(kColumn))
    return true;
  int64_t dim = source.tables[table].dim;
  int64_t quads = (dim + kColumnAlignment - 1) / kColumnAlignment;
  if (splitCount(quads, devices()) > kMaxColumnModes)
    return false;
  auto add = [&](const std::vector<std::pair<int64_t, int>> &pieces) {
    std::vector<Shard> shards;
    int64_t column = 0;
    for (auto [width, device] : pieces) {
      Shard shard = whole(table);
      shard.colBegin = column * kColumnAlignment;
      shard.colEnd = std::min(dim, (column += width) * kColumnAlignment);
      shard.devices = {device};
      if (shard.width() < rule.minWidth)
        return;
      shards.push_back(shard);
    }
    forms.push_back(formOf(table, std::move(shards)));
  };
  forEachSplit(quads, rule.devices, devices(), [&](const auto &share) {
    std::vector<std::pair<int64_t, int>> pieces;
    for (int device = 0; device < devices(); ++device)
      if (int64_t width = share[static_cast<size_t>(device)])
        pieces.emplace_back(width, device);
    if (pieces.size() == 1) {
      for (int64_t first = 1; first < quads; ++first)
        add({{first, pieces[0].second}, {quads - first, pieces[0].second}});
      return;
    }
    // The last piece may be narrower than its quads: each in turn.
    for (size_t last = 0; last < pieces.size(); ++last) {
      add(pieces);
      if (dim % kColumnAlignment == 0)
        return;
      std::rotate(pieces.begin(), pieces.begin() + 1, pieces.end());
    }
  });
  return true;
}

/// The one form of rows that torchrec-1.9 runs.
void Cases::addRowBlocks(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  int64_t rows = source.tables[table].rows;
  auto add = [&](Mask group) {
    std::vector<int> list;
    for (int device = 0; device < devices(); ++device)
      if (group & bit(device))
        list.push_back(device);
    int64_t count = static_cast<int64_t>(list.size());
    int64_t block = (rows + count - 1) / count;
    std::vector<Shard> shards;
    for (int64_t row = 0; row < rows; row += block) {
      Shard shard = whole(table);
      shard.rowBegin = row;
      shard.rowEnd = std::min(rows, row + block);
      shard.devices = {list[shards.size()]};
      if (!(rule.devices & bit(shard.devices.front())))
        return;
      shards.push_back(shard);
    }
    if (shards.size() > 1)
      forms.push_back(formOf(table, std::move(shards)));
  };
  if (rule.allows(ShardingKind::RowWise))
    add((Mask(1) << devices()) - 1);
  if (rule.allows(ShardingKind::TableRowWise) && groups.size() > 1)
    for (Mask group : groups)
      add(group);
}

bool Cases::restIsCuttable(size_t table) const {
  const Rules &rule = tableRules[table];
  const Table &what = source.tables[table];
  for (const Shard &shard : rule.fixed) {
    int64_t left = shard.colBegin, right = what.dim - shard.colEnd;
    for (int64_t gap : {left, right, shard.width()})
      if (gap > 0 && gap < rule.minWidth)
        return false;
    bool fullRows = shard.rows() == what.rows;
    bool fullWidth = shard.width() == what.dim;
    bool possible = (fullRows && rule.allows(kColumn)) ||
                    (fullWidth && (rule.allows(ShardingKind::RowWise) ||
                                   rule.allows(ShardingKind::TableRowWise))) ||
                    rule.allows(ShardingKind::RowColumn);
    if (!possible || shard.hasCopies())
      return false;
  }
  return true;
}

/// The forms of a table with a shard written by hand.
void Cases::addRest(size_t table, std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  OracleForm form = formOf(table, rule.fixed);
  if (form.support & ~rule.devices)
    return;
  const Table &what = source.tables[table];
  // The generator writes one shard of a table by hand.
  const Shard &hand = rule.fixed.front();
  if (hand.rows() == what.rows && hand.width() == what.dim) {
    ShardingKind kind =
        hand.hasCopies() ? ShardingKind::Replicated : ShardingKind::TableWise;
    if (rule.allows(kind))
      forms.push_back(form);
    return;
  }
  if (!restIsCuttable(table))
    return;
  if (source.target == Target::TorchRec19)
    return addRestForTorchRec(table, forms);
  form.shards.clear();
  // Above and below the shard, and beside it.
  double beside =
      static_cast<double>(hand.rows()) / static_cast<double>(what.rows);
  auto relaxation = [&](int64_t colBegin, int64_t colEnd, double share) {
    if (colBegin < colEnd)
      form.relaxation += static_cast<int64_t>(
          share *
          static_cast<double>(relaxedBytes(table, colBegin, colEnd, true)));
  };
  relaxation(0, what.dim, 1 - beside);
  relaxation(0, hand.colBegin, beside);
  relaxation(hand.colEnd, what.dim, beside);
  form.relaxedOn = rule.devices;
  addSupports(table, form, forms);
}

/// Row blocks that include the shard, and columns around it.
void Cases::addRestForTorchRec(size_t table,
                               std::vector<OracleForm> &forms) const {
  const Shard &hand = tableRules[table].fixed.front();
  std::vector<OracleForm> all;
  addRowBlocks(table, all);
  bool rows = hand.width() == source.tables[table].dim;
  if (!rows)
    addColumnsBeside(table, all);
  for (OracleForm &form : all)
    for (Shard &shard : form.shards) {
      Shard same = hand;
      same.name.clear();
      if (!(shard == same))
        continue;
      shard.name = hand.name;
      forms.push_back(form);
      break;
    }
}

/// Columns to the left and right of a shard with all rows: on each side, one
/// piece per device is enough.
void Cases::addColumnsBeside(size_t table,
                             std::vector<OracleForm> &forms) const {
  const Rules &rule = tableRules[table];
  Shard hand = rule.fixed.front();
  hand.name.clear();
  int64_t dim = source.tables[table].dim;
  if (!rule.allows(kColumn) || hand.rows() != source.tables[table].rows)
    return;
  auto side = [&](int64_t begin, int64_t end) {
    std::vector<std::vector<Shard>> ways;
    forEachSplit((end - begin) / kColumnAlignment, rule.devices, devices(),
                 [&](const auto &share) {
                   std::vector<Shard> &shards = ways.emplace_back();
                   int64_t column = begin;
                   for (int device = 0; device < devices(); ++device) {
                     int64_t width = share[static_cast<size_t>(device)];
                     Shard shard = whole(table);
                     shard.colBegin = column;
                     shard.colEnd = column += width * kColumnAlignment;
                     shard.devices = {device};
                     if (width > 0)
                       shards.push_back(shard);
                   }
                 });
    return ways;
  };
  for (const std::vector<Shard> &left : side(0, hand.colBegin))
    for (const std::vector<Shard> &right : side(hand.colEnd, dim)) {
      std::vector<Shard> shards = left;
      shards.push_back(hand);
      shards.insert(shards.end(), right.begin(), right.end());
      if (std::all_of(shards.begin(), shards.end(), [&](const Shard &shard) {
            return shard.width() >= rule.minWidth;
          }))
        forms.push_back(formOf(table, std::move(shards)));
    }
}

std::vector<OracleForm> Cases::forms(size_t table) const {
  std::vector<OracleForm> forms;
  const Rules &rule = tableRules[table];
  bool torchRec = source.target == Target::TorchRec19;
  if (torchRec && source.tables[table].dim % kColumnAlignment != 0)
    return forms;
  if (!rule.fixed.empty()) {
    addRest(table, forms);
    return forms;
  }
  addReplicas(table, forms);
  // The relaxation then stands for whole tables and columns, too.
  bool allCuts = !torchRec && !rule.inSet && cutsBothWays(table);
  if (allCuts) {
    addRelaxation(table, forms);
    return forms;
  }
  addWhole(table, forms);
  bool relaxation = !addColumns(table, forms);
  if (torchRec)
    addRowBlocks(table, forms);
  else
    addRelaxation(table, forms);
  if (!relaxation)
    return forms;
  OracleForm form;
  form.bytes.resize(static_cast<size_t>(devices()));
  form.relaxation = relaxedBytes(table, 0, source.tables[table].dim, true);
  form.relaxedOn = rule.devices;
  addSupports(table, form, forms);
  return forms;
}
