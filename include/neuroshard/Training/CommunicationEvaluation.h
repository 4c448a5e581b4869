//===- CommunicationEvaluation.h - Accuracy on exchanges --------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_COMMUNICATIONEVALUATION_H
#define NEUROSHARD_TRAINING_COMMUNICATIONEVALUATION_H

#include "neuroshard/CostModel/CommunicationModel.h"
#include "neuroshard/Training/Evaluation.h"
#include "neuroshard/Training/Interval.h"
#include "neuroshard/Training/Split.h"

#include <functional>

namespace neuroshard {

/// Times of some exchanges: of each device of the first, of the second, ...
using ExchangeTimes = std::vector<std::vector<double>>;

/// An empty table with columns for all devices' times and for the slowest
/// device of each exchange.
EvaluationTable makeCommunicationTable();
EvaluationRow makeRow(std::string subject, const ExchangeTimes &predicted,
                      const ExchangeTimes &measured);

/// A model's predictions for some samples.
ExchangeTimes predictSamples(const CommunicationModel &model,
                             const CommunicationSamples &samples,
                             std::span<const size_t> indices);

/// A model on the held-out samples: all; those with as many devices as training
/// had, and others; by number of devices and by direction.
std::vector<EvaluationRow> evaluateModel(const CommunicationModel &model,
                                         const CommunicationSamples &samples,
                                         const Split &split);

/// The interval of the model's times of a device in an exchange. Devices of
/// one exchange count each, and are in the same half.
std::optional<JudgedInterval> intervalOf(const CommunicationModel &model,
                                         const CommunicationSamples &samples,
                                         std::span<const size_t> heldOut);

/// How well a measurement agrees with its repeat: held out, all, and by number
/// of devices.
std::vector<EvaluationRow> repeatFloors(const CommunicationSamples &samples);

/// The closed form with the links fitted to the data, on the held-out samples.
EvaluationRow evaluateClosedForm(const CommunicationSamples &samples,
                                 const Split &split);

/// The architecture of the NeuroShard paper, trained on the same samples: for
/// each number of devices a network for forward and one for backward, from the
/// devices' sums of dims and their starts to their times. On the held-out
/// forward and backward exchanges with a number of devices seen in training.
EvaluationRow
evaluatePublished(const CommunicationSamples &samples, const Split &split,
                  int64_t epochs, uint64_t seed,
                  const std::function<void(int64_t, double)> &progress);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_COMMUNICATIONEVALUATION_H
