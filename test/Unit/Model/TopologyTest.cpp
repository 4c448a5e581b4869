//===- TopologyTest.cpp - Short topology texts mean what they say ---------===//

#include "Support.h"
#include "neuroshard/Model/CloudNodes.h"
#include "neuroshard/Model/DeviceClass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string errorOf(const char *topology) {
  Expected<Topology> parsed = parseTopology(topology);
  return parsed ? "no error" : text(parsed.error());
}

TEST(TopologyTest, OneNode) {
  Topology topology = *parseTopology("8xH200");
  ASSERT_EQ(topology.levels.size(), 1u);
  EXPECT_THAT(topology.levels[0].groupSizes, ElementsAre(8));
  EXPECT_EQ(topology.deviceCount(), 8);
  EXPECT_EQ(topology.hosts.size(), 1u);
  EXPECT_EQ(topology.devices[7].memoryBytes,
            findDeviceClass("H200")->memoryBytes);
  EXPECT_TRUE(check(topology).empty());
}

TEST(TopologyTest, TwoNodesHaveTwoLevelsAndHosts) {
  Topology topology = *parseTopology("2x8xA100-40GB");
  ASSERT_EQ(topology.levels.size(), 2u);
  EXPECT_THAT(topology.levels[0].groupSizes, ElementsAre(16));
  EXPECT_THAT(topology.levels[1].groupSizes, ElementsAre(8, 8));
  EXPECT_LT(topology.levels[0].bandwidthGBps, topology.levels[1].bandwidthGBps);
  EXPECT_EQ(topology.devices[7].host, 0);
  EXPECT_EQ(topology.devices[8].host, 1);
  EXPECT_EQ(topology.devices[0].memoryBytes, 40 * kGiB);
  EXPECT_TRUE(check(topology).empty());
}

TEST(TopologyTest, UnequalNodes) {
  EXPECT_THAT(parseTopology("8+4xA100-40GB")->levels[1].groupSizes,
              ElementsAre(8, 4));
  EXPECT_THAT(parseTopology("2x8+4xA100-40GB")->levels[1].groupSizes,
              ElementsAre(8, 4, 8, 4));
}

TEST(TopologyTest, LargeCountsAreCutIntoNodes) {
  EXPECT_EQ(*parseTopology("256xH200"), *parseTopology("32x8xH200"));
  EXPECT_THAT(parseTopology("12xH200")->levels[1].groupSizes,
              ElementsAre(8, 4));
}

TEST(TopologyTest, MemoryOverride) {
  EXPECT_EQ(parseTopology("128xH200@192GiB")->devices[127].memoryBytes,
            192 * kGiB);
  // Units as messages print them.
  EXPECT_EQ(parseTopology("2xCPU@1024KiB")->devices[0].memoryBytes,
            1024 * 1024);
  EXPECT_EQ(parseTopology("2xCPU@3000kB")->devices[0].memoryBytes, 3'000'000);
  EXPECT_EQ(parseTopology("4xCPU@512MiB")->devices[0].memoryBytes, 512 * kMiB);
  EXPECT_EQ(parseTopology("1xCPU@12345B")->devices[0].memoryBytes, 12345);
}

TEST(TopologyTest, RateOfANode) {
  Topology topology = *parseTopology("2x2xCPU@1GiB@200mbit");
  EXPECT_EQ(topology.devices[0].memoryBytes, kGiB);
  EXPECT_DOUBLE_EQ(topology.levels[0].groupBandwidthGBps, 0.025);
  EXPECT_EQ(topology.levels[1].groupBandwidthGBps, 0);
  EXPECT_EQ(*parseTopology("2x2xCPU@25 MB/s@1GiB"), topology);
  EXPECT_EQ(parseTopology("2x2xCPU@25gbit")->levels[0],
            parseTopology("2x2xCPU@3.125GB/s")->levels[0]);
  EXPECT_THAT(errorOf("4xCPU@25gbit"),
              HasSubstr("one node has no link to others"));
  topology.levels[0].groupBandwidthGBps = -1;
  EXPECT_THAT(text(check(topology)),
              HasSubstr("topology.levels[0].group_bandwidth_gb_per_s: expected "
                        "0, for links that nobody shares, or a number"));
  topology.levels[0].groupBandwidthGBps = 0;
  topology.levels[1].groupBandwidthGBps = 1;
  EXPECT_THAT(text(check(topology)),
              HasSubstr("topology.levels[1].group_bandwidth_gb_per_s: expected "
                        "0 on the innermost level"));
}

