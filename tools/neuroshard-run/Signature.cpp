//===- Signature.cpp - Functions and tables of a manifest -----------------===//

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
  input.lookups = static_cast<int64_t>(json.at("lookups").size());
  for (const Json &lookup : json.at("lookups")) {
    int64_t &rows = input.rows.at(lookup.at("feature").get<size_t>());
    rows = std::min(rows, tables.at(lookup.at("table").get<size_t>()).rows);
  }
  return input;
}

ValueSpec::Kind kindNamed(const std::string &name) {
  using Kind = ValueSpec::Kind;
  static const std::map<std::string, Kind> kinds = {
      {"device", Kind::Device}, {"tensor", Kind::Tensor},
      {"jagged", Kind::Jagged}, {"scalar", Kind::Scalar},
      {"handle", Kind::Handle}, {"weights", Kind::Weights},
      {"state", Kind::State}};
  auto found = kinds.find(name);
  if (found == kinds.end())
    throw std::runtime_error("unknown kind of value '" + name + "'");
  return found->second;
}

ValueSpec readValue(const Json &json) {
  ValueSpec value;
  value.kind = kindNamed(json.at("kind"));
  value.type = json.value("type", "");
  value.shape = json.value("shape", std::vector<int64_t>());
  value.exchange = json.value("exchange", int64_t(-1));
  value.table = json.value("table", int64_t(0));
  value.state = json.value("state", int64_t(0));
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
