//===- CudaABI.h - C interface of the GPU runtime ---------------*- C++ -*-===//
//
// The C interface of libneuroshard_cuda: opens one device of a compiled
// artifact on a GPU, owns the memory of its shards, and launches its kernels
// on a CUDA stream of the caller. Plain C, no dependency on CUDA: the driver
// (libcuda.so.1, or the library that the environment variable
// NEUROSHARD_CUDA_DRIVER names) is loaded by the first call that needs it.
// docs/cuda-runtime.md has examples.
//
// Errors. A function that returns nsc_status returns NSC_OK, or another value
// with the reason in nsc_last_error(device), valid until the next call with
// that device. nsc_last_error(NULL) is for functions without a device
// (nsc_open, nsc_available), per thread. No function throws or exits. After an
// error of the driver (NSC_CUDA_ERROR) CUDA's context may be lost.
//
// Threads. One thread at a time may use a device; different threads may use
// different devices.
// Streams. `stream` is a CUstream (cudaStream_t), null for the legacy default
// one. A stream orders the work of a device; a caller that changes the stream
// between calls must order the two. Only nsc_open, nsc_close, nsc_check and the
// copies of rows wait for the GPU.
//
// CUDA graphs. nsc_forward, nsc_backward, nsc_backward_apply may be captured.
// A captured step keeps its own arrays until nsc_close, so that later calls do
// not change what the graph reads. Learning rate and step count are in device
// memory: call nsc_set_step before each replay, outside of the capture. A
// replay uses the pointers to ids, offsets, weights, outputs and gradients of
// the captured calls. To capture forward and backward into two graphs, use
// NSC_TRAINING_JOINED.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIMECUDA_CUDAABI_H
#define NEUROSHARD_RUNTIMECUDA_CUDAABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NSC_VERSION 4

typedef struct nsc_device nsc_device;

typedef int32_t nsc_status;
enum {
  NSC_OK = 0,
  NSC_ERROR = 1,         /* wrong arguments, or a broken artifact */
  NSC_BAD_ID = 2,        /* of nsc_check only */
  NSC_NO_DRIVER = 3,     /* no driver or no GPU on this machine */
  NSC_OUT_OF_MEMORY = 4, /* of the GPU or of the host */
  NSC_CUDA_ERROR = 5     /* the driver reported an error */
};

/// Element types.
enum { NSC_F32 = 0, NSC_F16 = 1, NSC_BF16 = 2 };

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// NSC_VERSION of the library.
int32_t nsc_version(void);

/// NSC_OK if there is a driver with at least one GPU. Else NSC_NO_DRIVER, and
/// nsc_last_error(NULL) says why.
nsc_status nsc_available(void);

/// The message of the last call with this device that failed, or "". Null: of
/// the last call of this thread without a device.
const char *nsc_last_error(const nsc_device *);

/// Memory of one slot that the caller owns, at least until nsc_close: 16-byte
/// aligned, with the sizes that nsc_slot gives. States the optimizer does not
/// have are null.
typedef struct nsc_slot_memory {
  void *weights;
  float *state0;
  float *state1;
  float *state2;
} nsc_slot_memory;

typedef struct nsc_options {
  /// 1: weights get the values of `seed`, the same bits as on the CPU and for
  /// every plan, and state the optimizer's initial values. 0: weights are zero
  /// and state has its initial values; memory of the caller is left as it is.
  int32_t initialize;
  /// Length of `slots`, which must be the device's number of slots. 0: not
  /// checked.
  int32_t num_slots;
  uint64_t seed;
  /// Null: the library allocates. Else one per slot of the device.
  const nsc_slot_memory *slots;
} nsc_options;

/// Opens device `plan_device` of the artifact in `directory` on the GPU
/// `cuda_ordinal`, in its primary context (the one that PyTorch uses). Null
/// options: {.initialize = 1}. On failure *device is null.
nsc_status nsc_open(const char *directory, int32_t plan_device,
                    int32_t cuda_ordinal, const nsc_options *options,
                    nsc_device **device);

/// Reads what nsc_open reads of an artifact before it needs the GPU, and checks
/// it. For callers that read the manifest, too, before they open the device.
nsc_status nsc_check_artifact(const char *directory, int32_t plan_device);

/// Waits for the work of the device and frees everything. Null is allowed.
void nsc_close(nsc_device *);

