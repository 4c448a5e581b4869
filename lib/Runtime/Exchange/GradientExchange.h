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

namespace neuroshard::runtime {

// As nsrt_gradients_begin, nsrt_gradient_set and nsrt_gradients_start ask.
void beginGradients(Device &device, Routed &routed, Partials &gradients);
void setGradient(Device &device, Routed &routed, Partials &gradients,
                 int64_t lookup, ElementType type, const std::byte *gradient);
void startGradients(Device &device, Routed &routed, Partials &gradients);
/// Waits for the gradients of an exchange. Sets gradients.gradients and, for
/// replicated tables, gathered and gatheredGradients.
void receiveGradients(Device &device, Routed &routed, Partials &gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_GRADIENTEXCHANGE_H
