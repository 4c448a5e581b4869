//===- ReferenceKernel.cpp - Probe of the machine's current speed ---------===//

#include "ReferenceKernel.h"

using namespace neuroshard;
using namespace neuroshard::collect;

ReferenceKernel::ReferenceKernel(Measurer &measurer) : measurer(measurer) {
  set.problem.topology = *parseTopology("1xCPU@1024GiB");
  set.problem.batch.globalSize = 2048;
  Table table;
  table.name = "0";
  table.rows = 1000000;
  table.dim = 64;
  set.problem.tables = {table};
  Feature feature;
  feature.name = "f";
  feature.meanPooling = 20;
  set.problem.features = {feature};
  Shard shard;
  shard.name = "s";
  shard.table = table.name;
  shard.rowEnd = table.rows;
  shard.colEnd = table.dim;
  shard.devices = {0};
  set.shards = {shard};
}

Expected<double> ReferenceKernel::measureMs() {
  if (!loaded) {
    auto made = measurer.load(set);
    if (!made)
      return tl::unexpected(made.error());
    loaded = std::move(*made);
  }
  Expected<Timing> timing = loaded->measure();
  if (!timing)
    return tl::unexpected(timing.error());
  return timing->median.total();
}
