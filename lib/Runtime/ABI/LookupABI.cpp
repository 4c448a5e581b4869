//===- LookupABI.cpp - C interface of lookups for serving -----------------===//

#include "neuroshard/Runtime/LookupABI.h"

#include "Export.h"
#include "Status.h"
#include "World/DirectLookup.h"
#include "neuroshard/Artifact/Error.h"

using namespace neuroshard;
using namespace neuroshard::runtime;

static_assert(static_cast<int>(Pooling::Sum) == NSRT_POOLING_SUM);
static_assert(static_cast<int>(Pooling::Mean) == NSRT_POOLING_MEAN);
static_assert(static_cast<int>(Pooling::None) == NSRT_POOLING_NONE);

/// Of the first input; null if there is none, or no world.
static const ExchangeSpec *inputOf(const nsrt_world *world) {
  if (!world)
    return nullptr;
  const auto &exchanges = world->manifest().exchanges;
  return exchanges.empty() ? nullptr : &exchanges.front();
}

template <typename T>
static const T *at(const std::vector<T> &list, int32_t index) {
  bool isThere = index >= 0 && static_cast<size_t>(index) < list.size();
  return isThere ? &list[static_cast<size_t>(index)] : nullptr;
}

NSRT_EXPORT int32_t nsrt_world_num_features(const nsrt_world *world) {
  const ExchangeSpec *input = inputOf(world);
  return input ? static_cast<int32_t>(input->features.size()) : 0;
}

NSRT_EXPORT const char *nsrt_world_feature(const nsrt_world *world,
                                           int32_t index) {
  const ExchangeSpec *input = inputOf(world);
  const std::string *name = input ? at(input->features, index) : nullptr;
  return name ? name->c_str() : nullptr;
}

NSRT_EXPORT int32_t nsrt_world_id_bytes(const nsrt_world *world) {
  const ExchangeSpec *input = inputOf(world);
  return input ? input->idBytes() : 8;
}

NSRT_EXPORT int32_t nsrt_world_num_lookups(const nsrt_world *world) {
  const ExchangeSpec *input = inputOf(world);
  return input ? static_cast<int32_t>(input->lookups.size()) : 0;
}

NSRT_EXPORT int32_t nsrt_world_lookup_info(const nsrt_world *world,
                                           int32_t index,
                                           nsrt_lookup_info *info) {
  return status([&] {
    if (!world || !info)
      fail("expected open tables and a place for what is said of a lookup, "
           "found a null pointer");
    const ExchangeSpec *input = inputOf(world);
    const ExchangeLookup *lookup = input ? at(input->lookups, index) : nullptr;
    if (!lookup)
      fail("there is no lookup ", index, "; the artifact has ",
           nsrt_world_num_lookups(world));
    const TableSpec &table =
        world->manifest().tables[static_cast<size_t>(lookup->table)];
    *info = {input->features[static_cast<size_t>(lookup->feature)].c_str(),
             table.name.c_str(),
             table.rows,
             table.dim,
             lookup->feature,
             static_cast<int32_t>(lookup->pooling),
             lookup->weighted};
  });
}

/// Throws a RuntimeError if there is none.
static DirectRequest requestOf(const nsrt_world *world,
                               const nsrt_batch *batch) {
  if (!world || !batch)
    fail("expected open tables and a batch, found a null pointer");
  return {{batch->ids, batch->num_ids, batch->offsets, 0, batch->weights},
          batch->batch,
          batch->drop_unknown != 0};
}

NSRT_EXPORT int32_t nsrt_look_up(const nsrt_world *world,
                                 const nsrt_batch *batch, float *const *outs,
                                 const int64_t *strides) {
  return status(
      [&] { lookUpDirectly(*world, requestOf(world, batch), outs, strides); });
}

NSRT_EXPORT int32_t nsrt_look_up_by_feature(const nsrt_world *world,
                                            const nsrt_batch *batch,
                                            const float *const *weights,
                                            float *const *outs,
                                            const int64_t *strides) {
  return status([&] {
    DirectRequest request = requestOf(world, batch);
    if (!weights)
      fail("expected weights by feature, found a null pointer");
    if (batch->weights)
      fail("expected weights either of the batch or by feature, found both");
    request.featureWeights = weights;
    lookUpDirectly(*world, request, outs, strides);
  });
}

NSRT_EXPORT int32_t nsrt_lookup_version() { return NSRT_LOOKUP_VERSION; }
