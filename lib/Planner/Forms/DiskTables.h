//===- DiskTables.h - Tables on disk where memory is too small --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_FORMS_DISKTABLES_H
#define NEUROSHARD_LIB_PLANNER_FORMS_DISKTABLES_H

#include "neuroshard/Model/ShardingProblem.h"

#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// Puts tables on disk until memory holds the others and caches for the rows
/// that batches under way use: those first whose bytes are used least. The rest
/// of memory goes to the caches where it brings most hits. Nothing if no table
/// would be on disk, or memory is too small for that as well. Expects a problem
/// that check() accepts. The result is the problem with a cache share for each
/// of these tables: each of its plans is a plan of the given problem.
std::optional<ShardingProblem> withTablesOnDisk(const ShardingProblem &problem);

/// A sentence for each table with a cache share: its cache, the hits to expect,
/// and the bytes of a step.
std::vector<std::string> explainTablesOnDisk(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_FORMS_DISKTABLES_H
