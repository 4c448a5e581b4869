//===- TestModels.h - The model, plans and data of the tests ---*- C++ -*-===//
//
// One model with all features (shared tables, two inputs, all poolings, types,
// weights, padding), the ways to shard it, and batches for it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_TESTMODELS_H
#define NEUROSHARD_TEST_RUNTIME_TESTMODELS_H

#include "Oracle.h"

#include <random>

namespace neuroshard::test {

Model makeModel(Optimizer optimizer);

/// Where a plan puts shards; names as in the tests' output.
enum class PlanKind {
  TableWise,
  Column,    ///< uneven widths.
  Row,       ///< uneven ranges.
  RowColumn, ///< and column boundaries that differ between row ranges.
  Replicated,
  Mixed,
};
const char *name(PlanKind kind);
bool splitsRows(PlanKind kind);

std::vector<ShardPlace> makePlan(const Model &model, PlanKind kind,
                                 int devices);

/// Small integers (every sum is exact in f32, and every mean too) or normally
/// distributed values.
enum class Data { Integers, Reals };

/// How rows are drawn. Squares: low rows are hot; Zipf: row i with a chance of
/// about 1 / (i + 1).
enum class Draw { Squares, Uniform, Zipf };

class DataMaker {
public:
  DataMaker(const Model &model, Data data, unsigned seed)
      : model(model), data(data), random(seed) {}

  /// Bags of 0, 1, 2 or 4 ids with many repetitions, one batch per exchange.
  std::vector<Batch> batches(std::vector<int64_t> sizes);
  std::vector<float> values(int64_t count);
  std::vector<Values> gradients(const Oracle &oracle,
                                const std::vector<Batch> &batches);
  /// The same random tables in the oracle and the world.
  void fillTables(Oracle &oracle, TestWorld &world);

  Draw draw = Draw::Squares;

private:
  int64_t drawRow(int64_t rows);

  Model model;
  Data data;
  std::mt19937 random;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_TESTMODELS_H
