//===- Target.h - Executors and their memory tiers --------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_TARGET_H
#define NEUROSHARD_MODEL_TARGET_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuroshard {

/// The executor of a plan: this project's runtimes, or TorchRec 1.9, which
/// restricts plans. Row-wise tables have ceil(rows / devices) rows on each of
/// all devices, table-row-wise ones the same over one whole innermost group; on
/// CPUs every device must get rows. A table has one kind of cut. Widths are
/// multiples of 4, and equal for a table's shards on one device. Replicas are
/// on all devices.
enum class Target { Native, TorchRec19 };

/// Where the weights of a shard live: device memory, the memory of the host the
/// device belongs to, or a file on the host's disks.
enum class Tier { Hbm, Dram, Ssd };

/// Does the executor keep shards in this tier?
constexpr bool runsTier(Target target, Tier tier) {
  return tier != Tier::Ssd || target == Target::Native;
}

/// Does it keep shards in this tier behind a cache of rows that the plan sizes?
constexpr bool hasRowCache(Target target, Tier tier) {
  return tier != Tier::Hbm && target == Target::Native;
}

/// The error for a shard in a tier that the target does not run.
std::string tierError(Target target, Tier tier);

std::string_view toString(Target target);
/// "hbm", "dram" or "ssd".
std::string_view toString(Tier tier);
std::optional<Target> parseTarget(std::string_view text);
std::optional<Tier> parseTier(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_TARGET_H
