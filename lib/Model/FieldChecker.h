//===- FieldChecker.h - Errors of the fields of a problem -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_MODEL_FIELDCHECKER_H
#define NEUROSHARD_LIB_MODEL_FIELDCHECKER_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Support/ShortestText.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace neuroshard {

/// "list[index]".
inline std::string at(const char *list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

/// Collects what is wrong with single fields.
class FieldChecker {
public:
  explicit FieldChecker(const ShardingProblem &problem) : problem(problem) {}

  Diagnostics errors;

protected:
  void error(const std::string &where, const std::string &message) {
    errors.push_back({where, message});
  }
  void wantInteger(const std::string &where, int64_t value, int64_t low,
                   int64_t high) {
    if (value < low || value > high)
      error(where, "expected a whole number in [" + std::to_string(low) + ", " +
                       std::to_string(high) +
                       "], got: " + std::to_string(value));
  }
  void wantNumber(const std::string &where, double value, double low,
                  double high) {
    if (!(value >= low && value <= high))
      error(where, "expected a number in [" + shortestText(low) + ", " +
                       shortestText(high) + "], got: " + shortestText(value));
  }
  bool wantTable(const std::string &where, int table) {
    bool known = table >= 0 && table < static_cast<int>(problem.tables.size());
    if (!known)
      error(where, "expected the index of one of the " +
                       std::to_string(problem.tables.size()) +
                       " tables, got: " + std::to_string(table));
    return known;
  }
  void wantDevices(const std::string &where, const std::vector<int> &devices) {
    if (devices.empty())
      error(where, "expected at least one device");
    for (int device : devices)
      if (device < 0 || device >= problem.topology.deviceCount())
        error(where, "expected devices in [0, " +
                         std::to_string(problem.topology.deviceCount()) +
                         "), got: " + std::to_string(device));
  }
  template <typename List> void wantNames(const char *list, const List &items) {
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < items.size(); ++i) {
      std::string where = at(list, i) + ".name";
      if (items[i].name.empty())
        error(where, "expected a name, got an empty text");
      else if (items[i].name.find('\0') != std::string::npos) // ends it in C
        error(where, "expected a name without the character NUL, got: '" +
                         items[i].name + "'");
      else if (!seen.insert(items[i].name).second)
        error(where,
              "names must be unique, '" + items[i].name + "' is used before");
    }
  }

  const ShardingProblem &problem;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_MODEL_FIELDCHECKER_H
