//===- SearchJson.h - Search options and results as JSON --------*- C++ -*-===//
///
/// \file
/// The options are one flat object whose keys are those of SearchOptions.def.
/// Results are what `neuroshard plan --json` prints; the C API and the Python
/// module pass on these texts.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SERIALIZATION_SEARCHJSON_H
#define NEUROSHARD_SERIALIZATION_SEARCHJSON_H

#include "neuroshard/Planner/Assumptions.h"
#include "neuroshard/Planner/Search.h"

#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Options of a search and of its problem.
struct SearchRequest {
  SearchOptions options;
  std::string costModel;
  /// File of the placement policy, to be read into `options`.
  std::string policy;
  /// Replace those of the problem; empty: kept.
  std::string target, topology;
};

/// Reads an object, or an empty text for all defaults. "previous" is a plan;
/// "deadline_s" and "previous" may be null. Beside the search's options there
/// are "target" and "topology". Unknown keys and values out of range are errors
/// at their keys.
Expected<SearchRequest> parseSearchRequest(std::string_view json);

/// `remarks`: those of the cost model. `assumptions`: assumptionsOf().
std::string writeSearchResult(const SearchResult &result,
                              const std::vector<std::string> &remarks,
                              const std::vector<Assumption> &assumptions);
std::string writeBreakdown(const CostBreakdown &breakdown);
/// An object with limit, message, details and advice.
std::string writePlanningError(const PlanningError &error);

} // namespace neuroshard

#endif // NEUROSHARD_SERIALIZATION_SEARCHJSON_H
