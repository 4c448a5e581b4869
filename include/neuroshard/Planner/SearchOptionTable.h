//===- SearchOptionTable.h - Search options by name -------------*- C++ -*-===//
///
/// \file
/// SearchOptions.def as values and as a table. Front ends fill
/// SearchOptionValues, which are checked and turned into SearchOptions.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PLANNER_SEARCHOPTIONTABLE_H
#define NEUROSHARD_PLANNER_SEARCHOPTIONTABLE_H

#include "neuroshard/Model/Diagnostics.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neuroshard {

struct SearchOptions;
struct ShardingPlan;

/// Every option of SearchOptions.def, at its default until given.
struct SearchOptionValues {
#define SEARCH_TEXT(ID, KEY, DEFAULT, ...) std::string ID = DEFAULT;
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, ...) TYPE ID = DEFAULT;
#define SEARCH_NUMBER(ID, KEY, DEFAULT, ...) double ID = DEFAULT;
#include "neuroshard/Planner/SearchOptions.def"

  bool operator==(const SearchOptionValues &) const = default;
};

enum class OptionKind { Text, Whole, Number };

/// The searches that read an option.
enum class OptionScope {
  Always,
  StepObjective,
  Published,
  DreamShard,
  WarmStart
};

/// A row of the table.
struct SearchOption {
  std::string_view key;
  /// The key with dashes.
  std::string flag;
  OptionKind kind = OptionKind::Text;
  /// As text: "3", "auto"; empty for none.
  std::string_view defaultText;
  OptionScope scope = OptionScope::Always;
  /// Unit of a number; empty for none.
  std::string_view unit;
  std::string_view help;
  /// The range of a number includes both. Bounds of whole numbers may be
  /// rounded here; they are exact in `range`.
  double low = 0, high = 0;
  /// "expected a whole number in [1, 1000000]"; of texts empty.
  std::string range;
};

/// All rows, in the order of the table.
std::span<const SearchOption> searchOptionTable();
/// The row of a key of the table.
const SearchOption &searchOption(std::string_view key);
/// With unit, range and default, for a command line.
std::string helpOf(const SearchOption &option);

/// The options of a search: the values checked, each in its range and read by
/// the search that they ask for, the errors at their keys. `previous` is the
/// plan that values.previous names, or null. The policy is left for the caller,
/// who can read its file.
Expected<SearchOptions> makeSearchOptions(const SearchOptionValues &values,
                                          const ShardingPlan *previous);

/// The reverse, without cost model and the names of files.
SearchOptionValues valuesOf(const SearchOptions &options);

/// Every number that is out of its range.
Diagnostics checkRanges(const SearchOptionValues &values);

/// The numbers that decide the plan, for its provenance: those that the search
/// reads, by their keys; the seed has an entry of its own there.
std::vector<std::pair<std::string, std::string>>
settingsOf(const SearchOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_SEARCHOPTIONTABLE_H
