//===- Signature.cpp - What a manifest says of functions ------------------===//

#include "Signature.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace neuroshard::run {

namespace {

using Json = nlohmann::json;

InputSpec readInput(const Json &json, const std::vector<TableSpec> &tables) {
  InputSpec input;
  input.idType = json.at("id_type");
  input.weighted = json.at("weighted");
  input.features = json.at("features").get<std::vector<std::string>>();
  input.rows.assign(input.features.size(), std::numeric_limits<int64_t>::max());
  for (const Json &lookup : json.at("lookups")) {
    int64_t &rows = input.rows.at(lookup.at("feature").get<size_t>());
    rows = std::min(rows, tables.at(lookup.at("table").get<size_t>()).rows);
  }
  return input;
}

ValueSpec readValue(const Json &json) {
  ValueSpec value;
  std::string kind = json.at("kind");
  if (kind == "device")
    value.kind = ValueSpec::Kind::Device;
  if (kind == "tensor") {
    value.kind = ValueSpec::Kind::Tensor;
    value.type = json.at("type");
    value.shape = json.at("shape").get<std::vector<int64_t>>();
  }
  if (kind == "jagged") {
    value.kind = ValueSpec::Kind::Jagged;
    value.exchange = json.value("exchange", int64_t(-1));
  }
  if (kind == "weights") {
    value.kind = ValueSpec::Kind::Weights;
    value.table = json.at("table");
  }
  return value;
}

FunctionSpec readFunction(const Json &json) {
  FunctionSpec function;
  for (const Json &value : json.at("args"))
    function.arguments.push_back(readValue(value));
  for (const Json &value : json.at("results"))
    function.results.push_back(readValue(value));
  return function;
}

std::map<std::string, FunctionSpec> readFunctions(const Json &json) {
  std::map<std::string, FunctionSpec> functions;
  for (const auto &[name, function] : json.items())
    functions[name] = readFunction(function);
  return functions;
}

Signature parse(const Json &json) {
  Signature signature;
  signature.devices = json.at("devices");
  for (const Json &table : json.at("tables"))
    signature.tables.push_back({table.at("name"), table.at("element_type"),
                                table.at("rows"), table.at("dim")});
  for (const Json &input : json.at("exchanges"))
    signature.inputs.push_back(readInput(input, signature.tables));
  signature.functions = readFunctions(json.at("functions"));
  if (auto reference = json.find("reference"); reference != json.end()) {
    signature.referenceLibrary = reference->at("library");
    signature.referenceFunctions = readFunctions(reference->at("functions"));
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
    return parse(Json::parse(file));
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
