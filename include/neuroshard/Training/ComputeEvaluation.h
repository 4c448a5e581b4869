//===- ComputeEvaluation.h - Accuracy on measured shard sets ----*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_COMPUTEEVALUATION_H
#define NEUROSHARD_TRAINING_COMPUTEEVALUATION_H

#include "neuroshard/CostModel/ComputeSamples.h"
#include "neuroshard/Training/Evaluation.h"
#include "neuroshard/Training/Interval.h"
#include "neuroshard/Training/Split.h"

#include <functional>

namespace neuroshard {

/// The class named in the samples' metadata; an error if it is unknown.
Expected<const DeviceClass *> deviceClassOf(const ComputeSamples &samples);

/// The samples as splitSamples() sees them.
std::vector<SampleRole> rolesOf(const ComputeSamples &samples);

/// Measured times of some samples, corrected for the machine's drift.
std::vector<ComputeMs> correctedTimes(const ComputeSamples &samples,
                                      std::span<const size_t> indices);

/// A model's predictions for some samples.
std::vector<ComputeMs> predictSamples(const SumEmbedding &model,
                                      const DeviceClass &deviceClass,
                                      const ComputeSamples &samples,
                                      std::span<const size_t> indices);

/// How well a measurement agrees with its repeat, which bounds the accuracy of
/// any model: over all pairs and over those that are held out, with the
/// correction for drift and without.
std::vector<EvaluationRow> repeatFloors(const ComputeSamples &samples);

/// A model on the held-out samples: all, without correction, and by batch,
/// element type and optimizer (`mixed`: sets with several).
std::vector<EvaluationRow> evaluateModel(const SumEmbedding &model,
                                         const DeviceClass &deviceClass,
                                         const ComputeSamples &samples,
                                         std::span<const size_t> heldOut);

/// The interval of the model's times of a device, forward and backward
/// together.
std::optional<JudgedInterval> intervalOf(const SumEmbedding &model,
                                         const DeviceClass &deviceClass,
                                         const ComputeSamples &samples,
                                         std::span<const size_t> heldOut);

/// The closed form on the held-out samples, as it is and with one factor each
/// for forward and backward, fitted to the training samples.
std::vector<EvaluationRow> evaluateRoofline(const DeviceClass &deviceClass,
                                            const ComputeSamples &samples,
                                            const Split &split);

/// The architecture of the NeuroShard paper, trained on the same samples as a
/// model of ours: 20 features of a table (reuse histogram, width, pooling,
/// rows), standardised; one number for forward + backward; batches of 512, Adam
/// at 1e-3, squared error in ms, the weights that did best on validation.
EvaluationRow
evaluatePublished(const ComputeSamples &samples, const Split &split,
                  int64_t epochs, uint64_t seed,
                  const std::function<void(int64_t, double)> &progress);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_COMPUTEEVALUATION_H
