//===- Evaluation.h - Tables of the accuracy of cost models -----*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_EVALUATION_H
#define NEUROSHARD_TRAINING_EVALUATION_H

#include "neuroshard/Planner/CostModel.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// How close predictions come to measurements, or measurements to their
/// repeats: mean relative error (of a repeat: difference) and Kendall's tau.
struct Agreement {
  double error = 0;
  double tau = 0;
};

/// Both spans have the same size.
Agreement agreement(std::span<const double> predicted,
                    std::span<const double> measured);
Agreement repeatAgreement(std::span<const double> first,
                          std::span<const double> second);

/// Agreement of forward, backward and total compute times.
struct ComputeAgreement {
  Agreement forward, backward, total;
};
ComputeAgreement agreement(std::span<const ComputeMs> predicted,
                           std::span<const ComputeMs> measured);
ComputeAgreement repeatAgreement(std::span<const ComputeMs> first,
                                 std::span<const ComputeMs> second);

/// A row of an EvaluationTable, with one figure per column.
struct EvaluationRow {
  std::string subject;
  size_t samples = 0;
  /// Empty where a model predicts no such time.
  std::vector<std::optional<Agreement>> figures;
};

EvaluationRow makeRow(std::string subject, size_t samples,
                      const ComputeAgreement &agreement);

struct EvaluationTable {
  std::vector<std::string> columns;
  std::vector<EvaluationRow> rows;

  void add(std::vector<EvaluationRow> more);
};

/// An empty table with columns for forward, backward and total times.
EvaluationTable makeComputeTable();

/// A markdown table: subject, samples, error in %, tau.
std::string toMarkdown(const EvaluationTable &table);
/// A JSON array with an object for each row.
std::string toJson(const EvaluationTable &table);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_EVALUATION_H
