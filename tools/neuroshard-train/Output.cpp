//===- Output.cpp - Writes tables of figures ------------------------------===//

#include "Output.h"

#include <fstream>
#include <iostream>

using namespace neuroshard;

Expected<void> neuroshard::showTable(std::span<const EvaluationRow> rows,
                                     const std::string &path) {
  std::cout << toMarkdown(rows) << std::flush;
  if (path.empty())
    return {};
  std::ofstream file(path);
  file << (path.ends_with(".json") ? toJson(rows) : toMarkdown(rows));
  if (!file.flush())
    return failure(path, "cannot be written");
  return {};
}
