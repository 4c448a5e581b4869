//===- FunctionsTest.cpp - Functions of manifests that do not fit ---------===//
//
// Shows that the functions of a manifest are held to its exchanges and tables,
// to each other, and to those of the reference.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Artifact/StepNames.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace neuroshard;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

ValueSpec value(ValueKind kind, std::string type = "",
                std::vector<int64_t> shape = {}) {
  ValueSpec made;
  made.kind = kind;
  made.type = std::move(type);
  made.shape = std::move(shape);
  return made;
}

/// A table on one device, looked up twice, with a dense input, training and a
/// reference.
json makeManifest() {
  Manifest manifest;
  manifest.numDevices = 1;
  manifest.tables = {{"t", 10, 8, ElementType::F32, Optimizer()}};
  manifest.tables[0].optimizer->kind = OptimizerKind::Adagrad;
  ExchangeSpec exchange;
  exchange.input = "ids";
  exchange.features = {"a", "b"};
  exchange.lookups.resize(2);
  exchange.lookups[1].feature = 1;
  manifest.exchanges = {exchange};
  manifest.shards = {{"t0", 0, {0, 10}, {0, 8}, {0}}};
  manifest.programs = {{"program0.so"}};
  manifest.bindings = {{0, {0}, {{0, 0, 0}, {0, 1, 0}}}};

  ValueSpec device, handle = value(ValueKind::Handle);
  ValueSpec jagged = value(ValueKind::Jagged, "i64");
  jagged.features = exchange.features;
  ValueSpec unrouted = jagged;
  jagged.exchange = 0;
  ValueSpec rows = value(ValueKind::Tensor, "f32", {-1, 8});
  ValueSpec joined = rows;
  joined.shape[1] *= 2;
  ValueSpec dense = value(ValueKind::Tensor, "f32", {-1, 4});
  ValueSpec flat = value(ValueKind::Tensor, "i64", {-1});
  ValueSpec rate = value(ValueKind::Scalar, "f32");
  ValueSpec step = value(ValueKind::Scalar, "i64");
  ValueSpec weights = value(ValueKind::Weights, "f32", {10, 8});
  ValueSpec state = value(ValueKind::State, "f32", {10, 8});
  manifest.functions = {
      {"forward", {device, jagged, dense}, {rows, rows, dense}},
      {kStartName, {device, jagged}, {handle, flat}},
      {kLookupName, {device, handle, flat}, {handle, flat, handle}},
      {kWaitName, {device, handle, flat, handle}, {rows, rows, handle, flat}},
      {kJoinedWaitName, {device, handle, flat, handle}, {joined, handle, flat}},
      {kGradientsName, {device, handle, flat, rows, rows}, {handle, handle}},
      {kUpdateName, {device, handle, handle, rate, step}, {}}};
  manifest.reference = {
      "reference.so",
      {{"forward", {unrouted, dense, weights}, {rows, rows, dense}},
       {kUpdateName,
        {flat, flat, rows, rows, rate, step, weights, state},
        {}}}};
  return json::parse(writeManifest(manifest));
}

std::string errorOf(const json &manifest) {
  try {
    parseManifest(manifest.dump());
    return "";
  } catch (const RuntimeError &error) {
    return error.what();
  }
}

TEST(Functions, ThoseThatFitAreAccepted) {
  EXPECT_EQ(errorOf(makeManifest()), "");
}

TEST(Functions, AnyMissingOrAddedValueIsRefused) {
  json manifest = makeManifest();
  for (const char *where : {"/functions", "/reference/functions"}) {
    json::json_pointer functions(where);
    for (const auto &[name, function] : manifest[functions].items())
      for (const char *list : {"args", "results"}) {
        json::json_pointer place = functions / name / list;
        for (size_t i = 0; i < manifest[place].size(); ++i) {
          json fewer = manifest, more = manifest;
          fewer[place].erase(i);
          EXPECT_NE(errorOf(fewer), "") << place << " without " << i;
          more[place].insert(more[place].begin() + static_cast<int>(i),
                             more[place][i]);
          EXPECT_NE(errorOf(more), "") << place << " twice " << i;
        }
      }
  }
}

