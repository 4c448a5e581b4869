//===- SearchNames.cpp - Names of algorithms and objectives ---------------===//

#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/Search.h"

#include <array>

using namespace neuroshard;

namespace {

constexpr std::array<std::string_view, 2> kObjectives = {"published", "step"};
constexpr std::array<std::string_view, 10> kAlgorithms = {
    "default", "published",   "random",     "dim",      "size",
    "lookup",  "size-lookup", "dreamshard", "torchrec", "threshold"};
constexpr std::array<std::string_view, 7> kLimits = {
    "bad input",  "device memory", "host memory", "disk",
    "constraint", "target",        "algorithm"};

} // namespace

std::string_view neuroshard::toString(ObjectiveKind kind) {
  return nameOf(kObjectives, kind);
}

std::string_view neuroshard::toString(Algorithm algorithm) {
  return nameOf(kAlgorithms, algorithm);
}

std::string_view neuroshard::toString(Limit limit) {
  return nameOf(kLimits, limit);
}

std::optional<ObjectiveKind>
neuroshard::parseObjectiveKind(std::string_view text) {
  return valueOf<ObjectiveKind>(kObjectives, text);
}

std::optional<Algorithm> neuroshard::parseAlgorithm(std::string_view text) {
  return valueOf<Algorithm>(kAlgorithms, text);
}

std::span<const Algorithm> neuroshard::allAlgorithms() {
  static constexpr std::array<Algorithm, 10> kAll = {
      Algorithm::Default,    Algorithm::Published,  Algorithm::Random,
      Algorithm::Dim,        Algorithm::Size,       Algorithm::Lookup,
      Algorithm::SizeLookup, Algorithm::DreamShard, Algorithm::TorchRec,
      Algorithm::Threshold};
  return kAll;
}
