//===- Oracle.h - One step of a model, naively -----------------*- C++ -*-===//
//
// The expected results of every plan, from whole tables without devices or
// sorting. Sums and gradients of rows are rounded to the wire type, as if every
// table had one shard on another device.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_ORACLE_H
#define NEUROSHARD_TEST_RUNTIME_ORACLE_H

#include "TestWorld.h"

namespace neuroshard::test {

class Oracle {
public:
  /// Row-wise optimizers keep one state per row and group of columns;
  /// `columnGroups` are the first columns of the groups of every table ({0}
  /// for one state per row).
  explicit Oracle(Model model, std::vector<int64_t> columnGroups = {0});

  StepResult forward(const std::vector<Batch> &batches) const;
  /// Updates tables and states.
  StepResult train(const std::vector<Batch> &batches,
                   const std::vector<Values> &gradients, float learningRate,
                   int64_t step);

  /// Rows of the result of a lookup.
  int64_t resultRows(size_t exchange, size_t lookup,
                     const std::vector<Batch> &batches) const;

  std::vector<std::vector<float>> tables;
  std::vector<std::vector<float>> states[2];
  /// Sum of |x| behind each result value, for tolerances.
  std::vector<Values> magnitudes(const std::vector<Batch> &batches) const;

private:
  struct Term {
    float weight;
    const float *gradient;
  };

  float summed(const std::vector<Term> &terms, int64_t column) const;
  void updateRow(int table, int64_t row, const std::vector<Term> &terms,
                 float stepSize);

  Model model;
  std::vector<int64_t> columnGroups;
};

/// `value` rounded to the type and back.
float roundTo(Element type, float value);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_ORACLE_H
