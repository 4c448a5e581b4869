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

/// How a planner that decides table by table cuts a table. Finer than
/// ShardingKind: TableColumnWise keeps the column shards inside one innermost
/// group, and Grid puts each column strip on one group and cuts it there by
/// rows.
enum class FormKind {
  TableWise,
  ColumnWise,
  TableColumnWise,
  RowWise,
  TableRowWise,
  Grid,
  Replicated,
  /// The units as they are: written by hand, co-located, or the rest of such a
  /// table.
  AsGiven
};

std::string_view toString(FormKind kind);

/// One form of one table, or of a co-located set.
struct TableForm {
  FormKind kind = FormKind::AsGiven;
  /// The units to place. Of forms cut by rows they are whole: each is cut once
  /// its group is chosen.
  std::vector<UnitPtr> units;
  /// One of these groups of devices takes each unit, cut by rows over all its
  /// devices, or (TableColumnWise) all units. Empty: any device takes a unit.
  std::vector<std::vector<int>> groups;

  bool cutsRows() const {
    return !groups.empty() && kind != FormKind::TableColumnWise;
  }
  /// The number of shards after all cuts.
  size_t shardCount() const;
};

/// A table that may take several forms, or a table or co-located set that may
/// not.
struct FormEntry {
  /// -1: no choice.
  int table = -1;
  /// The form AsGiven.
  TableForm given;
};
/// The entries of all tables. `units` are those of initialUnits().
std::vector<FormEntry> formEntries(const SearchContext &context,
                                   const std::vector<UnitPtr> &units);

/// The table in one piece.
UnitPtr wholeTable(const SearchContext &context, int table);

/// A form of the table. Nothing when a rule, the target or the table's size
/// forbids it, or when it equals a form of another kind. `columnWidth`: width
/// of column shards, a multiple of 4.
std::optional<TableForm> makeForm(const SearchContext &context, int table,
                                  FormKind kind, int64_t columnWidth);

/// The unit in blocks of ceil(rows / count) rows; the last may have fewer.
std::vector<UnitPtr> blocksOf(const SearchContext &context, const Unit &unit,
                              size_t count);

/// Places one form of every entry: first the units on all devices; then, by the
/// fewest devices to choose from and the highest key, each unit on the device
/// (or group) with the least `load` so far that has room. Nothing when a unit
/// finds no room; `blocking` then is that unit.
std::optional<SearchState>
placeForms(const SearchContext &context,
           std::span<const TableForm *const> forms,
           const std::function<double(const TableForm &)> &key,
           const std::function<double(const Unit &)> &load, UnitPtr &blocking);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_TABLEFORMS_H
