//===- Baselines.h - Published planners to compare with ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_BASELINES_BASELINES_H
#define NEUROSHARD_LIB_PLANNER_BASELINES_BASELINES_H

#include "Units/SearchOutcome.h"

#include <vector>

namespace neuroshard {

/// The paper's beam search over column splits.
SearchOutcome searchPublished(const SearchContext &context,
                              const std::vector<UnitPtr> &units);
/// DreamShard: whole tables, placed by a trained policy.
SearchOutcome searchDreamShard(const SearchContext &context,
                               const std::vector<UnitPtr> &units);
/// TorchRec's planner: enumerate, propose, partition.
SearchOutcome searchTorchRec(const SearchContext &context,
                             const std::vector<UnitPtr> &units);
/// The planner of NVIDIA's distributed-embeddings: thresholds on the number of
/// elements decide how a table is cut.
SearchOutcome searchDistributedEmbeddings(const SearchContext &context,
                                          const std::vector<UnitPtr> &units);
/// Whole tables in descending order of a key, each on the device with the
/// smallest sum of keys.
SearchOutcome placeGreedilyByKey(const SearchContext &context,
                                 const std::vector<UnitPtr> &units,
                                 Algorithm algorithm);
/// Each whole table on a random device among those with room.
SearchOutcome placeRandomly(const SearchContext &context,
                            const std::vector<UnitPtr> &units);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_BASELINES_BASELINES_H
