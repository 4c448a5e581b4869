//===- StepBytes.h - Ids and results of a step, for memory -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_STEPBYTES_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_STEPBYTES_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/MemoryTerms.h"

#include <cstdint>

namespace neuroshard {

int64_t ceilToInt(double value);

/// An id of a feature with its weight, if it has one.
int64_t idEntryBytes(IdType type, const Feature &feature);

/// Ids and offsets of one feature for `samples` samples.
int64_t inputBytes(const ShardingProblem &problem, const Feature &feature,
                   IdType type, int64_t samples, double share);

/// Rows of results one feature produces for `samples` samples.
int64_t resultRows(const Feature &feature, int64_t samples, double share);

/// Local samples of a feature: the largest part of the batch any device has.
int64_t localSamples(const ShardingProblem &problem, const Feature &feature);

/// Ids of a feature in the largest step that is planned for.
int64_t mostIds(const Feature &feature, int64_t samples);

/// Backwards that make an update; TorchRec updates in each.
int64_t backwardsOfUpdate(const ShardingProblem &problem);

/// Ids of all backwards that make an update, `ids` of each.
int64_t idsOfUpdate(const ShardingProblem &problem, int64_t ids);

/// Adds what each backward but the last leaves until the update.
void addKept(const ShardingProblem &problem, int64_t bytesOfBackward,
             MemoryTerms &terms);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_STEPBYTES_H
