//===- ComputeCommands.h - Commands on compute models -----------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_COMPUTECOMMANDS_H
#define NEUROSHARD_TOOLS_TRAIN_COMPUTECOMMANDS_H

#include "Settings.h"

#include "neuroshard/Model/Diagnostics.h"

namespace neuroshard {

/// Trains a model, writes it and shows its held-out figures.
Expected<void> trainComputeModel(const Settings &settings);

/// Held-out figures by the number of training samples, from scratch and
/// fine-tuned from a model.
Expected<void> drawComputeCurve(const Settings &settings);

/// Writes a model with the interval that the held-out samples give it.
Expected<void> fitComputeInterval(const Settings &settings);

/// Shows a model's figures on samples that are held out.
Expected<void> evaluateComputeModel(const Settings &settings);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_COMPUTECOMMANDS_H
