//===- TableForms.h - The forms a table can take ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_TABLEFORMS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_TABLEFORMS_H

#include "Units/SearchState.h"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace neuroshard {

/// How a planner that decides table by table cuts one: the kinds of such
/// planners are finer than ShardingKind in that TableColumnWise keeps the
/// column pieces inside one innermost group, and Grid puts every column piece
/// on one group, cut there by rows.
enum class FormKind {
  TableWise,
  ColumnWise,
  TableColumnWise,
  RowWise,
  TableRowWise,
  Grid,
  Replicated,
  /// Written by hand, co-located, or the rest of such a table.
  AsGiven
};

std::string_view toString(FormKind kind);

/// One form of one table (or of what is placed with it).
struct TableForm {
  FormKind kind = FormKind::AsGiven;
  /// What has to be placed. By rows: what is cut, once its group is chosen.
  std::vector<UnitPtr> pieces;
  /// Groups of devices of which one takes a piece, cut by rows over all of the
  /// group, or (TableColumnWise) all pieces. Empty: any device takes a piece.
  std::vector<std::vector<int>> groups;

  bool cutsRows() const { return !groups.empty() && kind != tableColumns; }
  /// Shards in the end.
  size_t shardCount() const;

private:
  static constexpr FormKind tableColumns = FormKind::TableColumnWise;
};

/// Tables with a choice, one entry each, and one AsGiven form for each table
/// or co-located set without. `units` are the initial ones.
struct FormEntry {
  /// -1: no choice.
  int table = -1;
  TableForm given;
};
std::vector<FormEntry> formEntries(const SearchContext &context,
                                   const std::vector<UnitPtr> &units);

/// The table in one piece.
UnitPtr wholeTable(const SearchContext &context, int table);

/// A form of the table, or nothing when a rule, the target or its size forbids
/// it or it is another form by another name. `columnWidth`: of column pieces,
/// a multiple of 4.
std::optional<TableForm> makeForm(const SearchContext &context, int table,
                                  FormKind kind, int64_t columnWidth);

/// The piece in blocks of ceil(rows / count) rows; the last may have fewer.
std::vector<UnitPtr> blocksOf(const SearchContext &context, const Unit &piece,
                              size_t count);

/// Puts a form of every entry on the devices: first what goes to all devices,
/// then, those with the fewest devices to choose from and the highest key
/// first, each piece on the device (group) with the least `load` so far that
/// has room. Nothing when a form finds no room; `blocking` then is the piece.
std::optional<SearchState>
placeForms(const SearchContext &context,
           std::span<const TableForm *const> forms,
           const std::function<double(const TableForm &)> &key,
           const std::function<double(const Unit &)> &load, UnitPtr &blocking);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_TABLEFORMS_H
