//===- Edits.cpp - Ways to make a failing module smaller ------------------===//

#include "Edits.h"

using namespace neuroshard;

llvm::ArrayRef<ModuleEdit> neuroshard::allEdits() {
  static const ModuleEdit edits[] = {
      {"drop-table", dropTable},
      {"drop-symbol", dropSymbol},
      {"drop-lookup", dropLookup},
      {"drop-other-op", dropOtherOp, /*repeats=*/true},
      {"drop-results", dropResults},
      {"drop-packed-features", dropPackedFeatures},
      {"drop-features", dropFeatures},
      {"drop-planning", dropPlanning},
      {"join-shards", joinShards},
      {"drop-shard", dropShard},
      {"drop-copies", dropCopies},
      {"make-one-device", makeOneDevice},
      {"halve-devices", halveDevices, /*repeats=*/true},
      {"drop-provenance", dropProvenance},
      {"drop-optimizer", dropOptimizer},
      {"drop-access", dropAccess},
      {"drop-statistics", dropStatistics},
      {"make-few-rows", makeFewRows},
      {"halve-rows", halveRows, /*repeats=*/true},
      {"make-few-columns", makeFewColumns},
      {"halve-columns", halveColumns, /*repeats=*/true},
      {"make-small-batch", makeSmallBatch},
      {"halve-batch", halveBatch, /*repeats=*/true}};
  return edits;
}
