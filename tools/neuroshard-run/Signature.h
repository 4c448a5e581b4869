//===- Signature.h - Inputs and functions of an artifact --------*- C++ -*-===//
//
// The parts of a manifest that a driver needs: tables, jagged inputs, and the
// arguments and results of the functions by name.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_RUN_SIGNATURE_H
#define NEUROSHARD_TOOLS_RUN_SIGNATURE_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Artifact/StepNames.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace neuroshard::run {

/// A jagged input: for each feature the rows that its ids may name.
struct InputSpec {
  std::string idType;
  bool weighted = false;
  std::vector<std::string> features;
  std::vector<int64_t> rows;
  int64_t lookups = 0;
};

struct Signature {
  int64_t devices = 0;
  /// In which results and gradients travel.
  WireType wireType;
  std::vector<TableSpec> tables;
  std::vector<InputSpec> inputs;
  std::map<std::string, FunctionSpec> functions;
  /// Whose copies drift (sync_every); empty: none.
  std::string driftingTable;
  /// The unsharded program; empty if the artifact has none.
  std::string referenceLibrary;
  std::map<std::string, FunctionSpec> referenceFunctions;
};

/// Reads manifest.json of an artifact and checks the unsharded program's hash.
/// Throws std::runtime_error.
Signature readSignature(const std::string &directory);

/// The function of that name. Throws std::runtime_error if there is none.
const FunctionSpec &
functionNamed(const std::map<std::string, FunctionSpec> &functions,
              const std::string &name);

/// The function of that name that is a whole step: tensors and ids in, tensors
/// out. Throws std::runtime_error if it is none, or a part of a step.
const FunctionSpec &
wholeStepNamed(const std::map<std::string, FunctionSpec> &functions,
               const std::string &name);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_SIGNATURE_H
