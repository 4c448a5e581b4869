//===- DamagedLayoutTest.cpp - Damaged layouts are refused ----------------===//
//
// Shows that a change anywhere in the layout of a manifest is refused, or is
// read as a layout that means the same; and what errors about sums say.
//
//===----------------------------------------------------------------------===//

#include "RandomManifest.h"

#include "neuroshard/Artifact/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace neuroshard;
using namespace neuroshard::test;
using nlohmann::json;
using testing::HasSubstr;

namespace {

/// Calls visit(pointer) for every value below `value`.
template <typename Visit>
void forEachPlace(const json &value, const json::json_pointer &pointer,
                  const Visit &visit) {
  visit(pointer);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      forEachPlace(value[i], pointer / i, visit);
  else if (value.is_object())
    for (const auto &[name, field] : value.items())
      forEachPlace(field, pointer / name, visit);
}

/// The values that a damaged manifest may have in place of one value.
std::vector<json> damagedValues(const json &value) {
  std::vector<json> damaged;
  if (value.is_boolean())
    damaged.push_back(!value.get<bool>());
  if (value.is_number_integer())
    for (int64_t step : {-1, 1})
      damaged.push_back(value.get<int64_t>() + step);
  if (!value.is_array())
    return damaged;
  for (size_t i = 0; i < value.size(); ++i) {
    json dropped = value, doubled = value, swapped = value;
    dropped.erase(i);
    auto at = static_cast<json::difference_type>(i);
    doubled.insert(doubled.begin() + at, value[i]);
    damaged.push_back(std::move(dropped));
    damaged.push_back(std::move(doubled));
    if (i + 1 == value.size() || value[i] == value[i + 1])
      continue;
    std::swap(swapped[i], swapped[i + 1]);
    damaged.push_back(std::move(swapped));
  }
  return damaged;
}

struct Counts {
  int refused = 0;
  int same = 0;
  int wrong = 0;
};

/// Damages every value of the layout of a manifest, one at a time.
Counts damageLayout(const Manifest &manifest) {
  Counts counts;
  json text = json::parse(writeManifest(manifest));
  std::vector<ExchangeLayout> expected = makeLayouts(manifest);
  auto read = [&](const json::json_pointer &pointer, const json &damaged) {
    try {
      Manifest opened = parseManifest(text.dump());
      bool isSame = opened.layouts == expected;
      ++(isSame ? counts.same : counts.wrong);
      EXPECT_TRUE(isSame) << pointer << " " << damaged;
    } catch (const RuntimeError &error) {
      ++counts.refused;
      EXPECT_THAT(error.what(), HasSubstr("expected")) << pointer;
    }
  };
  const json layout = text["layout"];
  forEachPlace(layout, json::json_pointer("/layout"),
               [&](const json::json_pointer &pointer) {
                 const json kept = text[pointer];
                 for (const json &damaged : damagedValues(kept)) {
                   text[pointer] = damaged;
                   read(pointer, damaged);
                 }
                 text[pointer] = kept;
               });
  return counts;
}

TEST(DamagedLayout, IsRefusedOrMeansTheSame) {
  std::mt19937 random(5);
  constexpr int kPlans = 8;
  Counts all;
  int plans = 0, direct = 0;
  while (plans < kPlans) {
    Manifest manifest = randomManifest(random);
    bool hasRelays = false;
    for (const ExchangeLayout &layout : makeLayouts(manifest))
      hasRelays |= !layout.relays.empty();
    // Small ones, which are soon damaged everywhere; half of them with relays.
    if (writeManifest(manifest).size() > 9000 ||
        (!hasRelays && direct == kPlans / 2))
      continue;
    ++plans;
    direct += !hasRelays;
    Counts counts = damageLayout(manifest);
    all.refused += counts.refused;
    all.same += counts.same;
    all.wrong += counts.wrong;
  }
  EXPECT_EQ(all.wrong, 0);
  EXPECT_GT(all.refused, 100 * all.same);
}

/// Two lookups of a table whose rows are on four devices in two groups.
Manifest relayedManifest() {
  Manifest manifest;
  manifest.numDevices = 4;
  manifest.groups = {{0, 1}, {2, 3}};
  manifest.tables = {{"t", 40, 8, ElementType::F32, std::nullopt}};
  ExchangeSpec exchange;
  exchange.input = "ids";
  exchange.features = {"a", "b"};
  exchange.lookups.resize(2);
  exchange.lookups[1].feature = 1;
  manifest.exchanges = {exchange};
  manifest.programs = {{"program.so"}};
  for (int32_t device = 0; device < 4; ++device) {
    manifest.shards.push_back({"s",
                               0,
                               {10 * device, 10 * (device + 1)},
                               {0, 8},
                               {device},
                               Tier::Hbm});
    manifest.bindings.push_back({0, {device}, {{0, 0, 0}, {0, 1, 0}}});
  }
  return manifest;
}

TEST(DamagedLayout, ErrorsNameThePlaceAndWhatIsExpected) {
  const json intact = json::parse(writeManifest(relayedManifest()));
  struct {
    const char *pointer;
    json value;
    const char *message;
  } cases[] = {
      {"/relays/0/sums/0/sources/0/1", 8,
       "relays[0].sums[0].sources[0]: expected columns [0, 8] of lookup 0, "
       "found [0,8]"},
      {"/relays/0/sums/0/sources/1/0", 0,
       "relays[0].sums[0].sources[1]: expected sources in the order of the "
       "result's parts, each once, found [0,0]"},
      {"/relays/0/sums/0/sources",
       {{0, 0}},
       "results[0].parts[1]: expected a part whose columns [0, 8] are in a sum "
       "of its group's relay, found [1,0]"},
      {"/relays/0/sums/1/column", 9,
       "relays[0].sums[1].column: expected 8: sums side by side, found 9"},
      {"/results/0/relayed/0/column", 4,
       "results[0].relayed[0]: expected the columns of one sum of relay 0 that "
       "nothing else takes"},
      {"/results/0/relayed/1/group", 0,
       "results[0].relayed[1]: expected columns by group, each once"},
      {"/results/0/relayed_segments/0/parts",
       {0},
       "relayed_segments: expected columns [0, 8] of part 1 in a segment"},
      {"/results/0/segments/0/parts",
       {{0, 0}, {1, 0}, {2, 0}},
       "segments: expected columns [0, 8] of part 3 in a segment"},
      {"/results/0/segments/0/parts/1",
       {0, 0},
       "segments[0].parts[1]: expected parts in the order of the result's "
       "parts, each once, found [0,0]"},
      {"/results/0/parts/1",
       {0, 0},
       "parts[1]: expected entries by device, rows and columns, each once"},
      {"/devices/1",
       {{"streams", {1, 5, 1}}, {"own_streams", 3}},
       "streams: expected bucket 1 once"},
  };
  for (const auto &test : cases) {
    json damaged = intact;
    json &value = damaged["layout"][0][json::json_pointer(test.pointer)];
    value.merge_patch(test.value);
    ASSERT_NE(damaged, intact) << test.pointer;
    try {
      parseManifest(damaged.dump());
      ADD_FAILURE() << test.pointer;
    } catch (const RuntimeError &error) {
      EXPECT_THAT(error.what(), HasSubstr(test.message)) << test.pointer;
    }
  }
}

} // namespace
