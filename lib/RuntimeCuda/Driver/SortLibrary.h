//===- SortLibrary.h - Finds the sort of an update -------------*- C++ -*-===//
//
// nsg_sort is in a library of its own, since it alone needs nvcc.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

namespace neuroshard::cuda {

/// nsg_sort of the driver's library if it has one (a stand-in), else of
/// libneuroshard_cuda_sort.so beside this library, else wherever the system
/// finds that. Throws a RuntimeError that says where it was looked for.
SortFunction findSort(const CudaDriver &driver);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H
