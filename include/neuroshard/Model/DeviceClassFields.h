//===- DeviceClassFields.h - Device classes that users define ---*- C++ -*-===//
///
/// \file
/// The fields of a device class by name, with their ranges: the one table from
/// which files, IR and Python read and write classes.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_MODEL_DEVICECLASSFIELDS_H
#define NEUROSHARD_MODEL_DEVICECLASSFIELDS_H

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/Diagnostics.h"

#include <utility>
#include <vector>

namespace neuroshard {

struct DeviceClassField {
  /// As in files and in Python, with its unit.
  std::string_view name;
  std::string_view meaning;
  double least, most;
  bool isWhole;
  /// Of a class that is like no other.
  bool isRequired;
  double (*get)(const DeviceClass &);
  void (*set)(DeviceClass &, double);
};

/// All numbers of a class.
std::span<const DeviceClassField> deviceClassFields();

/// "stated", "as H200", "measured on such a device", ...: where field `index`
/// of a class comes from.
std::string figureSource(const DeviceClass &deviceClass, size_t index);

/// What a user says of a class.
struct DeviceClassDefinition {
  std::string name;
  /// A built-in class, whose figures it has where `numbers` says nothing.
  /// Empty: like none; what may be left out is then assumed.
  std::string like = {};
  /// "cpu" or "gpu"; empty: as the class it is like, else "gpu".
  std::string kind = {};
  /// Fields by name.
  std::vector<std::pair<std::string, double>> numbers = {};
};

/// The class that is defined, which is never destroyed; equal definitions give
/// the same object. Errors: a name that is empty, that a built-in class has or
/// that topologies cannot write; an unknown class, kind or field; a number out
/// of its range; fields that are missing.
Expected<const DeviceClass *>
defineDeviceClass(const DeviceClassDefinition &definition);

/// What defineDeviceClass() makes the class of.
DeviceClassDefinition definitionOf(const DeviceClass &deviceClass);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_DEVICECLASSFIELDS_H
