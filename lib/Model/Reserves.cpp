//===- Reserves.cpp - Checks device memory held back ----------------------===//

#include "neuroshard/Model/Reserves.h"

#include <utility>

using namespace neuroshard;

Diagnostics neuroshard::check(const Reserves &reserves,
                              const std::string &where) {
  constexpr int64_t kMost = int64_t{1} << 50;
  Diagnostics errors;
  for (auto [name, bytes] :
       {std::pair(".dense_bytes", reserves.denseBytes),
        std::pair(".fragmentation_bytes", reserves.fragmentationBytes),
        std::pair(".communicator_bytes", reserves.communicatorBytes)})
    if (bytes && (*bytes < 0 || *bytes > kMost))
      errors.push_back({where + name, "expected a whole number in [0, " +
                                          std::to_string(kMost) +
                                          "], got: " + std::to_string(*bytes)});
  return errors;
}
