//===- TableFingerprint.cpp - Ties a plan to its tables -------------------===//

#include "neuroshard/Model/TableFingerprint.h"

#include <cstdint>
#include <cstdio>
#include <string_view>

using namespace neuroshard;

std::string neuroshard::tableFingerprint(const std::vector<Table> &tables) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&hash](std::string_view text) {
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xff) * 0x100000001b3u;
  };
  for (const Table &table : tables) {
    mix(table.name);
    mix(std::to_string(table.rows));
    mix(std::to_string(table.dim));
    mix(toString(table.elementType));
    mix(toString(table.optimizer.kind));
  }
  char text[32];
  std::snprintf(text, sizeof text, "fnv1a64:%016llx",
                static_cast<unsigned long long>(hash));
  return text;
}
