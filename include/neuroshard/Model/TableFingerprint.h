//===- TableFingerprint.h - Ties a plan to its tables -----------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TABLEFINGERPRINT_H
#define NEUROSHARD_MODEL_TABLEFINGERPRINT_H

#include "neuroshard/Model/Table.h"

#include <string>
#include <vector>

namespace neuroshard {

/// A hash of each table's name, rows, dim, element type and optimizer kind,
/// which tells a plan made for other tables: "fnv1a64:" and 16 hex digits.
std::string tableFingerprint(const std::vector<Table> &tables);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TABLEFINGERPRINT_H
