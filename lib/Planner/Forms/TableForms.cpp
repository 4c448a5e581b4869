//===- TableForms.cpp - The forms a table can take ------------------------===//

#include "TableForms.h"

#include "Replicas.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

using namespace neuroshard;

namespace {

std::vector<int> allowedDevices(const SearchContext &context, int table,
                                int first, int count) {
  std::vector<int> devices;
  for (int device = first; device < first + count; ++device)
    if (context.rulesOf(table).allowsDevice(device))
      devices.push_back(device);
  return devices;
}

/// For each innermost group, its devices that may hold the table. `complete`:
/// only groups of which all devices may.
std::vector<std::vector<int>> innerGroups(const SearchContext &context,
                                          int table, bool complete) {
  std::vector<std::vector<int>> groups;
  int first = 0;
  for (int size : context.problem.topology.levels.back().groupSizes) {
    std::vector<int> devices = allowedDevices(context, table, first, size);
    if (!complete || static_cast<int>(devices.size()) == size)
      groups.push_back(std::move(devices));
    first += size;
  }
  std::erase_if(groups, [](const auto &group) { return group.size() < 2; });
  return groups;
}

bool hasSeveralGroups(const SearchContext &context) {
  return context.problem.topology.levels.back().groupSizes.size() > 1;
}

/// Column shards of one width; nothing when that gives a single shard.
std::optional<std::vector<UnitPtr>> columnPieces(const SearchContext &context,
                                                 int table, int64_t width) {
  const Table &source = context.table(table);
  int64_t minWidth = std::min(context.rulesOf(table).minWidth, source.dim);
  if (width >= source.dim || width % kColumnAlignment != 0)
    return std::nullopt;
  std::vector<UnitPtr> pieces;
  for (int64_t begin = 0; begin < source.dim; begin += width) {
    Shard shard;
    shard.table = source.name;
    shard.rowEnd = source.rows;
    shard.colBegin = begin;
    shard.colEnd = std::min(source.dim, begin + width);
    if (shard.width() < minWidth)
      return std::nullopt;
    pieces.push_back(makeUnit(context, {shard}));
  }
  return pieces;
}

class FormMaker {
public:
  FormMaker(const SearchContext &context, int table)
      : context(context), table(table), rules(context.rulesOf(table)),
        native(context.problem.target == Target::Native) {}

  std::optional<TableForm> make(FormKind kind, int64_t columnWidth) const;

private:
  std::optional<TableForm> byColumns(FormKind kind, int64_t width) const;
  std::optional<TableForm> byRows(FormKind kind) const;
  std::optional<TableForm> grid(int64_t width) const;
  std::optional<TableForm> replicated() const;

