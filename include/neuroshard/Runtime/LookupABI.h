//===- LookupABI.h - C interface of lookups for serving ---------*- C++ -*-===//
//
// Answers lookups of an artifact for one device, such as neuroshard.freeze
// writes with its weights: open it with nsrt_world_open (DriverABI.h), once,
// and call nsrt_look_up from any number of threads at a time. A call runs in
// its thread and keeps nothing. libneuroshard_runtime.so is all that a program
// needs.
//
// Functions that return int32_t return 0 for success; after another value
// nsrt_last_error() of the same thread says what was wrong.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_LOOKUPABI_H
#define NEUROSHARD_RUNTIME_LOOKUPABI_H

#include "neuroshard/Runtime/DriverABI.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NSRT_POOLING_SUM = 0, NSRT_POOLING_MEAN = 1, NSRT_POOLING_NONE = 2 };

/// One lookup: a feature read in a table.
typedef struct nsrt_lookup_info {
  const char *feature; ///< lives as long as the world, as does `table`.
  const char *table;
  int64_t rows; ///< ids are in [0, rows).
  int64_t dim;  ///< f32 values of a result.
  int32_t feature_index;
  int32_t pooling;
  int32_t weighted; ///< 1: reads the weights of the batch.
} nsrt_lookup_info;

/// Grows when functions are added. Structs and the meaning of functions stay.
/// 2: nsrt_look_up_by_feature.
#define NSRT_LOOKUP_VERSION 2

/// NSRT_LOOKUP_VERSION of the library.
int32_t nsrt_lookup_version(void);

/// Functions that take a null world say that it has nothing, or fail.
int32_t nsrt_world_num_features(const nsrt_world *);
/// Null if there is no such feature.
const char *nsrt_world_feature(const nsrt_world *, int32_t index);
/// Bytes of an id: 4 or 8.
int32_t nsrt_world_id_bytes(const nsrt_world *);

int32_t nsrt_world_num_lookups(const nsrt_world *);
int32_t nsrt_world_lookup_info(const nsrt_world *, int32_t index,
                               nsrt_lookup_info *);

/// The ids of a batch, feature-major as in a KeyedJaggedTensor: bag b of
/// feature f has ids[offsets[f * batch + b]] up to
/// ids[offsets[f * batch + b + 1] - 1].
typedef struct nsrt_batch {
  const void *ids; ///< i32 or i64, see nsrt_world_id_bytes.
  int64_t num_ids;
  const int64_t *offsets; ///< features x batch + 1 of them.
  int64_t batch;          ///< bags of each feature.
  const float *weights;   ///< one for each id, if some lookup is weighted;
                          ///< else null. Lookups without weights read none.
  /// 0: ids that no row has fail the call. 1: they are left out of their bags;
  /// an unpooled lookup gives zeros for them.
  int32_t drop_unknown;
} nsrt_batch;

/// Runs lookup i for all i: its results are the rows of outs[i], strides[i] >=
/// dim floats apart, one for each bag, or for each id if it is unpooled. After
/// a failure outs may have been written in part. Nobody may write the tables
/// meanwhile. Pointers that are needed and null are an error; that arrays have
/// as many values as said cannot be checked.
int32_t nsrt_look_up(const nsrt_world *, const nsrt_batch *, float *const *outs,
                     const int64_t *strides);

/// The same, with weights of each feature apart: weights[f] has one for each id
/// of feature f, or is null, where no lookup of the feature is weighted.
/// batch->weights must be null.
int32_t nsrt_look_up_by_feature(const nsrt_world *, const nsrt_batch *batch,
                                const float *const *weights, float *const *outs,
                                const int64_t *strides);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_RUNTIME_LOOKUPABI_H
