//===- Output.cpp - Checks and writes output files ------------------------===//

#include "Output.h"

#include <filesystem>
#include <fstream>
#include <iostream>

using namespace neuroshard;
namespace fs = std::filesystem;

Diagnostics neuroshard::placeIn(const std::string &path,
                                Diagnostics diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    diagnostic.where = path + ": " + diagnostic.where;
  return diagnostics;
}

Expected<void> neuroshard::checkOutput(const Settings &settings) {
  const std::string &path = settings.output;
  if (path.empty())
    return {};
  std::error_code ignored;
  fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return failure(path, "cannot be written: there is no folder '" +
                             folder.string() + "'");
  if (!fs::exists(path, ignored))
    return {};
  if (!fs::is_regular_file(path, ignored))
    return failure(path, "cannot be written: it is there and is no file");
  std::vector<std::string> inputs = settings.data;
  inputs.push_back(settings.model);
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
  std::ofstream file(path);
  file << (path.ends_with(".json") ? toJson(table) : toMarkdown(table));
  if (!file.flush())
    return failure(path, "cannot be written");
  return {};
}
