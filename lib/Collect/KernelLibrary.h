//===- KernelLibrary.h - Kernels compiled for this machine ------*- C++ -*-===//
///
/// \file
/// The project's own kernels for a list of slots and lookups, generated and
/// compiled as neuroshard-compile does it, and loaded into this process. Free
/// of MLIR and planner headers, which name some things alike.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COLLECT_KERNELLIBRARY_H
#define NEUROSHARD_LIB_COLLECT_KERNELLIBRARY_H

#include "neuroshard/Runtime/KernelABI.h"

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::collect {

/// Types and optimizers by the names of Model: "f32", "rowwise_adagrad", ...
struct SlotKey {
  int64_t dim = 0;
  std::string element;
  std::string optimizer;
  bool weighted = false;
  /// Exact row-wise optimizer over column shards.
  bool twoPhase = false;

  auto operator<=>(const SlotKey &) const = default;
};

struct LookupKey {
  int64_t dim = 0;
  std::string element;
  int idBytes = 8;
  bool pooled = true;
  bool weighted = false;

  auto operator<=>(const LookupKey &) const = default;
};

class KernelLibrary {
public:
  /// Compiles the kernels that are missing. `targetCpu` as in NativeOptions.
  /// Returns an error text, empty on success.
  std::string add(const std::vector<SlotKey> &slots,
                  const std::vector<LookupKey> &lookups,
                  const std::string &targetCpu,
                  const std::function<void(size_t done, size_t all)> &progress);

  /// The kernels of a key that add() has compiled; lookups have slot 0.
  const nsrt_slot_entry &slot(const SlotKey &key) const {
    return slots.at(key);
  }
  const nsrt_lookup_entry &lookup(const LookupKey &key) const {
    return lookups.at(key);
  }

private:
  std::string compile(const std::vector<SlotKey> &someSlots,
                      const std::vector<LookupKey> &someLookups,
                      const std::string &targetCpu);

  /// Loaded libraries, kept open while the entries point into them.
  std::vector<std::shared_ptr<void>> handles;
  std::map<SlotKey, nsrt_slot_entry> slots;
  std::map<LookupKey, nsrt_lookup_entry> lookups;
};

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_KERNELLIBRARY_H
