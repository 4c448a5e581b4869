//===- CostModel.cpp - Anchors and defaults of the cost model interface ---===//

#include "neuroshard/Planner/CostModel.h"

using namespace neuroshard;

SumEmbedding::~SumEmbedding() = default;
CostModel::~CostModel() = default;

CostBound CostModel::lowerBound(std::span<const BoundTable>,
                                const Topology &) const {
  return {};
}
