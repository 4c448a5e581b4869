//===- RandomModel.h - Compute models with random weights -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_INFERENCE_RANDOMMODEL_H
#define NEUROSHARD_TOOLS_BENCH_INFERENCE_RANDOMMODEL_H

#include "neuroshard/CostModel/NeuralCompute.h"

namespace neuroshard {

/// A compute model of the usual sizes; what it predicts means nothing, and it
/// says so: it is not measured.
NeuralComputeParameters randomModel(int members, std::string deviceClass);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_BENCH_INFERENCE_RANDOMMODEL_H
