//===- RankGroups.h - Groups of four ranks ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIME_EXCHANGE_RANKGROUPS_H
#define NEUROSHARD_TEST_RUNTIME_EXCHANGE_RANKGROUPS_H

#include <vector>

namespace neuroshard::test {

using RankGroups = std::vector<std::vector<int>>;

inline const RankGroups kTwoPairs = {{0, 1}, {2, 3}};
inline const RankGroups kMixedPairs = {{3, 0}, {1, 2}};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_EXCHANGE_RANKGROUPS_H
