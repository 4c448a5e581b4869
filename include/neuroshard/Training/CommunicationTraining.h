//===- CommunicationTraining.h - Trains communication models ----*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_COMMUNICATIONTRAINING_H
#define NEUROSHARD_TRAINING_COMMUNICATIONTRAINING_H

#include "neuroshard/CostModel/CommunicationModel.h"
#include "neuroshard/Training/Options.h"
#include "neuroshard/Training/Split.h"

namespace neuroshard {

/// The samples as splitSamples() sees them. Exchanges among a number of devices
/// in `leaveOut` count as held out.
std::vector<SampleRole> rolesOf(const CommunicationSamples &samples,
                                std::span<const int> leaveOut);

/// Trains one model for all numbers of devices. The same arguments give the
/// same model, whatever the number of threads. With `from`, that model is
/// fine-tuned. The card is left empty.
Expected<CommunicationParameters>
trainCommunication(const CommunicationSamples &samples, const Split &split,
                   const TrainingOptions &options,
                   const CommunicationParameters *from = nullptr);

/// LibTorch's predictions for some samples: the times of the first one's
/// devices, then of the second one's, ... Tests compare the inference with it.
std::vector<double> predictWithTorch(const CommunicationParameters &parameters,
                                     const CommunicationSamples &samples,
                                     std::span<const size_t> indices);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_COMMUNICATIONTRAINING_H
