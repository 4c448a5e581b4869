//===- DeviceClassTest.cpp - Device classes that users define -------------===//

#include "Support.h"
#include "neuroshard/Model/CloudNodes.h"
#include "neuroshard/Model/DeviceClassFields.h"
#include "neuroshard/Model/Topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

std::string errorOf(const DeviceClassDefinition &definition) {
  auto made = defineDeviceClass(definition);
  return made ? "no error" : text(made.error());
}

TEST(DeviceClassTest, StatedNumbersReplaceThoseOfTheClassItIsLike) {
  const DeviceClass &made = **defineDeviceClass(
      {"MYCARD", "h100", "", {{"memory_bytes", 5e9}, {"per_shard_us", 0}}});
  const DeviceClass &like = *findDeviceClass("H100");
  EXPECT_EQ(made.like, &like);
  EXPECT_EQ(made.memoryBytes, 5'000'000'000);
  EXPECT_EQ(made.perShardUs, 0);
  std::span<const DeviceClassField> fields = deviceClassFields();
  for (size_t i = 0; i < fields.size(); ++i) {
    bool isStated =
        fields[i].name == "memory_bytes" || fields[i].name == "per_shard_us";
    EXPECT_EQ(figureSource(made, i),
              isStated ? "stated by its definition" : "as H100");
    if (!isStated)
      EXPECT_EQ(fields[i].get(made), fields[i].get(like)) << fields[i].name;
  }
}

TEST(DeviceClassTest, EqualDefinitionsGiveOneObjectAndOthersDoNot) {
  DeviceClassDefinition one{"CARD", "H200", "", {{"memory_bytes", 4e9}}};
  DeviceClassDefinition other{"CARD", "H200", "", {{"memory_bytes", 3e9}}};
  EXPECT_EQ(*defineDeviceClass(one), *defineDeviceClass(one));
  EXPECT_NE(*defineDeviceClass(one), *defineDeviceClass(other));
  EXPECT_EQ(*defineDeviceClass(definitionOf(**defineDeviceClass(one))),
            *defineDeviceClass(one));
}

TEST(DeviceClassTest, EveryFieldIsReadInItsRangeAndNoOther) {
  for (const DeviceClassField &field : deviceClassFields()) {
    std::string name(field.name);
    DeviceClassDefinition below{"A", "H100", "", {{name, field.least - 1}}};
    EXPECT_THAT(errorOf(below), HasSubstr(name + ": expected")) << name;
    if (name.ends_with("_scale"))
      continue; // Both or none.
    double value = field.isWhole ? 7 : 0.5;
    DeviceClassDefinition inside{"A", "H100", "", {{name, value}}};
    auto made = defineDeviceClass(inside);
    ASSERT_TRUE(made.has_value()) << name;
    EXPECT_EQ(field.get(**made), value) << name;
  }
}

TEST(DeviceClassTest, BadDefinitionsGetOneErrorEach) {
  EXPECT_THAT(errorOf({"h100", "H100"}),
              HasSubstr("is the built-in class H100"));
  EXPECT_THAT(errorOf({"a b", "H100"}), HasSubstr("name: expected a name"));
  EXPECT_THAT(errorOf({"8xH200", "H100"}), HasSubstr("begins with no digit"));
  EXPECT_THAT(errorOf({"p5.48xlarge", "H100"}),
              HasSubstr("is aws:p5.48xlarge, a node of a cloud"));
  EXPECT_THAT(errorOf({"A", "H10O"}), HasSubstr("did you mean 'H100'?"));
  EXPECT_THAT(errorOf({"A", "H100", "gpus"}), HasSubstr("did you mean 'gpu'?"));
  EXPECT_THAT(errorOf({"A", "H100", "cpu"}), HasSubstr("H100, is a gpu"));
  EXPECT_THAT(errorOf({"A", "H100", "", {{"memory_byte", 1}}}),
              HasSubstr("did you mean 'memory_bytes'?"));
  EXPECT_THAT(
      errorOf({"A", "H100", "", {{"cache_bytes", 1}, {"cache_bytes", 2}}}),
      HasSubstr("cache_bytes: is there twice"));
  EXPECT_THAT(errorOf({"A", "H100", "", {{"cache_bytes", 0.5}}}),
              HasSubstr("expected a whole number"));
  EXPECT_THAT(errorOf({"A", "H100", "", {{"forward_scale", 2}}}),
              HasSubstr("backward_scale: is missing"));
  EXPECT_THAT(errorOf({"A", "", "", {{"memory_bytes", 1}}}),
              HasSubstr("missing: host_memory_bytes, "));
}

TEST(DeviceClassTest, TopologiesNameThem) {
  const DeviceClass *made = *defineDeviceClass(
      {"xCARDx1",
       "CPU",
       "",
       {{"memory_bytes", 4e9}, {"network_group_bandwidth_gb_per_s", 3}}});
  const DeviceClass *own[] = {made};
  Topology topology = *parseTopology("2x4xXcardx1", own);
  EXPECT_EQ(topology.devices[7].deviceClass, "xCARDx1");
  EXPECT_EQ(topology.devices[7].memoryBytes, 4'000'000'000);
  EXPECT_EQ(topology.levels[0].groupBandwidthGBps, 3);
  EXPECT_TRUE(isCpu(topology, topology.devices[0]));
  EXPECT_TRUE(check(topology).empty());
  EXPECT_FALSE(parseTopology("2x4xxCARDx1").has_value());
  topology.ownClasses.clear();
  EXPECT_THAT(text(check(topology)), HasSubstr("unknown device class"));
}

TEST(DeviceClassTest, NodesOfCloudsNeedNoCloud) {
  for (const CloudNode &node : cloudNodes()) {
    std::string name(node.name);
    std::string bare = name.substr(name.find(':') + 1);
    EXPECT_EQ(findCloudNode(bare), &node);
    EXPECT_EQ(*parseTopology("3x" + bare), *parseTopology("3x" + name));
    ASSERT_TRUE(findDeviceClass(node.deviceClass)) << name;
  }
}

} // namespace
