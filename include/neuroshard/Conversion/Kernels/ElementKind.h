//===- ElementKind.h - Types of a table's elements -------------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H
#define NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H

#include <cstdint>

namespace neuroshard {

enum class ElementKind { F32, F16, BF16 };

/// Bytes of one element.
int64_t getElementBytes(ElementKind element);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_ELEMENTKIND_H
