//===- DeviceClassesAttr.h - Device classes in the IR -----------*- C++ -*-===//

#ifndef NEUROSHARD_DIALECT_DEVICECLASSESATTR_H
#define NEUROSHARD_DIALECT_DEVICECLASSESATTR_H

#include "llvm/ADT/StringRef.h"

namespace neuroshard::ir {

/// Attribute of a 'neuroshard.topology': a list of dictionaries with name, like
/// and the numbers of device classes that a user defines.
inline constexpr llvm::StringLiteral kDeviceClassesAttrName =
    "neuroshard.device_classes";

} // namespace neuroshard::ir

#endif // NEUROSHARD_DIALECT_DEVICECLASSESATTR_H
