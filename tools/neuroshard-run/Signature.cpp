//===- Signature.cpp - Inputs and functions of an artifact ----------------===//

#include "Signature.h"

#include <algorithm>
#include <fstream>
#include <iterator>
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
  signature.functions = byName(manifest.functions);
  if (manifest.reference) {
    signature.referenceLibrary = manifest.reference->library;
    signature.referenceFunctions = byName(manifest.reference->functions);
  }
  return signature;
}

} // namespace

Signature readSignature(const std::string &directory) {
  std::string path = directory + "/manifest.json";
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read '" + path +
                             "'; expected a folder that neuroshard-compile "
                             "has written");
  try {
    return describe(
        parseManifest(std::string(std::istreambuf_iterator<char>(file), {})));
  } catch (const std::exception &error) {
    throw std::runtime_error("'" + path + "': " + error.what());
  }
}

const FunctionSpec &
functionNamed(const std::map<std::string, FunctionSpec> &functions,
              const std::string &name) {
  auto found = functions.find(name);
  if (found != functions.end())
    return found->second;
  std::string names;
  for (const auto &[known, function] : functions)
    names += (names.empty() ? "" : ", ") + known;
  throw std::runtime_error("the artifact has no function '" + name +
                           "'; it has " + names);
}

} // namespace neuroshard::run
