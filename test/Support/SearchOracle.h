//===- SearchOracle.h - Decides whether a problem has a plan ----*- C++ -*-===//
///
/// \file
/// Judges small problems with nothing of lib/Planner's searches: only what a
/// plan occupies (Memory.h) and the verifier.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_SUPPORT_SEARCHORACLE_H
#define NEUROSHARD_TEST_SUPPORT_SEARCHORACLE_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <string>

namespace neuroshard {

enum class Verdict { Feasible, Infeasible, Undecided };

struct Judgement {
  Verdict verdict = Verdict::Undecided;
  /// A valid plan, when feasible.
  ShardingPlan plan;
  /// Nodes of the case analysis.
  int64_t nodes = 0;
};

/// Whether a problem (of at most 32 devices, for which check() finds nothing)
/// has a plan in which only shards written by hand are in host memory.
///
/// Infeasible is a proof: for each table every form it may take is gone
/// through, where a form without a finite list of cuts (rows, rows and columns)
/// is replaced by something weaker, a relaxation of the least bytes any such
/// cut takes that any allowed device may hold; for no combination do places,
/// separation, co-location and memory (a flow, for the relaxations) agree.
/// Feasible comes with a plan that verify() accepts, made by trying every
/// combination or by pouring tables into devices in random orders.
Judgement judge(const ShardingProblem &problem);

/// A random problem with all kinds of constraints, feasible or not, small
/// enough for judge(): 1 to 16 devices, equal or not, in one or two levels,
/// both targets, memory models and optimizer semantics, host memory, snapshots.
ShardingProblem randomProblem(uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHORACLE_H
