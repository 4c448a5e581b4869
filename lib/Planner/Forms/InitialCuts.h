//===- InitialCuts.h - Tables cut before the first placement ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_INITIALCUTS_H
#define NEUROSHARD_LIB_PLANNER_FORMS_INITIALCUTS_H

#include "Placement/Greedy.h"

#include <string>
#include <vector>

namespace neuroshard {

/// The direction in which a rule cuts units that cost too much. A row shard
/// receives only the ids of its rows, a column shard sends only its columns of
/// the results; LessTraffic takes whichever exchanges less, and RowsAndColumns
/// cuts both ways, so that a piece receives as much as it sends. Links cuts
/// rows for the ids and columns for the results, each until they are few.
enum class Way { Columns, Rows, LessTraffic, RowsAndColumns, Links };

/// A rule for cuts before placement: units of a larger share of the cost are
/// cut.
struct CutRule {
  double costShare = std::numeric_limits<double>::infinity();
  Way way = Way::Columns;

  /// "column pieces up to 0.5 of a mean device".
  std::string str() const;
};

/// The rules that the default search tries: first by memory alone, then with
/// several shares of the cost by columns, by rows, by traffic, and by both.
std::vector<CutRule> cutRules(const SearchContext &context);

/// The units, with those cut that are too large for a device or too costly by
/// the rule.
std::vector<UnitPtr> cutBy(const SearchContext &context, const CutRule &rule,
                           const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_INITIALCUTS_H
