//===- FrozenTables.h - Tables without gradients ----------------*- C++ -*-===//
//
// The gradients of frozen tables do not travel. All ranks must have the same
// ones, or they would expect messages of other sizes; so those of a step are
// the ones that a device has when it routes the step's ids, whose header tells
// the others.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_FROZENTABLES_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_FROZENTABLES_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"
#include "neuroshard/Artifact/Manifest.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::runtime {

class FrozenTables {
public:
  /// `frozen`: by table.
  FrozenTables(const Manifest &manifest, const DeviceGroups &groups,
               std::vector<bool> frozen);

  /// The layout of the gradients of an exchange.
  const ExchangeLayout &layout(int64_t exchange) const {
    return layouts[static_cast<size_t>(exchange)];
  }
  const std::vector<bool> &tables() const { return ofTable; }
  /// Not 0.
  int64_t hash() const;

private:
  std::vector<bool> ofTable;
  std::vector<ExchangeLayout> layouts;
};

/// Null: no table is frozen.
using FrozenTablesPtr = std::shared_ptr<const FrozenTables>;

/// 0 if none is.
inline int64_t hashOfFrozen(const FrozenTablesPtr &frozen) {
  return frozen ? frozen->hash() : 0;
}

/// Their names, for errors.
std::string namesOf(const FrozenTablesPtr &frozen, const Manifest &manifest);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_FROZENTABLES_H
