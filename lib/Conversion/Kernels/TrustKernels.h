//===- TrustKernels.h - Updates with trust ratios --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_TRUSTKERNELS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_TRUSTKERNELS_H

#include "KernelBody.h"

namespace neuroshard {

/// The bodies of Update, Reduce and Apply for optimizers with trust ratios.
void emitTrustUpdate(const UpdateBody &body);
void emitTrustReduce(const UpdateBody &body);
void emitTrustApply(const UpdateBody &body);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_TRUSTKERNELS_H
