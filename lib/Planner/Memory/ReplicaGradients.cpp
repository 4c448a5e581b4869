//===- ReplicaGradients.cpp - Form of the gradients of copies -------------===//

#include "ReplicaGradients.h"

#include "neuroshard/Artifact/ReplicaUpdate.h"

using namespace neuroshard;

ReplicaGradients neuroshard::replicaGradients(
    const ShardingProblem &problem, const Table &table,
    const std::vector<int> &features,
    const std::function<int64_t(const Feature &)> &idsOf) {
  WireFormat format = problem.batch.wireType.gradients;
  ReplicaGradients gradients;
  bool inOneExchange = true; // those of other batches are in another
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    const Feature &first =
        problem.features[static_cast<size_t>(features.front())];
    int64_t batch = featureBatch(problem, feature);
    inOneExchange = inOneExchange && batch == featureBatch(problem, first);
    ExchangeLookup lookup;
    lookup.pooling = feature.pooling;
    lookup.weighted = feature.weighted;
    gradients.gatheredBytes += gatheredBytes(
        lookup, table.dim, idBytes(packedIdType(problem, feature.table)),
        format, batch, idsOf(feature));
  }
  gradients.areSummed =
      inOneExchange &&
      sendsRowSums(table.rows, table.dim, format, gradients.gatheredBytes);
  return gradients;
}
