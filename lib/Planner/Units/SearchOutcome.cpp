//===- SearchOutcome.cpp - Result of a search algorithm -------------------===//

#include "SearchOutcome.h"

#include <cstdio>

using namespace neuroshard;

std::string neuroshard::formatMs(double ms) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f ms", ms);
  return text;
}
