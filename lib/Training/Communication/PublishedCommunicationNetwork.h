//===- PublishedCommunicationNetwork.h - The paper's network ----*- C++ -*-===//
//
// Free of LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_COMMUNICATION_PUBLISHEDCOMMUNICATIONNETWORK_H
#define NEUROSHARD_LIB_TRAINING_COMMUNICATION_PUBLISHEDCOMMUNICATIONNETWORK_H

#include "Layers/Dense.h"
#include "Layers/FitOptions.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Plain regression from rows of `inputs` numbers to rows of `outputs`: what
/// the published model of one number of devices is. Both matrices are
/// row-major.
struct RegressionData {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> x, y;
};

/// Squared error, Adam with a constant rate, best weights on `validation`.
double fitRegression(DenseStack &layers, const RegressionData &training,
                     const RegressionData &validation,
                     const FitOptions &options);
std::vector<float> predictRegression(const DenseStack &layers,
                                     const RegressionData &data);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_COMMUNICATION_PUBLISHEDCOMMUNICATIONNETWORK_H
