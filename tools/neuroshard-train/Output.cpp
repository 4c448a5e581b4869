//===- Output.cpp - Writes tables of figures ------------------------------===//

#include "Output.h"

#include <fstream>
#include <iostream>

using namespace neuroshard;

Diagnostics neuroshard::placeIn(const std::string &path,
                                Diagnostics diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    diagnostic.where = path + ": " + diagnostic.where;
  return diagnostics;
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
