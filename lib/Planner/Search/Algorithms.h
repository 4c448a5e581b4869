//===- Algorithms.h - The searches behind search() --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMS_H
#define NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMS_H

#include "Units/SearchState.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// What a search leaves behind.
struct Outcome {
  /// Complete and within memory; nothing when the search failed.
  std::optional<SearchState> state;
  std::vector<std::string> explanation;
  std::vector<std::string> tried;
  std::string stopReason;
  int64_t evaluations = 0;
  /// When it failed: the last unit that found no place, if known.
  UnitPtr blocking;
};

Outcome searchDefault(const SearchContext &context,
                      const std::vector<UnitPtr> &units);
Outcome searchPublished(const SearchContext &context,
                        const std::vector<UnitPtr> &units);
Outcome searchDreamShard(const SearchContext &context,
                         const std::vector<UnitPtr> &units);
Outcome searchTorchRec(const SearchContext &context,
                       const std::vector<UnitPtr> &units);
Outcome searchThreshold(const SearchContext &context,
                        const std::vector<UnitPtr> &units);

/// The default search's last resort: random forms and places until one is a
/// plan, a bounded number of times.
void placeByChance(const SearchContext &context,
                   const std::vector<UnitPtr> &initial, Outcome &outcome);
Outcome searchBaseline(const SearchContext &context,
                       const std::vector<UnitPtr> &units, Algorithm algorithm);

/// The algorithm of the context's options.
Outcome runAlgorithm(const SearchContext &context,
                     const std::vector<UnitPtr> &units);

/// What turns units into an outcome.
using SearchRun =
    std::function<Outcome(const SearchContext &, const std::vector<UnitPtr> &)>;

/// search() with `run` for its algorithm, for input that was checked. Options'
/// warm start is ignored.
tl::expected<SearchResult, Diagnosis> runSearch(const ShardingProblem &problem,
                                                const CostModel &model,
                                                const SearchOptions &options,
                                                const SearchRun &run);

/// A plan as it is. No state when it is not made of these units.
Outcome placeAsPlanned(const SearchContext &context,
                       const std::vector<UnitPtr> &units,
                       const ShardingPlan &plan);

/// Steps away from a plan, each of which saves more per step of training than
/// moving its bytes costs, at so many milliseconds per byte; tables that
/// `previous` lacks move for nothing. No state when the plan is not made of
/// these units.
Outcome searchNear(const SearchContext &context,
                   const std::vector<UnitPtr> &units, const ShardingPlan &plan,
                   const ShardingPlan &previous, double msPerByte);

/// "1.234 ms".
std::string formatMs(double ms);

/// One sentence per table that is cut or replicated, with what the opposite
/// would cost; of very many, the later ones in groups. `wholes`: the units
/// before any search.
std::vector<std::string> explainCuts(const SearchState &state,
                                     const std::vector<UnitPtr> &wholes);

/// The device that takes longest, and what on it does.
std::vector<std::string> explainBottleneck(const SearchState &state);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_SEARCH_ALGORITHMS_H
