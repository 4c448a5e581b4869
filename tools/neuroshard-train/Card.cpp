//===- Card.cpp - Cards in model files ------------------------------------===//

#include "Card.h"

#include "neuroshard/Training/FileHash.h"

#include <nlohmann/json.hpp>

#include <filesystem>

using namespace neuroshard;
using Json = nlohmann::ordered_json;

namespace {

Expected<Json> describeFile(const std::string &path) {
  Expected<std::string> hash = fileSha1(path);
  if (!hash)
    return tl::unexpected(hash.error());
  std::string name = std::filesystem::path(path).filename().string();
  return Json{{"file", name}, {"sha1", *hash}};
}

} // namespace

Expected<std::string> neuroshard::makeCard(const CardFacts &facts) {
  Json card;
  auto machine = facts.metadata.find("machine");
  if (machine != facts.metadata.end())
    card["machine"] = machine->second;
  card["data"] = Json::array();
  for (const std::string &path : facts.dataFiles) {
    Expected<Json> file = describeFile(path);
    if (!file)
      return tl::unexpected(file.error());
    card["data"].push_back(*file);
  }
  card["collected"] = Json(facts.metadata);
  card["samples"] = {{"training", facts.split.training.size()},
                     {"validation", facts.split.validation.size()},
                     {"held_out", facts.split.heldOut.size()}};
  card["training"] = {{"seed", facts.options.seed},
                      {"members", facts.options.members},
                      {"epochs", facts.options.epochs},
                      {"min_steps", facts.options.minSteps},
                      {"batch", facts.options.batch},
                      {"learning_rate", facts.options.learningRate},
                      {"weight_decay", facts.options.weightDecay},
                      {"torch", torchVersion()}};
  if (!facts.fromFile.empty()) {
    Expected<Json> file = describeFile(facts.fromFile);
    if (!file)
      return tl::unexpected(file.error());
    card["fine_tuned_from"] = *file;
  }
  card["held_out"] = Json::parse(toJson(facts.heldOut));
  card["repeat_floor"] = Json::parse(toJson(facts.repeats));
  return card.dump();
}