TEST(TopologyTest, SettingsAreGivenOnceAndInRange) {
  EXPECT_THAT(errorOf("2x2xCPU@1GiB@2GiB"), HasSubstr("a second size '2GiB'"));
  EXPECT_THAT(errorOf("2x2xCPU@1gbit@1GiB@2gbit"),
              HasSubstr("a second rate '2gbit'"));
  EXPECT_THAT(errorOf("2x2xCPU@1e31GB/s"),
              HasSubstr("expected a rate in [1e-9, 1e30] gigabytes per second, "
                        "got: '1e31GB/s'"));
}

TEST(TopologyTest, UnknownClassListsTheKnownOnes) {
  EXPECT_THAT(errorOf("8xP100"),
              HasSubstr("unknown device class 'P100' in '8xP100'; did you mean "
                        "'H100'? Known: H200, H100, H100-PCIe, A100-80GB, "
                        "A100-40GB, B200, B300, "
                        "GB200, MI300X, MI355X, L40S, A10G, L4, CPU; expected "
                        "e.g. 8xH200, 2x8xA100-40GB or 4xaws:p5.48xlarge"));
  EXPECT_THAT(errorOf("8xa100-40g"), HasSubstr("did you mean 'A100-40GB'?"));
  EXPECT_THAT(errorOf("8xabacus"), HasSubstr("'8xabacus'; known: H200"));
}

TEST(TopologyTest, WrongCountsAreNotTakenForNames) {
  for (auto [text, count] : {std::pair("-1xCPU", "-1"),
                             {"2.5xH200", "2.5"},
                             {"2x-8xA100-40GB", "-8"},
                             {"nxcpu", "n"},
                             {"-2xaws:p5.48xlarge", "-2"}})
    EXPECT_THAT(errorOf(text),
                HasSubstr("in '" + std::string(text) +
                          "': expected a count that is a whole number from 1 "
                          "to 65536, got: '" +
                          count + "'"));
  for (const char *text : {"2x", "", "2x8x", " @4GiB"})
    EXPECT_THAT(errorOf(text),
                HasSubstr("expected [NODES x] DEVICES x CLASS [@ MEMORY] [@ "
                          "RATE], e.g. 2x8xA100-40GB, got: '" +
                          std::string(text) +
                          "', which names no class of devices"));
}

TEST(TopologyTest, ClassesMayBeInLowerCase) {
  EXPECT_EQ(*parseTopology("2x8xa100-40gb"), *parseTopology("2x8xA100-40GB"));
  EXPECT_EQ(parseTopology("4xcpu")->devices[0].deviceClass, "CPU");
}

TEST(TopologyTest, NodesOfClouds) {
  Topology nodes = *parseTopology("2xaws:p4d.24xlarge@38GiB");
  ASSERT_EQ(nodes.deviceCount(), 16);
  EXPECT_EQ(nodes.hosts.size(), 2u);
  EXPECT_EQ(nodes.devices[15].deviceClass, "A100-40GB");
  EXPECT_EQ(nodes.devices[15].memoryBytes, int64_t{38} << 30);
  // 4 cards of 100 Gbit/s for 8 devices.
  EXPECT_DOUBLE_EQ(nodes.levels[0].bandwidthGBps, 0.9 * 6.25);
  EXPECT_DOUBLE_EQ(nodes.levels[0].latencyUs, 100);
  EXPECT_EQ(nodes.levels[1], (*parseTopology("2x8xA100-40GB")).levels[1]);
  EXPECT_EQ((*parseTopology("gcp:a3-megagpu-8g")).deviceCount(), 8);
  EXPECT_EQ((*parseTopology("3xaws:p6-b200.48xlarge")).deviceCount(), 24);
  for (const CloudNode &node : cloudNodes()) {
    Topology topology = *parseTopology("2x" + std::string(node.name));
    EXPECT_TRUE(check(topology).empty()) << node.name;
  }
}

TEST(TopologyTest, WrongNodesOfCloudsAreRefused) {
  EXPECT_THAT(errorOf("2xaws:p9.48xlarge"),
              HasSubstr("unknown node 'aws:p9.48xlarge' in "
                        "'2xaws:p9.48xlarge'; did you mean 'aws:p5.48xlarge'? "
                        "Known: aws:p4d.24xlarge, "));
  for (const char *bad : {"0xaws:p5.48xlarge", "2x8xaws:p5.48xlarge", ":",
                          "99999999xaws:p5.48xlarge", "xaws:p5.48xlarge"})
    EXPECT_FALSE(parseTopology(bad).has_value()) << bad;
}

