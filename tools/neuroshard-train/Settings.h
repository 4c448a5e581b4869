//===- Settings.h - Settings from the command line --------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_SETTINGS_H
#define NEUROSHARD_TOOLS_TRAIN_SETTINGS_H

#include "neuroshard/Training/Options.h"

#include <string>
#include <vector>

namespace neuroshard {

/// The members that a command has no option for keep their defaults.
struct Settings {
  std::vector<std::string> data;
  /// The model to evaluate.
  std::string model;
  /// The model to fine-tune; empty: from scratch.
  std::string from;
  /// What is written: a model, or a table as markdown or JSON by its ending.
  std::string output;
  /// Use only so many training samples; 0: all.
  size_t limit = 0;
  /// Points of a curve.
  std::vector<size_t> counts = {25, 50, 100, 200, 500, 1000};
  double validationShare = 0.1;
  /// Also train and show what the model is compared with.
  bool baselines = false;
  int64_t baselineEpochs = 1000;
  /// Device counts that training does not see.
  std::vector<int> leaveOut;
  TrainingOptions training;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_SETTINGS_H
