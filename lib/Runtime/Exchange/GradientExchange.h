//===- GradientExchange.h - Gradients to owners -----------------*- C++ -*-===//
//
// The gradients of the local batch: packed, sent to the devices that own the
// rows, and made readable there for the kernels. The functions throw; the
// Routed and Partials passed to them must not be failed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_GRADIENTEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_GRADIENTEXCHANGE_H

#include "Device/Device.h"

#include <span>

namespace neuroshard::runtime {

/// The gradient of one result, in memory of the device.
struct ResultGradient {
  ElementType type;
  const std::byte *first;
  int64_t stride; ///< elements from row to row.
  bool lasts;     ///< until the update.
};

// As nsrt_gradients_pack and nsrt_gradients_start ask.
void packGradients(Device &device, Routed &routed,
                   std::span<const ResultGradient> given, Partials &gradients);
void startGradients(Device &device, Routed &routed, Partials &gradients);
/// Waits for the gradients of an exchange, but for sums of rows. Sets
/// gradients.gradients and, for replicated tables, gathered and
/// gatheredGradients.
void receiveGradients(Device &device, Routed &routed, Partials &gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_GRADIENTEXCHANGE_H
