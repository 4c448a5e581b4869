//===- CommunicationCommands.h - Commands on exchange models ----*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_COMMUNICATIONCOMMANDS_H
#define NEUROSHARD_TOOLS_TRAIN_COMMUNICATIONCOMMANDS_H

#include "Settings.h"

#include "neuroshard/Model/Diagnostics.h"

namespace neuroshard {

/// Trains a model, writes it and shows its held-out figures.
Expected<void> trainCommunicationModel(const Settings &settings);

/// Writes a model with the interval that the held-out samples give it.
Expected<void> fitCommunicationInterval(const Settings &settings);

/// Shows a model's figures on samples that are held out.
Expected<void> evaluateCommunicationModel(const Settings &settings);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_COMMUNICATIONCOMMANDS_H
