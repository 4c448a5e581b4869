//===- Output.cpp - Checks and writes output files ------------------------===//

#include "Output.h"

#include "neuroshard/Serialization/Files.h"

#include <cstdio>
#include <filesystem>
#include <iostream>

using namespace neuroshard;
namespace fs = std::filesystem;

Expected<void> neuroshard::checkOutput(const Settings &settings) {
  const std::string &path = settings.output;
  if (path.empty())
    return {};
  if (Expected<void> good = checkWritable(path); !good)
    return good;
  std::vector<std::string> inputs = settings.data;
  inputs.push_back(settings.model);
  std::error_code ignored;
  for (const std::string &input : inputs)
    if (fs::equivalent(path, input, ignored))
      return failure(path, "is an input; name another file to write");
  return {};
}

void neuroshard::showInterval(const std::optional<JudgedInterval> &interval) {
  if (!interval)
    return;
  char text[200];
  std::snprintf(
      text, sizeof text,
      "measured over predicted: nine of ten between %.3f and %.3f, by "
      "%zu held-out samples; of %zu others %.1f %% are inside\n",
      interval->interval.low, interval->interval.high, interval->fitted,
      interval->judged, 100 * interval->inside);
  std::cout << text << std::flush;
}

Expected<void> neuroshard::showTable(const EvaluationTable &table,
                                     const std::string &path) {
  std::cout << toMarkdown(table) << std::flush;
  if (path.empty())
    return {};
  return writeFile(path,
                   path.ends_with(".json") ? toJson(table) : toMarkdown(table));
}
