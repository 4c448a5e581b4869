//===- Reserves.h - Device memory held back ---------------------*- C++ -*-===//
/// \file Reserves of a device, and of a problem for all devices.

#ifndef NEUROSHARD_MODEL_RESERVES_H
#define NEUROSHARD_MODEL_RESERVES_H

#include "neuroshard/Model/Diagnostics.h"

#include <cstdint>
#include <optional>
#include <string>

namespace neuroshard {

/// Bytes of a device that tables must leave free. Of a problem's constraints
/// they hold for each device and go before those of the device, which go before
/// the defaults of its class.
struct Reserves {
  std::optional<int64_t> denseBytes;
  std::optional<int64_t> fragmentationBytes;
  std::optional<int64_t> communicatorBytes;
  bool operator==(const Reserves &) const = default;
};

/// What is wrong with them; `where` is their path.
Diagnostics check(const Reserves &reserves, const std::string &where);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_RESERVES_H
