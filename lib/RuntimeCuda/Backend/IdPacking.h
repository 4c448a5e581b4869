//===- IdPacking.h - Checks ids and sorts them by owner on a GPU -*- C++ -*-==//
//
// Kernels count the ids of each bag and bucket. The host waits for the sums,
// from which the sizes of messages follow; then kernels write the ids.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_IDPACKING_H
#define NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_IDPACKING_H

#include "Driver/GpuMemory.h"
#include "Routing.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/Backend.h"

#include <vector>

namespace neuroshard::cuda {

/// What a device lends to the packing of one batch after the other. All of it
/// outlives the packings.
struct PackingTools {
  const Gpu &gpu;
  const Manifest &manifest;
  Routing &routing;
  runtime::BufferSource &buffers;
  runtime::Backend &host; ///< explains what is wrong with ids.
  PinnedBlock counts;     ///< what was read last.
};

class IdPacking : public runtime::IdPacker {
public:
  IdPacking(PackingTools &tools, int32_t exchange,
            const runtime::JaggedInput &input, int64_t batch, CUstream stream);

  runtime::IdCounts count() override;
  void pack(const runtime::PackTargets &targets) override;

private:
  nsg_bucket describe(size_t bucket) const;
  void addCopies(size_t bucket, const std::vector<runtime::IdTarget> &targets,
                 std::vector<runtime::RowMove> &moves) const;
  void addUpBags();
  void findFirstIds(int64_t *firsts);
  const int64_t *readCounts();
  /// Throws what the host says of the input.
  [[noreturn]] void explain() const;

  PackingTools &tools;
  int32_t exchange;
  const ExchangeSpec &spec;
  const int32_t packedBytes; ///< of an id.
  const ExchangeLayout &layout;
  runtime::JaggedInput input;
  int64_t batch;
  CUstream stream;

  std::vector<nsg_bucket> buckets;
  std::vector<int64_t> idsOfBucket;
  runtime::Buffer lengths; ///< i32 [buckets, batch].
  runtime::Buffer firsts;  ///< i64 [buckets, batch + 1], sums of the lengths.
  /// i64: the words of bad offsets and bad ids, the first id of each feature
  /// and the number of all, the ids of each bucket.
  runtime::Buffer counts;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_BACKEND_IDPACKING_H
