//===- CpuBackend.h - A backend on the threads of the host ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_CPUBACKEND_H
#define NEUROSHARD_LIB_RUNTIME_CPU_CPUBACKEND_H

#include "Host/BufferPool.h"
#include "Shards/Shard.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <memory>
#include <span>
#include <vector>

namespace neuroshard::runtime {

class CpuBackend : public Backend {
public:
  /// `shards`: per slot of the program. All arguments must outlive it.
  CpuBackend(const Manifest &manifest, const nsrt_program &program,
             std::span<const Shard> shards, BufferPool &buffers,
             ThreadPool &threads)
      : manifest(manifest), program(program), shards(shards), buffers(buffers),
        threads(threads) {}

  void clear(std::byte *first, int64_t bytes) override;
  void copy(std::byte *to, const std::byte *from, int64_t bytes) override;
  std::unique_ptr<IdPacker> packIds(int32_t exchange, const JaggedInput &input,
                                    int64_t batch) override;
  void addUp(std::span<const BagLengths> bags) override;
  std::unique_ptr<RowsInUse>
  fetchRows(std::span<const CachedLookup> lookups) override;
  void lookUp(std::span<const LookupPart> parts, bool isRead) override;
  void moveRows(std::span<const RowMove> moves) override;
  std::unique_ptr<Update>
  prepareUpdate(std::vector<GradientPart> parts) override;
  std::unique_ptr<DistinctSums>
  sumByRow(std::vector<GradientPart> parts) override;
  void addUpRows(std::vector<GradientPart> parts,
                 std::span<const SlotSums> sums) override;
  void updateRows(std::span<const SlotSums> sums,
                  std::span<const StepSize> stepSizes) override;
  void
  computeWeightGradients(std::span<const WeightGradientPart> parts) override;
  void addAtPlaces(std::span<const PlacedValues> values, float *out,
                   int64_t count, float divisor) override;

private:
  const Manifest &manifest;
  const nsrt_program &program;
  std::span<const Shard> shards;
  BufferPool &buffers;
  ThreadPool &threads;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_CPUBACKEND_H
