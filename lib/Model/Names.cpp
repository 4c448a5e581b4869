//===- Names.cpp - The written form of enumerations ----------------------===//

#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/WireType.h"

#include <algorithm>
#include <array>
#include <vector>

namespace neuroshard {

template <typename Enum> std::string choicesOf() {
  std::span<const std::string_view> names = namesOf(Enum());
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

/// Defines toString(), the parse function and choicesOf() of an enumeration
/// whose values have the names k<ENUM>Names, in order.
#define ENUM_FUNCTIONS(ENUM)                                                   \
  static std::span<const std::string_view> namesOf(ENUM) {                     \
    return k##ENUM##Names;                                                     \
  }                                                                            \
  std::string_view toString(ENUM value) {                                      \
    return nameOf(k##ENUM##Names, value);                                      \
  }                                                                            \
  std::optional<ENUM> parse##ENUM(std::string_view text) {                     \
    return valueOf<ENUM>(k##ENUM##Names, text);                                \
  }                                                                            \
  template std::string choicesOf<ENUM>();

/// The same with these names.
#define ENUM_NAMES(ENUM, ...)                                                  \
  static constexpr std::string_view k##ENUM##Names[] = {__VA_ARGS__};          \
  ENUM_FUNCTIONS(ENUM)

static constexpr auto kOptimizerKindNames = [] {
  std::array<std::string_view, kOptimizers.size()> names;
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = kOptimizers[i].name;
  return names;
}();

ENUM_NAMES(Tier, "hbm", "dram", "ssd")
ENUM_NAMES(CachePolicy, "lru", "lfu")
ENUM_NAMES(Route, "auto", "direct", "relay")
ENUM_NAMES(ElementType, "f32", "f16", "bf16", "int8", "int4", "fp8")
ENUM_NAMES(WireFormat, "f32", "f16", "bf16", "int8", "fp8")
ENUM_NAMES(IdType, "i32", "i64")
ENUM_FUNCTIONS(OptimizerKind)
ENUM_NAMES(Pooling, "sum", "mean", "none")
ENUM_NAMES(OptimizerSemantics, "exact", "per_shard")
ENUM_NAMES(WeightDecayMode, "default", "l2", "decoupled", "adagradw")
ENUM_NAMES(StepMode, "training", "inference")
ENUM_NAMES(MemoryModel, "full", "weights_only")
ENUM_NAMES(Target, "native", "torchrec-1.9")
ENUM_NAMES(ShardingKind, "table_wise", "column_wise", "row_wise",
           "table_row_wise", "row_column", "replicated")
#undef ENUM_NAMES
#undef ENUM_FUNCTIONS

std::string toString(WireType type) {
  std::string text(toString(type.results));
  if (type.gradients != type.results)
    text.append("/").append(toString(type.gradients));
  return text;
}

std::span<const WireType> allWireTypes() {
  static const std::vector<WireType> all = [] {
    std::vector<WireType> types;
    for (WireFormat both : kWireFormats)
      types.emplace_back(both);
    for (WireFormat results : kWireFormats)
      for (WireFormat gradients : kWireFormats)
        if (results != gradients)
          types.emplace_back(results, gradients);
    return types;
  }();
  return all;
}

std::optional<WireType> parseWireType(std::string_view text) {
  auto found = std::ranges::find(allWireTypes(), text,
                                 [](WireType type) { return toString(type); });
  return found == allWireTypes().end() ? std::nullopt : std::optional(*found);
}

template <> std::string choicesOf<WireType>() {
  return choicesOf<WireFormat>() +
         ", or one of them for results and another for gradients, such as "
         "f32/bf16";
}

std::string tierError(Target target, Tier tier) {
  return "target " + std::string(toString(target)) +
         " does not run shards in tier " + std::string(toString(tier));
}

std::string cacheError(Tier tier, const CacheSpec &cache, int64_t rows,
                       int64_t copies) {
  if (tier != Tier::Ssd && cache == CacheSpec())
    return "";
  if (tier == Tier::Hbm)
    return "a cache is for shards in tier dram or ssd, found one in tier hbm";
  if (rows > kMaxCachedShardRows)
    return "a shard in tier " + std::string(toString(tier)) +
           " must have at most " + std::to_string(kMaxCachedShardRows) +
           " rows, found " + std::to_string(rows);
  int64_t most = roundUp(rows, kCacheWays);
  if (cache.rows < kCacheWays || cache.rows % kCacheWays != 0 ||
      cache.rows > most)
    return "the cache of a shard of " + std::to_string(rows) +
           " rows in tier " + std::string(toString(tier)) +
           " must have a multiple of " + std::to_string(kCacheWays) +
           " rows from " + std::to_string(kCacheWays) + " to " +
           std::to_string(most) + ", found " + std::to_string(cache.rows);
  if (copies > 1)
    return "a shard with a cache must be on one device, found " +
           std::to_string(copies);
  return "";
}

std::string syncError(int64_t syncEvery, int64_t copies) {
  if (syncEvery == 0)
    return "";
  if (syncEvery < 0 || syncEvery > kMaxSyncEvery)
    return "sync_every must be from 1 to " + std::to_string(kMaxSyncEvery) +
           " steps, got: " + std::to_string(syncEvery);
  if (copies < 2)
    return "sync_every is for shards with copies, found a shard on one device; "
           "name the devices of its copies, or leave sync_every out";
  return "";
}

} // namespace neuroshard
