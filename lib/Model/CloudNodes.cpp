//===- CloudNodes.cpp - The usual nodes of clouds -------------------------===//
///
/// \file
/// Rates: 0.9 of what the network cards of a node are sold with, divided among
/// its devices (models/data/gpu_measurements.csv, kind hw; aws:g5, g6 and g6e,
/// gcp:a2, a4 and g2, azure:ND96asr_v4, oci:BM.GPU4, A100-v2 and B200: what
/// their clouds announce), since all-to-alls over two nodes of B300, MI355X and
/// GB200 reached 0.89 to 0.97. Latencies: all-to-alls over two nodes took 35 us
/// at least over RoCE, and 105 us over EFA, which nodes without RDMA are given.
//===----------------------------------------------------------------------===//

#include "neuroshard/Model/CloudNodes.h"

#include "UpperCase.h"

#include "neuroshard/Support/ClosestName.h"

#include <vector>

using namespace neuroshard;

static constexpr double kEfaUs = 100, kRdmaUs = 30;

/// Of nominal GB/s.
static constexpr LinkFigures efa(double gbps) { return {kEfaUs, 0.9 * gbps}; }
static constexpr LinkFigures ethernet(double gbps) { return efa(gbps); }
static constexpr LinkFigures rdma(double gbps) { return {kRdmaUs, 0.9 * gbps}; }

static constexpr CloudNode kNodes[] = {
    {"aws:p4d.24xlarge", "A100-40GB", 8, efa(6.25)},
    {"aws:p4de.24xlarge", "A100-80GB", 8, efa(6.25)},
    {"aws:p5.48xlarge", "H100", 8, efa(50)},
    {"aws:p5e.48xlarge", "H200", 8, efa(50)},
    {"aws:p5en.48xlarge", "H200", 8, efa(50)},
    {"aws:p6-b200.48xlarge", "B200", 8, efa(50)},
    {"aws:p6-b300.48xlarge", "B300", 8, efa(100)},
    {"aws:g5.48xlarge", "A10G", 8, efa(1.5625)},
    {"aws:g6.48xlarge", "L4", 8, efa(1.5625)},
    {"aws:g6e.48xlarge", "L40S", 8, efa(6.25)},
    {"gcp:a2-highgpu-8g", "A100-40GB", 8, ethernet(1.5625)},
    {"gcp:a2-ultragpu-8g", "A100-80GB", 8, ethernet(1.5625)},
    {"gcp:a3-highgpu-8g", "H100", 8, rdma(12.5)},
    {"gcp:a3-megagpu-8g", "H100", 8, rdma(25)},
    {"gcp:a3-ultragpu-8g", "H200", 8, rdma(50)},
    {"gcp:a4-highgpu-8g", "B200", 8, rdma(50)},
    {"gcp:g2-standard-96", "L4", 8, ethernet(1.5625)},
    {"azure:ND96asr_v4", "A100-40GB", 8, rdma(25)},
    {"azure:ND96amsr_A100_v4", "A100-80GB", 8, rdma(25)},
    {"azure:ND96isr_H100_v5", "H100", 8, rdma(50)},
    {"azure:ND96isr_H200_v5", "H200", 8, rdma(50)},
    {"azure:ND96isr_MI300X_v5", "MI300X", 8, rdma(50)},
    {"oci:BM.GPU4.8", "A100-40GB", 8, rdma(25)},
    {"oci:BM.GPU.A100-v2.8", "A100-80GB", 8, rdma(25)},
    {"oci:BM.GPU.H100.8", "H100", 8, rdma(50)},
    {"oci:BM.GPU.H200.8", "H200", 8, rdma(50)},
    {"oci:BM.GPU.B200.8", "B200", 8, rdma(50)},
    {"oci:BM.GPU.B300.8", "B300", 8, rdma(100)},
    {"oci:BM.GPU.MI300X.8", "MI300X", 8, rdma(50)},
    {"oci:BM.GPU.MI355X.8", "MI355X", 8, rdma(50)},
};

std::span<const CloudNode> neuroshard::cloudNodes() { return kNodes; }

/// Without the cloud: "p5.48xlarge".
static std::string_view withoutCloud(std::string_view name) {
  return name.substr(name.find(':') + 1);
}

const CloudNode *neuroshard::findCloudNode(std::string_view name) {
  const CloudNode *found = nullptr;
  std::string upper = inUpperCase(name);
  for (const CloudNode &node : kNodes) {
    if (inUpperCase(node.name) == upper)
      return &node;
    if (inUpperCase(withoutCloud(node.name)) != upper)
      continue;
    if (found)
      return nullptr;
    found = &node;
  }
  return found;
}

std::string neuroshard::cloudSuggestion(std::string_view name) {
  std::vector<std::string> names;
  for (const CloudNode &node : kNodes)
    for (std::string_view one : {node.name, withoutCloud(node.name)})
      names.emplace_back(one);
  return didYouMean(name, names);
}

std::string neuroshard::cloudNodeNames() {
  std::string names;
  for (const CloudNode &node : kNodes)
    names += (names.empty() ? "" : ", ") + std::string(node.name);
  return names;
}
