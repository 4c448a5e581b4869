//===- InputName.cpp - Name of a jagged input in errors -------------------===//

#include "neuroshard/Artifact/InputName.h"

namespace neuroshard {

static std::string namesOf(const std::vector<std::string> &features) {
  constexpr size_t kMost = 4;
  if (features.size() > kMost)
    return features.front() + ", ..., " + features.back() + " (" +
           std::to_string(features.size()) + " features)";
  std::string names;
  for (const std::string &feature : features)
    names += (names.empty() ? "" : ", ") + feature;
  return names;
}

std::string inputName(const ExchangeSpec &exchange) {
  return "input \"" + namesOf(exchange.features) + "\": ";
}

} // namespace neuroshard
