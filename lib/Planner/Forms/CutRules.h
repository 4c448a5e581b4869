//===- CutRules.h - Choice of tables to cut ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_CUTRULES_H
#define NEUROSHARD_LIB_PLANNER_FORMS_CUTRULES_H

#include "Placement/Greedy.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Along which a rule cuts what costs too much: rows take ids only for
/// themselves, columns results; whichever leaves less to exchange is one.
enum class Way { Columns, Rows, LessTraffic };

/// One way to cut before placing: what may cost more than the share is cut.
struct CutRule {
  double costShare = std::numeric_limits<double>::infinity();
  Way way = Way::Columns;

  /// "column pieces up to 0.5 of a mean device".
  std::string str() const;
};

/// The rules that the default search tries: memory alone first, then several
/// strengths by columns, by rows, and by what leaves less to exchange.
std::vector<CutRule> cutRules(const SearchContext &context);

/// The units with those cut that are too large for a device or, by the rule,
/// too costly.
std::vector<UnitPtr> cutBy(const SearchContext &context, const CutRule &rule,
                           const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_CUTRULES_H
