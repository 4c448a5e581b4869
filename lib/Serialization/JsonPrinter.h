//===- JsonPrinter.h - JSON as readable text --------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_JSONPRINTER_H
#define NEUROSHARD_LIB_SERIALIZATION_JSONPRINTER_H

#include <nlohmann/json.hpp>
#include <string>

namespace neuroshard::json {

/// The document as text: readable, one line per shard, table or device.
std::string print(const nlohmann::ordered_json &root);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_JSONPRINTER_H
