//===- Outcome.cpp - What an algorithm returns ----------------------------===//

#include "Outcome.h"

#include <cstdio>

using namespace neuroshard;

std::string neuroshard::formatMs(double ms) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f ms", ms);
  return text;
}
