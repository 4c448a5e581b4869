//===- SortLibrary.h - Loads the library with the sort ---------*- C++ -*-===//
//
// nsg_sort, the sort of an update, is in a library of its own: only it needs
// nvcc to build.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H

#include "neuroshard/RuntimeCuda/CudaDriver.h"

namespace neuroshard::cuda {

/// Returns nsg_sort of the driver's library if it exports one (a stand-in),
/// else of libneuroshard_cuda_sort.so beside this library, else of the one that
/// the system finds. Throws a RuntimeError that says where it looked.
SortFunction findSort(const CudaDriver &driver);

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_SORTLIBRARY_H