  const SearchContext &context;
  int table;
  const TableRules &rules;
  bool native;
};

std::optional<TableForm> FormMaker::byColumns(FormKind kind,
                                              int64_t width) const {
  if (!rules.allows(ShardingKind::ColumnWise))
    return std::nullopt;
  TableForm form{.kind = kind, .units = {}, .groups = {}};
  if (kind == FormKind::TableColumnWise) {
    // With a single group, any device takes a unit.
    if (!hasSeveralGroups(context))
      return std::nullopt;
    form.groups = innerGroups(context, table, false);
    if (form.groups.empty())
      return std::nullopt;
  }
  std::optional<std::vector<UnitPtr>> pieces =
      columnPieces(context, table, width);
  if (!pieces)
    return std::nullopt;
  form.units = std::move(*pieces);
  return form;
}

std::optional<TableForm> FormMaker::byRows(FormKind kind) const {
  if (context.table(table).rows < 2)
    return std::nullopt;
  TableForm form{.kind = kind, .units = {}, .groups = {}};
  if (kind == FormKind::RowWise) {
    std::vector<int> devices =
        allowedDevices(context, table, 0, context.deviceCount);
    bool complete = static_cast<int>(devices.size()) == context.deviceCount;
    bool inOneGroup = !hasSeveralGroups(context);
    if (!rules.allows(ShardingKind::RowWise) &&
        !(inOneGroup && rules.allows(ShardingKind::TableRowWise)))
      return std::nullopt;
    if (devices.size() < 2 || (!complete && !native))
      return std::nullopt;
    form.groups.push_back(std::move(devices));
  } else {
    // The verifier accepts row-wise in place of both.
    if (!hasSeveralGroups(context) ||
        !(rules.allows(ShardingKind::TableRowWise) ||
          (rules.allows(ShardingKind::RowWise) && native)))
      return std::nullopt;
    form.groups = innerGroups(context, table, !native);
    if (form.groups.empty())
      return std::nullopt;
  }
  form.units.push_back(wholeTable(context, table));
  return form;
}

std::optional<TableForm> FormMaker::grid(int64_t width) const {
  if (!rules.allows(ShardingKind::RowColumn) || context.table(table).rows < 2)
    return std::nullopt;
  TableForm form{.kind = FormKind::Grid,
                 .units = {},
                 .groups = innerGroups(context, table, false)};
  std::optional<std::vector<UnitPtr>> pieces =
      columnPieces(context, table, width);
  if (!pieces || form.groups.empty())
    return std::nullopt;
  form.units = std::move(*pieces);
  return form;
}

std::optional<TableForm> FormMaker::replicated() const {
  if (!rules.allows(ShardingKind::Replicated) || context.deviceCount < 2 ||
      !rules.devices.empty() || !rules.separateSets.empty())
    return std::nullopt;
  if (!pricesReplicas(context) && rules.allows(ShardingKind::TableWise))
    return std::nullopt;
  Shard shard = wholeTable(context, table)->shards.front();
  shard.devices.resize(static_cast<size_t>(context.deviceCount));
  std::iota(shard.devices.begin(), shard.devices.end(), 0);
  return TableForm{.kind = FormKind::Replicated,
                   .units = {makeUnit(context, {shard}, Unit::kEverywhere)},
                   .groups = {}};
}

std::optional<TableForm> FormMaker::make(FormKind kind,
                                         int64_t columnWidth) const {
  switch (kind) {
  case FormKind::TableWise:
    if (!rules.allows(ShardingKind::TableWise))
      return std::nullopt;
    return TableForm{
        .kind = kind, .units = {wholeTable(context, table)}, .groups = {}};
  case FormKind::ColumnWise:
  case FormKind::TableColumnWise:
    return byColumns(kind, columnWidth);
  case FormKind::RowWise:
  case FormKind::TableRowWise:
    return byRows(kind);
  case FormKind::Grid:
    return grid(columnWidth);
  case FormKind::Replicated:
    return replicated();
  case FormKind::AsGiven:
    break;
  }
  return std::nullopt;
}

} // namespace

std::string_view neuroshard::toString(FormKind kind) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "table_wise",     "column_wise", "table_column_wise", "row_wise",
      "table_row_wise", "grid",        "replicated",        "as given"};
  return kNames[static_cast<size_t>(kind)];
}

size_t TableForm::shardCount() const {
  return cutsRows() ? units.size() * groups.front().size() : units.size();
}

UnitPtr neuroshard::wholeTable(const SearchContext &context, int table) {
  const Table &source = context.table(table);
  Shard shard;
  shard.table = source.name;
  shard.rowEnd = source.rows;
  shard.colEnd = source.dim;
  return makeUnit(context, {shard});
}

std::optional<TableForm> neuroshard::makeForm(const SearchContext &context,
                                              int table, FormKind kind,
                                              int64_t columnWidth) {
  return FormMaker(context, table).make(kind, columnWidth);
}

std::vector<UnitPtr> neuroshard::blocksOf(const SearchContext &context,
                                          const Unit &unit, size_t count) {
  const Shard &source = unit.shards.front();
  int64_t parts = static_cast<int64_t>(count);
  int64_t block = ceilDivide(source.rows(), parts);
  std::vector<UnitPtr> blocks;
  for (int64_t row = source.rowBegin; row < source.rowEnd; row += block) {
    Shard shard = source;
    shard.rowBegin = row;
    shard.rowEnd = std::min(source.rowEnd, row + block);
    blocks.push_back(makeUnit(context, {shard}));
  }
  return blocks;
}

std::vector<FormEntry>
neuroshard::formEntries(const SearchContext &context,
                        const std::vector<UnitPtr> &units) {
  std::vector<FormEntry> entries;
  std::map<int, size_t> entryOfTable;
  for (const UnitPtr &unit : units) {
    int table = unit->tables.front();
    const TableRules &rules = context.rulesOf(table);
    int key = rules.coLocateLeader >= 0 ? rules.coLocateLeader : table;
    auto [found, isNew] = entryOfTable.emplace(key, entries.size());
    if (isNew) {
      bool choice = !rules.fixed && rules.coLocateLeader < 0;
      entries.push_back({.table = choice ? table : -1, .given = {}});
    }
    entries[found->second].given.units.push_back(unit);
  }
  return entries;
}
