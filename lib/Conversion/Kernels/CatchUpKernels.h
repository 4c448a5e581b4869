//===- CatchUpKernels.h - Steps that rows have missed ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_CATCHUPKERNELS_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_CATCHUPKERNELS_H

#include "KernelBody.h"

namespace neuroshard {

/// The update of an optimizer that catches up: for each row the steps that it
/// has missed, with a gradient of 0, then the step itself.
void emitCatchUpUpdate(const UpdateBody &body);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_CATCHUPKERNELS_H
