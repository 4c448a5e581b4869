//===- SearchDefaults.h - Defaults of the search options --------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_SEARCHDEFAULTS_H
#define NEUROSHARD_PLANNER_SEARCHDEFAULTS_H

#include <cmath>
#include <cstdint>

namespace neuroshard {

/// Defaults of the numbers in SearchOptions.def.
namespace search_defaults {
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, ...)                              \
  inline constexpr TYPE ID = DEFAULT;
#define SEARCH_NUMBER(ID, KEY, DEFAULT, ...)                                   \
  inline constexpr double ID = DEFAULT;
#include "neuroshard/Planner/SearchOptions.def"
} // namespace search_defaults

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_SEARCHDEFAULTS_H
