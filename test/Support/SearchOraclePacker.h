//===- SearchOraclePacker.h - Makes a plan of chosen forms ------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H
#define NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H

#include "SearchOracleForms.h"

#include <optional>

namespace neuroshard::oracle {

/// A plan that verify() accepts with each table in its chosen form, relaxations
/// poured into the devices by rows in a number of random orders, or nothing.
std::optional<ShardingPlan> pack(const ShardingProblem &problem,
                                 const Cases &cases,
                                 const std::vector<const OracleForm *> &chosen);

} // namespace neuroshard::oracle

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHORACLEPACKER_H
