//===- SearchOracle.h - Decides whether a problem has a plan ----*- C++ -*-===//
///
/// \file
/// Judges small problems without the searches of lib/Planner: it uses only the
/// memory of a plan (Memory.h) and the verifier.
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
/// Infeasible is a proof. For each table, every form is tried. Forms without a
/// finite list of cuts (rows, or rows and columns) are relaxed to the least
/// bytes that any such cut takes, spread freely over the allowed devices. No
/// combination then satisfies places, separation, co-location and memory (a
/// flow problem for the relaxations). Feasible comes with a plan that verify()
/// accepts, made by trying every combination or by filling devices in random
/// orders.
Judgement judge(const ShardingProblem &problem);

/// A random problem with all kinds of constraints, feasible or not, small
/// enough for judge(): 1 to 16 devices, equal or not, in one or two levels,
/// both targets, memory models and optimizer semantics, host memory, snapshots.
ShardingProblem randomProblem(uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_SUPPORT_SEARCHORACLE_H
