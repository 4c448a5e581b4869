//===- Explain.cpp - How the tables of a plan are cut, in words -----------===//

#include "Algorithms.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace neuroshard;

static std::string joinWidths(const std::vector<UnitPtr> &parts, bool columns) {
  std::string text;
  for (const UnitPtr &part : parts) {
    const Shard &shard = part->shards.front();
    text += (text.empty() ? "" : " + ") +
            std::to_string(columns ? shard.width() : shard.rows());
  }
  return text + (columns ? " columns" : " rows");
}

std::string neuroshard::formatMs(double ms) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f ms", ms);
  return text;
}

/// "4 shards by columns: 32 + 32 + 32 + 32 columns".
static std::string describeCut(const Table &table,
                               const std::vector<UnitPtr> &units) {
  constexpr size_t kMaxListed = 8;
  const Shard &first = units.front()->shards.front();
  bool columns = first.width() != table.dim;
  bool rows = first.rows() != table.rows;
  std::string text = std::to_string(units.size()) + " shards by " +
                     (columns && rows ? "rows and columns"
                      : columns       ? "columns"
                                      : "rows");
  if (units.size() <= kMaxListed && columns != rows)
    text += ": " + joinWidths(units, columns);
  return text;
}

std::vector<std::string> neuroshard::describeSplits(const SearchState &state) {
  constexpr size_t kMaxNames = 4;
  std::map<int, std::vector<UnitPtr>> ofTable;
  for (const UnitPtr &unit : state.units())
    for (int table : unit->tables)
      ofTable[table].push_back(unit);
  // Tables that are cut alike share a line.
  std::map<std::string, std::vector<int>> tablesOfCut;
  for (const auto &[table, units] : ofTable)
    if (units.size() > 1)
      tablesOfCut[describeCut(state.context().table(table), units)].push_back(
          table);
  std::vector<std::string> lines;
  for (const auto &[cut, tables] : tablesOfCut) {
    std::string line = std::to_string(tables.size()) +
                       (tables.size() == 1 ? " table (" : " tables (");
    for (size_t i = 0; i < tables.size() && i < kMaxNames; ++i)
      line += (i ? ", " : "") + state.context().table(tables[i]).name;
    line += tables.size() > kMaxNames ? ", ...) cut into " : ") cut into ";
    lines.push_back(line + cut);
  }
  return lines;
}