TEST(TopologyTest, DefaultsOfAllClassesAreSound) {
  for (const DeviceClass &known : deviceClasses()) {
    Topology topology = *parseTopology("2x2x" + std::string(known.name));
    EXPECT_TRUE(check(topology).empty()) << known.name;
    EXPECT_GT(known.memoryBandwidthGBps, 0) << known.name;
    EXPECT_GE(known.cacheBandwidthGBps, known.memoryBandwidthGBps);
    EXPECT_GT(known.exchangeExtra.rampAtUs, 0) << known.name;
  }
}

TEST(TopologyTest, MalformedTextsAreRefused) {
  for (const char *bad :
       {"", "H200", "x8xH200", "0xH200", "-1xH200", "8.5xH200", "2x2x2xH200",
        "8+xH200", "99999999999xH200", "60000x60000xH200", "8xH200@",
        "8xH200@lots", "8xH200@-1GiB", "8xH200@nan", "2xCPU@40",
        "2x2xCPU@0mbit", "2x2xCPU@5 parsecs"})
    EXPECT_FALSE(parseTopology(bad).has_value()) << bad;
}

TEST(TopologyTest, SpacesAreAllowed) {
  EXPECT_EQ(*parseTopology("2 x 8 x A100-40GB @ 40GiB"),
            *parseTopology("2x8xA100-40GB@40GiB"));
}

TEST(TopologyTest, ErrorsOfMemoryNameTheTopology) {
  EXPECT_THAT(errorOf("8xH200@5TiB"),
              HasSubstr("topology: in '8xH200@5TiB': expected a size with its "
                        "unit"));
}

TEST(TopologyTest, TimesOfLinksAreFinite) {
  Topology topology = *parseTopology("2xCPU");
  topology.levels[0].bandwidthGBps = 5e-324;
  topology.levels[0].latencyUs = 1e300;
  std::string errors = text(check(topology));
  EXPECT_THAT(errors, HasSubstr("bandwidth_gb_per_s: expected a number in "
                                "[1e-9, 1e30], got: 4.94066e-324"));
  EXPECT_THAT(errors, HasSubstr("latency_us: expected a number in [0, 1e30], "
                                "got: 1e+300"));
}

TEST(TopologyTest, CheckReportsEverything) {
  Topology topology = *parseTopology("2x2xCPU");
  topology.levels[1].groupSizes = {3, 2};
  topology.levels[0].bandwidthGBps = 0;
  topology.devices[1].deviceClass = "TPU";
  topology.devices[2].host = 7;
  topology.devices[3].memoryBytes = -5;
  std::string errors = text(check(topology));
  EXPECT_THAT(errors, HasSubstr("topology.levels[1].groups: group sizes must "
                                "add up to the 4 devices, got: 5"));
  EXPECT_THAT(errors, HasSubstr("topology.levels[0].bandwidth_gb_per_s"));
  EXPECT_THAT(errors, HasSubstr("topology.devices[1].class: unknown device "
                                "class 'TPU'"));
  EXPECT_THAT(errors, HasSubstr("topology.devices[2].host: expected a host "
                                "below 2, got: 7"));
  EXPECT_THAT(errors, HasSubstr("topology.devices[3].memory_bytes"));
}

TEST(TopologyTest, DisksHaveTheRatesOfTheirClassIfNotKnown) {
  Topology topology = *parseTopology("3x1xH100");
  topology.devices[2].deviceClass = "CPU";
  topology.hosts[0].disk = {4'000'000'000'000, 0, 12};
  EXPECT_EQ(text(check(topology)), "");
  std::vector<Disk> disks = disksOf(topology);
  EXPECT_EQ(disks[0], (Disk{4'000'000'000'000, 415e3, 12}));
  EXPECT_EQ(disks[1], (Disk{0, 415e3, 6.5}));
  EXPECT_EQ(disks[2], (Disk{0, 75e3, 1.5}));
  topology.hosts[1].disk = {-1, -2, 0};
  EXPECT_EQ(text(check(topology)),
            "topology.hosts[1].disk.bytes: expected at least 0 bytes, got: -1\n"
            "topology.hosts[1].disk.reads_per_second: expected 0, for the "
            "default of the device class, or a number from 0.001 to 1e12, got: "
            "-2");
}

TEST(TopologyTest, GroupsMustNest) {
  Topology topology = *parseTopology("2x2xCPU");
  topology.levels.insert(topology.levels.begin() + 1,
                         {"rack", {3, 1}, 1.0, 1.0});
  EXPECT_THAT(text(check(topology)),
              HasSubstr("topology.levels[2].groups: each group must lie inside "
                        "one group of the level before"));
}

} // namespace
