//===- HostProgramABI.h - C interface for compiled host code ----*- C++ -*-===//
//
// The `nsrt_*` functions that generated SPMD host code (forward, start,
// lookup, wait, update) calls on its device. The generated code owns the
// schedule, the runtime owns memory, threads and communication. None of these
// throws or returns an error: a failed step is recorded on the device, later
// calls of the step become no-ops that zero their outputs, and the caller of
// the step asks nsrt_device_status (DriverABI.h). All ranks learn of a failure
// with the lengths of the id exchange, so no rank waits for a failed one.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_HOSTPROGRAMABI_H
#define NEUROSHARD_RUNTIME_HOSTPROGRAMABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nsrt_device nsrt_device;
/// The ids of one step, sent and received, with what later phases need of them
/// (bag lengths, original positions).
typedef struct nsrt_routed nsrt_routed;
/// f32 rows of one step at their owners: partial results of a lookup, or
/// gradients, in the exchange layout.
typedef struct nsrt_partials nsrt_partials;

/// Lets the next nsrt_route of the device fail unless there are as many weights
/// as ids. Call it before, with the same `exchange`, if the input is weighted.
void nsrt_check_weights(nsrt_device *, int64_t exchange, int64_t num_ids,
                        int64_t num_weights);

/// Checks the local batch's ids, buckets them by owner and starts their
/// exchange. `exchange` numbers the manifest's exchanges. offsets has
/// features * batch + 1 entries, feature-major, starting at 0 (a
/// KeyedJaggedTensor's layout). weights is null if the input is not weighted.
nsrt_routed *nsrt_route(nsrt_device *, int64_t exchange, const void *ids,
                        int64_t num_ids, const int64_t *offsets,
                        int64_t num_offsets, const float *weights);

/// Waits for the ids and runs the forward kernels of the device's program, but
/// for those whose results go by relay.
nsrt_partials *nsrt_lookup(nsrt_device *, nsrt_routed *);

/// Starts sending partial results (owner -> batch). Runs the other forward
/// kernels, so no update may come between it and nsrt_lookup.
void nsrt_results_start(nsrt_device *, nsrt_routed *, nsrt_partials *);

/// Rows of one result on the local batch: the batch for a pooled lookup, the
/// number of its ids for an unpooled one. Valid after nsrt_route.
int64_t nsrt_result_rows(nsrt_device *, nsrt_routed *, int64_t lookup);

/// The same for code that was compiled for a result of so many rows, which it
/// gives in any case: with another number the step fails.
int64_t nsrt_expect_rows(nsrt_device *, nsrt_routed *, int64_t lookup,
                         int64_t rows);

/// Waits, and writes result `lookup` (index into the exchange's lookups),
/// rows x dim contiguous: partial sums added in rank order, mean divided by
/// the full count, rounded once to the element type (0 f32, 1 f16, 2 bf16).
void nsrt_result_wait(nsrt_device *, nsrt_routed *, nsrt_partials *,
                      int64_t lookup, int32_t element_type, void *out);

/// The same for the results 0 to count - 1, result i as element_types[i] to
/// outs[i], with rows that are row_strides[i] elements apart: at least dim. A
/// failed step zeroes what lies between rows, too. Faster than one by one,
/// since the kernels of all run together.
void nsrt_results_wait(nsrt_device *, nsrt_routed *, nsrt_partials *,
                       int64_t count, const int32_t *element_types,
                       void *const *outs, const int64_t *row_strides);

/// Packs the gradients of all `count` lookups of the exchange. Gradient i is
/// rows x dim of element_types[i]; its rows are row_strides[i] elements apart.
/// lasting: 1 if they stay as they are until nsrt_update, 0 if only until this
/// call returns. A single device reads lasting ones where they are. A gradient
/// without rows may be null.
nsrt_partials *nsrt_gradients_pack(nsrt_device *, nsrt_routed *, int64_t count,
                                   const int32_t *element_types,
                                   const void *const *gradients,
                                   const int64_t *row_strides, int32_t lasting);

/// Starts sending gradients (batch -> owner).
void nsrt_gradients_start(nsrt_device *, nsrt_routed *, nsrt_partials *);

/// Gradient of the per-sample weights, from the table before its update. `out`
/// has one value per id of the input, zero for ids that no weighted lookup
/// reads.
void nsrt_weights_gradient(nsrt_device *, nsrt_routed *, nsrt_partials *,
                           float *out);

/// Waits for the gradients and applies the optimizers of all slots. The
/// routed handles and gradients of every exchange that reads the slots are
/// passed together, so that a table has one update per step. Keeps the
/// gradients instead if the driver wants that (nsrt_device_keep_gradients).
void nsrt_update(nsrt_device *, int64_t num_exchanges,
                 nsrt_routed *const *routed, nsrt_partials *const *gradients,
                 float learning_rate, int64_t step);

/// Copies a tensor to another.
void nsrt_tensor_copy(nsrt_device *, void *to, const void *from, int64_t bytes);

void nsrt_partials_release(nsrt_device *, nsrt_partials *);
void nsrt_routed_release(nsrt_device *, nsrt_routed *);

//===----------------------------------------------------------------------===//
// Memory of the tensors that host functions make, under the names that MLIR
// gives calls of an allocator. The runtime keeps what is freed for the next
// steps. Aligned to 64 bytes; null if there is none.
//===----------------------------------------------------------------------===//

/// In memory of the device if the alignment is NSRT_TENSOR_ALIGNMENT; with a
/// smaller power of two, of arrays that the code makes for itself, in memory of
/// the host.
void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment, uint64_t bytes);
/// Null is allowed.
void _mlir_memref_to_llvm_free(void *);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_RUNTIME_HOSTPROGRAMABI_H
