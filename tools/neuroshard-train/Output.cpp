//===- Output.cpp - Checks and writes output files ------------------------===//

#include "Output.h"

#include "neuroshard/Serialization/Files.h"

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

Expected<void> neuroshard::showTable(const EvaluationTable &table,
                                     const std::string &path) {
  std::cout << toMarkdown(table) << std::flush;
  if (path.empty())
    return {};
  return writeFile(path,
                   path.ends_with(".json") ? toJson(table) : toMarkdown(table));
}
