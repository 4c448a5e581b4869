//===- KernelABI.h - Exports of compiled programs ---------------*- C++ -*-===//
//
// The contract between generated kernels and the runtime. A program library
// exports one `nsrt_program` named `neuroshard_program`. The runtime owns
// memory and threads and calls a kernel on ranges of its items; the kernels
// own the arithmetic. Plain C, no dependency.
//
// Conventions shared by all kernels
//  - weights: row-major rows of the shard's columns, each row padded to a
//    multiple of 16 bytes (nsrt_row_stride elements from row to row). Rows of
//    quantized types (Model/Types.h) are bytes.
//  - optimizer state is f32; one value per row (row-wise) or one value per
//    element with rows padded like f32 weights rows.
//  - ids are row numbers local to the shard and already checked.
//  - arithmetic is f32; a reduction over ids runs in the order of the ids.
//  - sample_weights may be null only for kernels compiled without them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_KERNELABI_H
#define NEUROSHARD_RUNTIME_KERNELABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Forward of one lookup on one shard, for the bags [begin, end):
///   pooled:   out[b * out_stride + c] = sum over j in
///             [offsets[b], offsets[b + 1]) of w_j * weights[ids[j]][c]
///   unpooled: one id is one bag, `offsets` is not read:
///             out[j * out_stride + c] = weights[ids[j]][c]
/// ids are i32 or i64 as the program was compiled (nsrt_lookup_entry).
typedef void (*nsrt_lookup_kernel)(const void *weights, const void *ids,
                                   const int64_t *offsets,
                                   const float *sample_weights, float *out,
                                   int64_t out_stride, int64_t begin,
                                   int64_t end);

/// Optimizer step for the unique rows [begin, end) of one shard:
///   g = sum over k in [segments[u], segments[u + 1]) of
///       sample_weights[k] * gradients[gradient_offsets[k] ... + dim)
///   apply the optimizer to row rows[u] with g, in place.
/// `step_size` is the learning rate; for optimizers that correct the bias of
/// their moments lr * sqrt(1 - beta2^step) / (1 - beta1^step). `kept` is the
/// factor of the weights under decoupled weight decay, 1 - lr * decay; other
/// kernels do not read it. Both are computed in double and rounded once. `seed`
/// is that of the random numbers of stochastic rounding, which have another one
/// in each step; other kernels do not read it. Kernels of optimizers that
/// correct the bias of moments and have a trust ratio get the learning rate
/// itself, and read `first`, 1 / (1 - beta1^step), the factor of the first
/// moment, and `second`, 1 / sqrt(1 - beta2^step), that of the root of the
/// second one; others do not. `step` is the number of the step, from 1, which
/// optimizers with counters alone read, and those that catch up.
///
/// Of an optimizer that catches up the last state is the number of steps that
/// the row has taken, and `step` that of the step, from 0; the kernel takes the
/// steps before it that the row has not taken, with a gradient of 0, then the
/// step itself, unless the row has taken it. `history` has
/// NSRT_HISTORY_VALUES for each step, up to this one: step_size, kept, and the
/// bits of seed, which it reads in place of the arguments. Others do not read
/// it.
/// Compiled with weights: each term is multiplied by its sample weight.
typedef void (*nsrt_update_kernel)(
    void *weights, float *state0, float *state1, float *state2,
    const int64_t *rows, const int64_t *segments,
    const int64_t *gradient_offsets, const float *sample_weights,
    const float *gradients, float step_size, float kept, uint32_t seed,
    float first, float second, float step, const float *history, int64_t begin,
    int64_t end);

