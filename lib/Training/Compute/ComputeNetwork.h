//===- ComputeNetwork.h - Compute network in LibTorch -----------*- C++ -*-===//
//
// The same network as the plain C++ inference of the cost models: a table
// network per shard, a sum, a head. Free of LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_COMPUTE_COMPUTENETWORK_H
#define NEUROSHARD_LIB_TRAINING_COMPUTE_COMPUTENETWORK_H

#include "Layers/Dense.h"
#include "Layers/FitOptions.h"

#include "neuroshard/CostModel/NeuralCompute.h"
#include "neuroshard/Planner/CostModel.h"

#include <span>
#include <vector>

namespace neuroshard {

/// Shard sets as one matrix: the shards of set i are the rows firstShard[i] to
/// firstShard[i + 1].
struct SetData {
  int64_t featureCount = 0;
  std::vector<float> features;
  std::vector<int64_t> firstShard = {0};
  /// One per set; empty where only predictions are wanted.
  std::vector<ComputeMs> times;

  size_t size() const { return firstShard.size() - 1; }
};

/// One member of the ensemble.
struct ComputeNetwork {
  DenseStack table;
  DenseStack head;
};

/// A new network. Its last layers begin small: all shards begin with about the
/// same terms, and the first two sums as the times themselves.
ComputeNetwork newComputeNetwork(uint64_t seed);

/// From and to the weights of a compute model.
ComputeNetwork networkOf(const NeuralComputeMember &member);
NeuralComputeMember memberOf(ComputeNetwork network);

/// Trains `network` and keeps the weights that did best on `validation`.
/// Returns their loss: the mean over forward, backward and their sum of a
/// smoothed |log(predicted / measured)|. Runs on the calling thread alone.
double fitComputeNetwork(ComputeNetwork &network, const SetData &training,
                         const SetData &validation, const FitOptions &options);

/// Shifts the last biases so that the mean of the predicted logs is that of
/// `data`: the start of a new network, or of one that moves to another machine.
void centerComputeNetwork(ComputeNetwork &network, const SetData &data);

/// The times of each set, with the rounding of the sums that the plain C++
/// inference does.
std::vector<ComputeMs> predictSets(const ComputeNetwork &network,
                                   const SetData &data);

/// The architecture of the NeuroShard paper (section 3.2): one time for a set,
/// forward + backward in ms, squared error, Adam with a constant rate.
double fitPublishedNetwork(ComputeNetwork &network, const SetData &training,
                           const SetData &validation,
                           const FitOptions &options);
std::vector<double> predictPublished(const ComputeNetwork &network,
                                     const SetData &data);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_COMPUTE_COMPUTENETWORK_H