TEST(Functions, AnyOtherTypeOrShapeIsRefused) {
  json manifest = makeManifest();
  json flat = manifest.flatten();
  for (const auto &[path, leaf] : flat.items()) {
    if (!path.starts_with("/functions") &&
        !path.starts_with("/reference/functions"))
      continue;
    if (path.ends_with("/touches_tensors"))
      continue; // about code, of which a manifest tells nothing else
    json changed = manifest;
    json &place = changed[json::json_pointer(path)];
    if (leaf.is_boolean())
      place = !leaf.get<bool>();
    else if (leaf.is_number())
      place = leaf.get<int64_t>() + 1;
    else
      place = leaf == "f32" ? "bf16" : leaf == "i64" ? "i32" : "other";
    EXPECT_NE(errorOf(changed), "") << path;
  }
}

/// The gradient of a sample weight is a product with the row.
TEST(Functions, UpdatesOfSampleWeightsTakeFrozenTables) {
  Manifest manifest = parseManifest(makeManifest().dump());
  manifest.tables[0].optimizer.reset();
  manifest.exchanges[0].weighted = true;
  manifest.exchanges[0].lookups[1].weighted = true;
  ValueSpec weights = value(ValueKind::Tensor, "f32", {-1});
  for (auto *functions : {&manifest.functions, &manifest.reference->functions})
    for (FunctionSpec &function : *functions) {
      for (ValueSpec &argument : function.arguments)
        argument.weighted = argument.kind == ValueKind::Jagged;
      bool isReference = functions != &manifest.functions;
      if (function.name == (isReference ? kUpdateName : kGradientsName))
        function.results.insert(function.results.begin(), weights);
    }
  FunctionSpec &update = manifest.reference->functions.front();
  ASSERT_EQ(update.name, kUpdateName);
  update.arguments.insert(update.arguments.begin() + 2, weights);
  update.arguments.pop_back(); // the state
  json fits = json::parse(writeManifest(manifest));
  EXPECT_EQ(errorOf(fits), "");
  update.arguments.pop_back();
  EXPECT_THAT(errorOf(json::parse(writeManifest(manifest))),
              HasSubstr("weights of frozen ones with sample weights"));
  fits["exchanges"][0]["lookups"][1]["weighted"] = false;
  EXPECT_THAT(errorOf(fits), HasSubstr("gradients of the sample weights"));
  fits["functions"][kGradientsName]["results"].erase(0);
  EXPECT_THAT(errorOf(fits),
              HasSubstr("weights of frozen ones with sample weights"));
}

/// A function that packs its tensors has no argument of an exchange.
TEST(Functions, ReferencesOfPackedTensorsTakeTables) {
  Manifest manifest = parseManifest(makeManifest().dump());
  ValueSpec flat = value(ValueKind::Tensor, "i64", {-1});
  for (auto *functions : {&manifest.functions, &manifest.reference->functions})
    for (FunctionSpec &function : *functions)
      if (function.name == "forward")
        std::replace_if(
            function.arguments.begin(), function.arguments.end(),
            [](const ValueSpec &one) { return one.kind == ValueKind::Jagged; },
            flat);
  json fits = json::parse(writeManifest(manifest));
  EXPECT_EQ(errorOf(fits), "");
  json &arguments = fits["reference"]["functions"]["forward"]["args"];
  arguments.push_back(arguments.back());
  EXPECT_THAT(errorOf(fits), HasSubstr("weights of each table"));
}

TEST(Functions, ErrorsNameThePlace) {
  json manifest = makeManifest();
  json &functions = manifest["functions"];
  json whole = functions;
  functions["forward"]["args"][1]["features"] = {"b", "a"};
  EXPECT_EQ(errorOf(manifest),
            "manifest: $.functions.forward.args[1]: expected the id_type, "
            "weighted and features of its exchange");
  functions = whole;
  functions[kWaitName]["results"].erase(0);
  EXPECT_THAT(
      errorOf(manifest),
      StartsWith("manifest: $.functions.embeddings_wait.results: "
                 "expected a tensor of rows for each of the 2 lookups"));
  functions = whole;
  functions[kLookupName]["results"].erase(2);
  EXPECT_THAT(errorOf(manifest),
              StartsWith("manifest: $.functions.embeddings_lookup.results: "
                         "expected the results of embeddings_start, then a "
                         "handle for each exchange"));
  functions = whole;
  functions["forward"]["results"][2]["shape"] = {-1, 4, 1};
  EXPECT_THAT(errorOf(manifest),
              HasSubstr("$.reference.functions.forward.results: expected those "
                        "of $.functions.forward"));
}

} // namespace
