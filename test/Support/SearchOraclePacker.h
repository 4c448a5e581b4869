//===- SearchOraclePacker.h - Makes a plan of chosen forms ------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H
#define NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H

#include "SearchOracleForms.h"

#include <optional>

namespace neuroshard::oracle {

/// A plan that verify() accepts with each table in its chosen form, or nothing.
/// Tries a number of random orders in which devices are filled with the rows of
/// relaxed tables.
std::optional<ShardingPlan> pack(const ShardingProblem &problem,
                                 const Cases &cases,
                                 const std::vector<const OracleForm *> &chosen);

} // namespace neuroshard::oracle

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H
