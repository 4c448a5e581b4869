//===- Signature.cpp - Inputs and functions of an artifact ----------------===//

#include "Signature.h"

#include "neuroshard/Artifact/ArtifactFile.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace neuroshard::run {

namespace {

InputSpec describe(const ExchangeSpec &exchange,
                   const std::vector<TableSpec> &tables) {
  InputSpec input;
  input.idType = toString(exchange.idType);
  input.weighted = exchange.weighted;
  input.features = exchange.features;
  input.rows.assign(input.features.size(), std::numeric_limits<int64_t>::max());
  input.lookups = static_cast<int64_t>(exchange.lookups.size());
  for (const ExchangeLookup &lookup : exchange.lookups) {
    int64_t &rows = input.rows.at(static_cast<size_t>(lookup.feature));
    rows = std::min(rows, tables.at(static_cast<size_t>(lookup.table)).rows);
  }
  return input;
}

std::map<std::string, FunctionSpec>
byName(const std::vector<FunctionSpec> &functions) {
  std::map<std::string, FunctionSpec> result;
  for (const FunctionSpec &function : functions)
    result[function.name] = function;
  return result;
}

Signature describe(const Manifest &manifest) {
  Signature signature;
  signature.devices = manifest.numDevices;
  signature.wireType = manifest.wireType;
  signature.tables = manifest.tables;
  for (const ExchangeSpec &exchange : manifest.exchanges)
    signature.inputs.push_back(describe(exchange, manifest.tables));
  for (const ShardSpec &shard : manifest.shards)
    if (shard.copiesDrift())
      signature.driftingTable = manifest.tableOf(shard).name;
  signature.functions = byName(manifest.functions);
  if (manifest.reference) {
    signature.referenceLibrary = manifest.reference->library;
    signature.referenceFunctions = byName(manifest.reference->functions);
  }
  return signature;
}

} // namespace

Signature readSignature(const std::string &directory) {
  Manifest manifest = openManifest(directory);
  if (manifest.reference) // for its hash: a damaged library may crash
    readListed(directory, manifest, manifest.reference->library);
  return describe(manifest);
}

using Functions = std::map<std::string, FunctionSpec>;

static std::string namesOf(const Functions &functions) {
  std::string names;
  for (const auto &[name, function] : functions)
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

static std::runtime_error noFunction(const Functions &functions,
                                     const std::string &name) {
  return std::runtime_error("the artifact has no function '" + name +
                            "'; it has " + namesOf(functions));
}

const FunctionSpec &functionNamed(const Functions &functions,
                                  const std::string &name) {
  auto found = functions.find(name);
  if (found == functions.end())
    throw noFunction(functions, name);
  return found->second;
}

/// Whether values that only other functions of a step make or take are among
/// the arguments or results.
static bool isPartOfStep(const FunctionSpec &function) {
  auto isHandle = [](const ValueSpec &value) {
    return value.kind == ValueKind::Handle;
  };
  return std::ranges::any_of(function.arguments, isHandle) ||
         std::ranges::any_of(function.results, isHandle);
}

const FunctionSpec &wholeStepNamed(const Functions &functions,
                                   const std::string &name) {
  Functions steps = functions;
  std::erase_if(steps,
                [](const auto &entry) { return isPartOfStep(entry.second); });
  auto found = functions.find(name);
  if (found == functions.end())
    throw noFunction(steps, name);
  if (isPartOfStep(found->second))
    throw std::runtime_error("'" + name +
                             "' is a part of a step; expected a "
                             "whole one, of which there are: " +
                             namesOf(steps));
  const std::vector<ValueSpec> &arguments = found->second.arguments;
  if (arguments.empty() || arguments.front().kind != ValueKind::Device)
    throw std::runtime_error("'" + name +
                             "' takes no device, so it runs on none; expected "
                             "a function with lookups");
  return found->second;
}

} // namespace neuroshard::run
