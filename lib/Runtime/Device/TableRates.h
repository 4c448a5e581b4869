//===- TableRates.h - Learning rates by table -------------------*- C++ -*-===//
//
// Updates have one learning rate for all tables unless there are rates of their
// own. A table with a negative rate is frozen: its updates are left out.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_TABLERATES_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_TABLERATES_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neuroshard::runtime {

class TableRates {
public:
  TableRates() = default;
  /// By table; empty: there are none.
  explicit TableRates(std::vector<float> ofTable)
      : ofTable(std::move(ofTable)) {}

  /// Of a table that is not frozen; `common`: that of the update.
  float of(int32_t table, float common) const {
    return ofTable.empty() ? common : ofTable[static_cast<size_t>(table)];
  }
  bool isFrozen(int32_t table) const { return of(table, 0) < 0; }
  std::span<const float> all() const { return ofTable; }

private:
  std::vector<float> ofTable;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_TABLERATES_H
