//===- Inputs.h - Random batches and weights -------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_INPUTS_H
#define NEUROSHARD_TOOLS_RUN_INPUTS_H

#include "Signature.h"
#include "Tensor.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>

namespace neuroshard::run {

/// The number of ids per sample: the mean of the feature, or `otherwise` if it
/// is not listed. Every sample has the rounded mean, or with `poisson` a number
/// drawn around it.
struct PoolingFactors {
  std::map<std::string, double> meanOfFeature;
  double otherwise = 1;
  bool poisson = false;
};

/// Sets the means of the features that a workload file lists. Throws
/// std::runtime_error if the file cannot be read or lists no feature of the
/// artifact.
void readMeans(const std::string &workload, const Signature &signature,
               PoolingFactors &pooling);

/// Fills an f32 tensor with values in [low, high).
void fillUniform(Tensor &tensor, float low, float high,
                 std::mt19937_64 &random);

/// Rows [begin, end) of the first dimension.
Tensor sliceRows(const Tensor &tensor, int64_t begin, int64_t end);

/// One value per argument of `function` but the device, for `batch` samples:
/// uniform ids below the rows of their tables; dense inputs and sample weights
/// uniform in [0, 1); weights, that is tensors without a batch dimension,
/// uniform within 1 / sqrt(first dimension). Throws std::runtime_error for an
/// argument of another kind.
std::vector<Value> randomInputs(const Signature &signature,
                                const FunctionSpec &function, int64_t batch,
                                const PoolingFactors &pooling,
                                std::mt19937_64 &random);

/// The part of one argument that belongs to a device: the first batch mod
/// devices devices have one sample more. What has no batch goes to all.
Value localPart(const ValueSpec &spec, const Value &value, int64_t features,
                int64_t batch, int64_t rank, int64_t devices);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_INPUTS_H
