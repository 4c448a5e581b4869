//===- ComputeTraining.h - Trains compute models ----------------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_COMPUTETRAINING_H
#define NEUROSHARD_TRAINING_COMPUTETRAINING_H

#include "neuroshard/CostModel/ComputeSamples.h"
#include "neuroshard/CostModel/NeuralCompute.h"
#include "neuroshard/Training/Options.h"
#include "neuroshard/Training/Split.h"

namespace neuroshard {

/// Trains a compute model on the training samples of a split, with the times
/// that are corrected for drift. The same arguments give the same model,
/// whatever the number of threads. With `from`, that model is fine-tuned: its
/// features keep their scale, all its weights move. The card is left empty.
Expected<NeuralComputeParameters>
trainCompute(const ComputeSamples &samples, const Split &split,
             const TrainingOptions &options,
             const NeuralComputeParameters *from = nullptr);

/// LibTorch's predictions for some samples, in ms. Tests compare the inference
/// with it.
std::vector<ComputeMs>
predictWithTorch(const NeuralComputeParameters &parameters,
                 const ComputeSamples &samples,
                 std::span<const size_t> indices);

/// Concatenates the samples and the tables of several files. The metadata is
/// that of the first. An error if device classes differ or there is no file.
Expected<ComputeSamples> mergeSamples(std::vector<ComputeSamples> parts);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_COMPUTETRAINING_H