/// Facts of an open device. Texts live as long as the device.
typedef struct nsc_info {
  const char *gpu;       /* "NVIDIA H200" */
  const char *image;     /* file that was loaded */
  const char *module;    /* hash of the gpu.module it was compiled from */
  int32_t capability;    /* 90 for sm_90 */
  int32_t driver;        /* 13000 for CUDA 13.0 */
  int32_t num_slots;     /* shards on this device */
  int32_t num_lookups;   /* (lookup, slot) pairs on this device */
  int32_t num_exchanges; /* jagged inputs of the artifact */
  int32_t two_phase;     /* 1: some slot needs nsc_backward_apply */
} nsc_info;
nsc_status nsc_get_info(nsc_device *, nsc_info *);

/// Bytes of device memory that the library has allocated (for `weights` and
/// `states` also what the caller gave). Peaks, since nothing is given back
/// before nsc_close.
typedef struct nsc_memory {
  int64_t weights;
  int64_t states;
  int64_t step;   /* keys, sort, gradients' places, two-phase rows and norms */
  int64_t arrays; /* tasks and blocks: arguments of kernels */
} nsc_memory;
nsc_status nsc_get_memory(nsc_device *, nsc_memory *);

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// One shard of this device.
typedef struct nsc_slot {
  const char *table;
  const char *shard;
  int64_t row_begin, row_end; /* of the table */
  int64_t col_begin, col_end;
  int32_t element_type;   /* NSC_F32, ... */
  int32_t num_states;     /* 0 ... 3 arrays of f32 */
  int32_t num_row_states; /* the last ones: a value per row, not per element */
  int32_t trainable;      /* 1: compiled with an optimizer */
  int32_t two_phase;      /* 1: needs nsc_norms and nsc_backward_apply */
  int32_t reserved;
  int64_t weight_stride;   /* elements from row to row: padded to 16 bytes */
  int64_t state_stride[3]; /* f32 values from row to row */
  int64_t weight_bytes;    /* of all rows */
  int64_t state_bytes[3];  /* of all rows */
  void *weights;           /* device memory */
  float *states[3];
} nsc_slot;
nsc_status nsc_get_slot(nsc_device *, int32_t slot, nsc_slot *);

/// Fills all slots as nsc_options.initialize does.
nsc_status nsc_initialize(nsc_device *, uint64_t seed);

/// Copies rows [begin, end) of the slot (0 is the shard's first row) between
/// host memory and the GPU; `values` is dense: rows x columns of the shard, in
/// the table's element type. Waits for all work in the context.
nsc_status nsc_read_weights(nsc_device *, int32_t slot, int64_t begin,
                            int64_t end, void *values);
nsc_status nsc_write_weights(nsc_device *, int32_t slot, int64_t begin,
                             int64_t end, const void *values);
/// The same for f32 state `state`: rows x columns, or rows if it is by row.
nsc_status nsc_read_state(nsc_device *, int32_t slot, int32_t state,
                          int64_t begin, int64_t end, float *values);
nsc_status nsc_write_state(nsc_device *, int32_t slot, int32_t state,
                           int64_t begin, int64_t end, const float *values);

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// One lookup on one slot. Lookups are numbered as in the manifest's binding of
/// the device.
typedef struct nsc_lookup {
  const char *input;   /* of the exchange */
  const char *feature; /* its name */
  int32_t exchange;
  int32_t feature_index; /* in the exchange */
  int32_t slot;
  int32_t id_bytes;    /* 4 or 8 */
  int32_t pooled;      /* 0: one output row per id */
  int32_t mean;        /* 1: divided by the ids of the bag */
  int32_t weighted;    /* 1: reads sample weights */
  int32_t output_type; /* NSC_F32, ... */
  int64_t dim;         /* columns of an output row */
} nsc_lookup;
nsc_status nsc_get_lookup(nsc_device *, int32_t lookup, nsc_lookup *);

/// The ids of one lookup on one slot, and where its results are written: all
/// bags of a step, or some of them (such as those of one peer). Device
/// pointers.
typedef struct nsc_part {
  int32_t lookup;
  /// 1: all ids [id_begin, id_end) are in bags of this part; always so without
  /// offsets. 0: some may belong to other features of a jagged input. Parts
  /// with the same ids and range but another `feature` then must not share ids.
  int32_t exact;
  int32_t feature;
  int32_t reserved;
  /// Rows of the table within those of the shard; i32 or i64, see nsc_lookup.
  const void *ids;
  /// i64 [bags + 1]: bag b has the ids [offsets[b], offsets[b + 1]) of `ids`;
  /// offsets ascend and stay within [id_begin, id_end], which is not checked.
  /// Null: bags of `pooling` ids each, or not pooled.
  const int64_t *offsets;
  /// f32 by position in `ids`; null unless the lookup is weighted.
  const float *sample_weights;
  int64_t id_begin;
  int64_t id_end;
  /// Number of bags; not read if the lookup is not pooled: each id is one.
  int64_t bags;
  /// Ids of every bag; read if offsets is null.
  int64_t pooling;
  /// Row i goes to out + i * out_stride, in elements of the output type. Null:
  /// the lookup is not computed. Where a row has a multiple of 16 bytes, out
  /// and stride must be multiples of 16 bytes.
  void *out;
  int64_t out_stride;
} nsc_part;

