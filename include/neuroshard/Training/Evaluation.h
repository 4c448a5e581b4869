//===- Evaluation.h - Held-out figures of cost models -----------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_EVALUATION_H
#define NEUROSHARD_TRAINING_EVALUATION_H

#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// How close predictions come to measurements, or measurements to their
/// repeats.
struct Agreement {
  /// Mean relative error and Kendall's tau; NaN where there is no prediction.
  struct Figures {
    double error = std::numeric_limits<double>::quiet_NaN();
    double tau = std::numeric_limits<double>::quiet_NaN();
  };
  size_t count = 0;
  Figures forward, backward, total;
};

/// Both spans have the same size.
Agreement agreement(std::span<const ComputeMs> predicted,
                    std::span<const ComputeMs> measured);
/// The same for a model that predicts forward + backward only.
Agreement agreementOfTotals(std::span<const double> predicted,
                            std::span<const ComputeMs> measured);
/// Of two measurements of the same sets.
Agreement repeatAgreement(std::span<const ComputeMs> first,
                          std::span<const ComputeMs> second);

/// A line of a table of figures.
struct EvaluationRow {
  std::string subject;
  Agreement agreement;
};

/// A markdown table: subject, sets, error in %, tau.
std::string toMarkdown(std::span<const EvaluationRow> rows);
/// A JSON array of objects with the members of Agreement.
std::string toJson(std::span<const EvaluationRow> rows);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_EVALUATION_H