/// First phase, over column shards, of an optimizer whose step needs sums over
/// all columns of a row: for the unique rows [begin, end), writes the shard's
/// part of these sums, norms[u * n] to norms[u * n + n - 1] with n =
/// normsPerRow of Model/Optimizer.h, and a row for the second phase,
/// reduced[u * reduced_stride + c]. reduced_stride is the padded f32 row of the
/// shard. Row-wise optimizers sum g[c]^2 and write g; under L2 decay they
/// read weights for it, and write g with it, but with counters. Those with a
/// trust ratio also step the moments that need no sum; docs/kernels.md says
/// what they sum and write.
typedef void (*nsrt_reduce_kernel)(const void *weights, float *state0,
                                   float *state1, float *state2,
                                   const int64_t *rows, const int64_t *segments,
                                   const int64_t *gradient_offsets,
                                   const float *sample_weights,
                                   const float *gradients, float first,
                                   float second, float *reduced, float *norms,
                                   int64_t begin, int64_t end);

/// Second phase: norms are now the sums over all columns of the table.
typedef void (*nsrt_apply_kernel)(void *weights, float *state0, float *state1,
                                  float *state2, const int64_t *rows,
                                  const float *reduced, const float *norms,
                                  float step_size, float kept, uint32_t seed,
                                  float first, float second, float step,
                                  int64_t begin, int64_t end);

/// Gradient of per-sample weights on one shard, for the ids [begin, end):
///   out[j] = sum over c of weights[ids[j]][c] * gradients[offsets[j] + c].
typedef void (*nsrt_weight_gradient_kernel)(const void *weights,
                                            const void *ids,
                                            const int64_t *gradient_offsets,
                                            const float *gradients, float *out,
                                            int64_t begin, int64_t end);

/// One lookup on one slot (local shard).
typedef struct nsrt_lookup_entry {
  int32_t slot;
  int32_t id_bytes; ///< 4 or 8.
  int32_t pooled;   ///< 0: unpooled.
  int32_t weighted; ///< 1: reads sample_weights.
  nsrt_lookup_kernel forward;
  nsrt_weight_gradient_kernel weight_gradient; ///< null if not weighted.
} nsrt_lookup_entry;

/// One slot. Exactly one of {update} and {reduce, apply} is set in a training
/// program, none in an inference program. Which is decided per table, since
/// either all shards of a table exchange norms or none does. If any lookup of
/// the slot is weighted, the kernels read sample_weights (1.0 for unweighted
/// lookups).
typedef struct nsrt_slot_entry {
  int32_t dim;            ///< columns of the shard.
  int32_t row_bytes;      ///< of one row of weights, without padding.
  int32_t state_elements; ///< f32 state arrays with one value per element.
  int32_t state_rows;     ///< f32 state arrays with one value per row.
  int32_t weighted;
  nsrt_update_kernel update;
  nsrt_reduce_kernel reduce;
  nsrt_apply_kernel apply;
} nsrt_slot_entry;

/// Of this file and HostProgramABI.h.
#define NSRT_PROGRAM_VERSION 9

/// Of a step in the history of an optimizer that catches up.
#define NSRT_HISTORY_VALUES 3

/// Name of the nsrt_program of a program library.
#define NSRT_PROGRAM_SYMBOL "neuroshard_program"

/// Of tensors in memory of a device, in bytes. A cache line, so that rows whose
/// size is a multiple of one do not straddle lines.
#define NSRT_TENSOR_ALIGNMENT 64

/// Prefix of the uniform entry points: `void nsrt_invoke_<f>(void **args)` for
/// every host function <f>.
#define NSRT_INVOKE_PREFIX "nsrt_invoke_"

/// The symbol NSRT_PROGRAM_SYMBOL of a program library. Slots and lookups
/// are in the order of the manifest's bindings for each device that runs it.
typedef struct nsrt_program {
  int32_t version; ///< NSRT_PROGRAM_VERSION.
  int32_t num_slots;
  int32_t num_lookups;
  int32_t reserved;
  const nsrt_slot_entry *slots;
  const nsrt_lookup_entry *lookups;
} nsrt_program;

#ifdef __cplusplus
}
#endif

/// Elements from one padded row to the next.
static inline int64_t nsrt_row_stride(int64_t dim, int64_t element_bytes) {
  int64_t bytes = (dim * element_bytes + 15) / 16 * 16;
  return bytes / element_bytes;
}

#endif // NEUROSHARD_RUNTIME_KERNELABI_H