/// A whole jagged input: feature-major, as in KeyedJaggedTensor.
typedef struct nsc_input {
  const void *ids;
  const int64_t *offsets; /* i64 [features * batch + 1]; null: fixed pooling */
  const float *sample_weights;
  /// In host memory, or null: the first id of each feature, [features + 1].
  /// Lookups without pooling need it, unless the pooling is fixed. It saves
  /// memory if a feature is looked up more than once.
  const int64_t *feature_begin;
  int64_t num_ids;
  int64_t batch;
  int64_t pooling; /* of every bag, if offsets is null */
} nsc_input;

typedef struct nsc_output {
  void *out; /* null: not computed */
  int64_t stride;
} nsc_output;

/// Writes one part per lookup of the device, in order, from inputs with ids of
/// whole tables: inputs[exchange], outputs[lookup]. Does no GPU work. Fails for
/// shards of rows and for lookups with a padding_idx: the caller must sort
/// their ids out first.
nsc_status nsc_make_parts(nsc_device *, const nsc_input *inputs,
                          int32_t num_inputs, const nsc_output *outputs,
                          int32_t num_outputs, nsc_part *parts);

enum {
  NSC_INFERENCE = 0,
  /// Also sorts the ids for the update, on a stream of the library that waits
  /// for `stream` first; nsc_backward waits for the sort.
  NSC_TRAINING = 1,
  /// The same, and `stream` waits for the sort at once.
  NSC_TRAINING_JOINED = 2
};

/// Computes all parts in one launch. Bad ids are reported by nsc_check.
nsc_status nsc_forward(nsc_device *, const nsc_part *parts, int32_t num_parts,
                       int32_t training, void *stream);

/// Allocates and writes what nsc_forward with these arguments needs, but does
/// not run it. Pointers to ids and results need not be valid yet.
nsc_status nsc_prepare(nsc_device *, const nsc_part *parts, int32_t num_parts,
                       int32_t training, void *stream);

/// Gradient of one part's results: f32 in any case.
typedef struct nsc_gradient {
  const float *gradient; /* of row i: from gradient + i * stride on */
  int64_t stride;
  /// Null, or f32 by position in `ids`: gets the gradient of the sample
  /// weights of the part's ids. The part must have offsets, and not be a mean.
  float *weight_gradient;
} nsc_gradient;

/// Sets the learning rate and the number of the step (from 1 on; only Adam
/// reads it) for later updates on `stream`. Copies no host memory.
nsc_status nsc_set_step(nsc_device *, float learning_rate, int64_t step,
                        void *stream);

/// Updates the tables with the ids of the last nsc_forward with training.
/// gradients[i] belongs to its parts[i] and is needed if its slot is trainable.
/// For two-phase slots, computes gradient rows and norms only.
nsc_status nsc_backward(nsc_device *, const nsc_gradient *gradients,
                        int32_t num_gradients, void *stream);

/// Between nsc_backward and nsc_backward_apply: the norms of a two-phase slot,
/// per_row of each distinct row, one row after the other in ascending order:
/// `norms` of nsrt_reduce_kernel. Shards of the same rows have the same rows
/// here. Sum them over the owners of the columns, in column order, in place.
typedef struct nsc_norms {
  float *norms;             /* device, [capacity][per_row] */
  int64_t capacity;         /* at least the distinct rows of this step */
  const int32_t *run_range; /* device: end - begin = distinct rows */
  int64_t per_row;
} nsc_norms;
nsc_status nsc_get_norms(nsc_device *, int32_t slot, nsc_norms *);
nsc_status nsc_backward_apply(nsc_device *, void *stream);

/// Waits for `stream`. Returns NSC_BAD_ID if a step since the last check had a
/// bad id; the message of its first one has table, feature, position, id and
/// the rows allowed. For a bad id, lookups read the first row of the shard, and
/// updates skip it. The memory of the step's ids must still be valid.
nsc_status nsc_check(nsc_device *, void *stream);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_RUNTIMECUDA_CUDAABI_H
