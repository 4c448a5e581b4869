//===- Export.h - Marks the functions the library exports ------*- C++ -*-===//
//
// The library is compiled with hidden visibility; only the C interface is
// exported.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_ABI_EXPORT_H
#define NEUROSHARD_LIB_RUNTIME_ABI_EXPORT_H

#define NSRT_EXPORT extern "C" __attribute__((visibility("default")))

#endif // NEUROSHARD_LIB_RUNTIME_ABI_EXPORT_H
