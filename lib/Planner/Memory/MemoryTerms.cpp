//===- MemoryTerms.cpp - Sums of bytes by kind, and bytes as text ---------===//

#include "neuroshard/Planner/MemoryTerms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

int64_t MemoryTerms::peakBytes() const {
  return weightsBytes + optimizerStateBytes + idsBytes +
         std::max(forwardBytes, backwardBytes) + communicatorBytes +
         denseReserveBytes + fragmentationReserveBytes;
}

MemoryTerms &MemoryTerms::operator+=(const MemoryTerms &other) {
  weightsBytes += other.weightsBytes;
  optimizerStateBytes += other.optimizerStateBytes;
  idsBytes += other.idsBytes;
  forwardBytes += other.forwardBytes;
  backwardBytes += other.backwardBytes;
  communicatorBytes += other.communicatorBytes;
  denseReserveBytes += other.denseReserveBytes;
  fragmentationReserveBytes += other.fragmentationReserveBytes;
  hostBytes += other.hostBytes;
  diskBytes += other.diskBytes;
  return *this;
}

MemoryTerms &MemoryTerms::operator-=(const MemoryTerms &other) {
  weightsBytes -= other.weightsBytes;
  optimizerStateBytes -= other.optimizerStateBytes;
  idsBytes -= other.idsBytes;
  forwardBytes -= other.forwardBytes;
  backwardBytes -= other.backwardBytes;
  communicatorBytes -= other.communicatorBytes;
  denseReserveBytes -= other.denseReserveBytes;
  fragmentationReserveBytes -= other.fragmentationReserveBytes;
  hostBytes -= other.hostBytes;
  diskBytes -= other.diskBytes;
  return *this;
}

/// "44655" as "44,655".
static std::string withThousands(int64_t value) {
  std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

std::string neuroshard::formatBytes(int64_t bytes) {
  static constexpr std::array<const char *, 4> kUnits = {"B", "KiB", "MiB",
                                                         "GiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && std::abs(value) >= 1024; ++unit)
    value /= 1024;
  if (value >= 1000)
    return withThousands(std::llround(value)) + " " + kUnits[unit];
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value,
                kUnits[unit]);
  return text;
}
