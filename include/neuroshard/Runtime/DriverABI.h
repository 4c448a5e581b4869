//===- DriverABI.h - C interface to open and run an artifact ----*- C++ -*-===//
//
// The C interface for tools, tests and Python (ctypes): opens a compiled
// artifact as an in-process world (every device of the manifest a thread with
// its own memory), reads and writes tables over their shards, and runs the
// artifact's functions. Open.h opens a world of one device, whose others are
// other processes.
//
// Every call that can fail returns 0 for success and another value (or a null
// pointer) for failure; nsrt_last_error then has one message. A world may be
// used from one thread at a time, except nsrt_invoke, which may run on
// different devices at the same time, and nsrt_world_close, which ends
// running steps first.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_DRIVERABI_H
#define NEUROSHARD_RUNTIME_DRIVERABI_H

#include "neuroshard/Runtime/HostProgramABI.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// All devices of one artifact in this process.
typedef struct nsrt_world nsrt_world;

/// A function of a program library, `nsrt_invoke_<name>`. args[i] points to
/// the i-th C-interface argument: first the result struct if the function has
/// results, then a device handle itself, pointers to strided memref
/// descriptors {allocated, aligned, offset, sizes[rank], strides[rank]},
/// pointers to scalars, pointers to handles.
typedef void (*nsrt_host_function)(void **args);

/// Element types of tables; the first three also of results. The rows of the
/// others are bytes, whose layout Model/Types.h gives.
enum {
  NSRT_F32 = 0,
  NSRT_F16 = 1,
  NSRT_BF16 = 2,
  NSRT_INT8 = 3,
  NSRT_INT4 = 4,
  NSRT_FP8 = 5
};

/// Message of the last call of this thread that failed; "" if none has. Valid
/// until the next failing call of this thread.
const char *nsrt_last_error(void);

//===----------------------------------------------------------------------===//
// Worlds
//===----------------------------------------------------------------------===//

/// Opens `directory`/manifest.json and its program libraries. Each device
/// computes on `threads_per_device` threads, the calling one included; 0
/// divides the machine's threads evenly. Weights are zero and optimizer state
/// has its initial values until the caller fills them, but for artifacts that
/// bring their weights. Null on failure.
nsrt_world *nsrt_world_open(const char *directory, int32_t threads_per_device);

/// The same for programs in this process: manifest_json is the text of a
/// manifest, programs[i] is its program i and must outlive the world.
nsrt_world *nsrt_world_create(const char *manifest_json,
                              const nsrt_program *const *programs,
                              int32_t num_programs, int32_t threads_per_device);

/// Adds a function to an in-process program under `name`.
int32_t nsrt_world_register(nsrt_world *, int32_t program, const char *name,
                            nsrt_host_function);

/// Ends running steps with an error, waits for them, frees everything.
void nsrt_world_close(nsrt_world *);

int32_t nsrt_world_num_devices(const nsrt_world *);
/// Null if there is no such rank, or it is in another process.
nsrt_device *nsrt_world_device(nsrt_world *, int32_t rank);

/// Makes a world usable again after a step that was aborted on devices driven
/// by nsrt_invoke (not necessary after ids out of range, which end a step in
/// an orderly way). No device may be in a step. nsrt_invoke_all does this
/// itself.
int32_t nsrt_world_reset(nsrt_world *);

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

typedef struct nsrt_table_info {
  const char *name; ///< lives as long as the world.
  int64_t rows;
  int64_t dim;
  int32_t element_type; ///< NSRT_F32, ...
  int32_t num_states;   ///< f32 state arrays: 0 SGD, 1 Adagrad, 2 Adam.
  /// f32 values per row of each state array: dim; or 1 for a row-wise state;
  /// or, with per-shard semantics, the largest number of column shards any row
  /// has.
  int64_t state_width[3];
} nsrt_table_info;

int32_t nsrt_world_num_tables(const nsrt_world *);
/// Index of the table of that name, -1 if there is none.
int32_t nsrt_world_find_table(const nsrt_world *, const char *name);
int32_t nsrt_world_table_info(const nsrt_world *, int32_t table,
                              nsrt_table_info *);

/// Copies the table's rows [row_begin, row_end) from or to a dense row-major
/// [row_end - row_begin, dim] buffer of the table's element type, over all
/// shards and replicas. A read fails if replicas differ. Rows of a quantized
/// type are one after the other, without padding, each with its scale and bias,
/// which are the same for all column shards of a row.
int32_t nsrt_table_write(nsrt_world *, int32_t table, int64_t row_begin,
                         int64_t row_end, const void *values);
int32_t nsrt_table_read(nsrt_world *, int32_t table, int64_t row_begin,
                        int64_t row_end, void *values);

/// The same for f32 state array `state`, [row_end - row_begin, state_width].
/// Exact row-wise state is one value per row, kept by every column shard; a
/// read fails if they differ. Per-shard row-wise state has one value per
/// column shard in column order, zero beyond the row's last shard.
int32_t nsrt_state_write(nsrt_world *, int32_t table, int32_t state,
                         int64_t row_begin, int64_t row_end,
                         const float *values);
int32_t nsrt_state_read(nsrt_world *, int32_t table, int32_t state,
                        int64_t row_begin, int64_t row_end, float *values);

/// Fills weights with uniform values in [-1/sqrt(rows), 1/sqrt(rows)) that
/// depend on nothing but (seed, table name, row, column), and state with its
/// initial values. table -1 means all. Tables whose artifact brings weights
/// keep them.
int32_t nsrt_table_initialize(nsrt_world *, int32_t table, uint64_t seed);

/// Writes to all pages of all shards, so that the operating system provides
/// them now and not in a step. For measurements; filling the tables does the
/// same.
int32_t nsrt_world_touch_memory(nsrt_world *);

//===----------------------------------------------------------------------===//
// Shards of one device
//===----------------------------------------------------------------------===//

/// One shard, in the device's own memory, or, in tier "ssd", in its file:
/// writing there is writing the table. What such a file has is current until
/// the next step; ask again after it. Values of row r and column c lie at index
/// (r - row_begin) * stride + (c - col_begin); row-wise state at
/// (r - row_begin) * stride.
typedef struct nsrt_shard_info {
  const char *name; ///< lives as long as the world.
  int32_t table;
  int32_t num_copies; ///< devices that hold it.
  int64_t row_begin, row_end;
  int64_t col_begin, col_end;
  void *weights;         ///< of the table's element type.
  int64_t weight_stride; ///< elements (quantized: bytes) from row to row.
  int32_t num_states;    ///< f32 state arrays.
  /// Of these the last ones, which have one value per row and not per element.
  int32_t num_row_states;
  float *states[3];        ///< null beyond num_states.
  int64_t state_stride[3]; ///< values from one row to the next.
  /// Whether all lie in memory of the host though the device has its own: of a
  /// shard in a lower tier.
  int32_t on_host;
} nsrt_shard_info;

int32_t nsrt_device_num_shards(const nsrt_device *);
int32_t nsrt_device_shard(nsrt_device *, int32_t index, nsrt_shard_info *);

/// The row cache of a shard in a lower tier, since the world was opened. Rows
/// of a batch count once, however many of its ids name them.
typedef struct nsrt_cache_figures {
  const char *name; ///< of the shard; lives as long as the world.
  int64_t places;   ///< rows it has room for; 0: the shard has no cache.
  int64_t batches;
  int64_t rows;         ///< that batches used.
  int64_t hits;         ///< of these, that were there; the others were fetched.
  int64_t written;      ///< rows written back.
  int64_t most_spilled; ///< most rows at a time beside the places.
  /// How long steps have waited for rows, those of the device's shards before
  /// this one once they are there.
  int64_t wait_nanoseconds;
} nsrt_cache_figures;

int32_t nsrt_device_cache(nsrt_device *, int32_t shard, nsrt_cache_figures *);

/// How fast rows come from the files of a directory, as shards in tier "ssd"
/// read them: measured on a file of so many bytes that is written there.
typedef struct nsrt_disk_rates {
  /// Of rows at random, of which as many are written back as are read; a
  /// write-back counts twice, as it reads blocks of the disk first.
  double transfers_per_second;
  double bytes_per_second; ///< of rows one after the other.
} nsrt_disk_rates;

int32_t nsrt_measure_disk(const char *directory, int64_t bytes,
                          nsrt_disk_rates *);

/// Computes results that lookups have deferred, and waits for the work of the
/// device. Call it before you read or write weights through nsrt_shard_info.
/// Fails with what was wrong with ids that were checked late (Open.h).
int32_t nsrt_device_settle(nsrt_device *);

/// Whether the device's stream is captured into a CUDA graph. Then functions
/// add their work to the graph: call nsrt_device_use_stream when a capture has
/// begun and when it has ended. The buffers of graphs are kept until the world
/// is closed.
int32_t nsrt_device_is_capturing(const nsrt_device *);

/// Sets the step size of updates in graphs, where the arguments of the update
/// would stay those of the capture. To be called before each replay.
int32_t nsrt_device_set_step(nsrt_device *, float learning_rate, int64_t step);

/// Makes the device refuse the next ids that it routes with this text: the step
/// fails on all ranks as it does for wrong ids. For drivers that find a mistake
/// before they can call a function.
int32_t nsrt_device_refuse(nsrt_device *, const char *text);

/// Says what the driver makes of the next ids that it routes; ranks that say
/// other numbers are told so there.
int32_t nsrt_device_note_purpose(nsrt_device *, int64_t purpose);

/// Multiplies all gradients but those of sample weights by `scale`, 1 at first.
/// 1 / ranks makes the sum over ranks a mean.
int32_t nsrt_device_set_gradient_scale(nsrt_device *, float scale);

/// Learning rates of later updates by table, in place of their argument; a
/// table with a negative one stays as it is. Without rates (at first; count 0)
/// all tables have that of the argument. The same on all ranks.
int32_t nsrt_device_set_rates(nsrt_device *, const float *rates, int32_t count);

/// Gradients of these tables, in place of those of an earlier call, do not
/// travel in steps whose ids are routed from now on, but for those of lookups
/// with sample weights. Their rates are to be negative when such a step
/// updates. The same on all ranks, which is checked when ids are routed; and in
/// all steps of one update.
int32_t nsrt_device_freeze(nsrt_device *, const int32_t *tables, int32_t count);

/// With 1, nsrt_update keeps the gradients of its step, and tables stay as they
/// are, until an update without this (0, at first) or nsrt_device_update_kept
/// applies those of all steps since: each row has one update, by the sum of its
/// gradients. To be set before the gradients of a step are packed, on all ranks
/// alike. They take memory until then.
int32_t nsrt_device_keep_gradients(nsrt_device *, int32_t keep);
/// Does nothing if nothing is kept.
int32_t nsrt_device_update_kept(nsrt_device *, float learning_rate,
                                int64_t step);
int32_t nsrt_device_drop_kept(nsrt_device *);

/// Averages the weights and optimizer states of copies that drift (sync_every)
/// now, so that all copies are alike: before tables are read or saved. Does
/// nothing if no copies drift. To be called on all ranks, none of which may be
/// in a step: a rank that sends ids instead is an error on all.
int32_t nsrt_device_average_copies(nsrt_device *);

/// The gradients of the rows of one shard, added up: [rows, width] of f32, in
/// memory of the device, with rows `stride` values apart.
typedef struct nsrt_gradient_sums {
  int32_t shard; ///< of the device.
  const float *sums;
  int64_t rows, width, stride;
} nsrt_gradient_sums;

/// Prepares the update by the kept gradients, to which none can be added from
/// then on, and gives their sums for shards that train: of several copies, one
/// device has them. `sums` has room for nsrt_device_num_shards; `count` gets
/// their number. They are valid until the update, or until all is dropped. To
/// be called on all ranks.
int32_t nsrt_device_kept_sums(nsrt_device *, nsrt_gradient_sums *sums,
                              int32_t *count);
/// Multiplies the gradients of the prepared update, if there is one.
int32_t nsrt_device_scale_kept(nsrt_device *, float scale);

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Runs function `name` of the device's program in this thread. Functions are
/// invoked on all devices, each on a thread of its own, in the same order. If a
/// rank returns without sending what another waits for, the step fails. Returns
/// nsrt_device_status. If the function ran, its results are valid to free
/// whatever the status; if it did not run (unknown name), they are untouched.
int32_t nsrt_invoke(nsrt_device *, const char *name, void **args);

/// Lets the functions of a device of a GPU run in the order of `stream` (a
/// CUstream of its context), after what they have done so far. CPUs have none.
int32_t nsrt_device_use_stream(nsrt_device *, void *stream);

/// Memory of the device for the tensors that functions take, aligned to 64
/// bytes; null if there is none. On CPUs any memory will do.
void *nsrt_tensor_allocate(nsrt_device *, int64_t bytes);
/// Copies between memory of the host and of the device. Waits for the work of
/// the device.
int32_t nsrt_tensor_read(nsrt_device *, void *to, const void *tensor,
                         int64_t bytes);
int32_t nsrt_tensor_write(nsrt_device *, void *tensor, const void *from,
                          int64_t bytes);
/// Frees a tensor that a function returned, by the `allocated` of its
/// descriptor, or one of nsrt_tensor_allocate; null is allowed. Any thread may
/// call it, also after the world was closed. The memory is kept for the tensors
/// of the next functions; what they do not need for some hundred tensors goes
/// back to the system.
void nsrt_tensor_free(void *allocated);

/// Runs `name` on all devices, each in a thread of its own; args[r] are the
/// arguments on device r. Fails, and runs it on no device, while a device is in
/// another step. On failure nsrt_last_error gives the cause on the first rank
/// that failed, not on those that failed with it.
int32_t nsrt_invoke_all(nsrt_world *, const char *name, void ***args);

int32_t nsrt_device_rank(const nsrt_device *);
/// 1 if the device's group was aborted: no later step can succeed on it.
/// Ids out of range, for one, end a step but not the group.
int32_t nsrt_device_group_ended(const nsrt_device *);
/// 0 if the device's last step succeeded.
int32_t nsrt_device_status(const nsrt_device *);
/// Why the device's last step failed, "" if it did not. Valid until the
/// device's next step.
const char *nsrt_device_error(const nsrt_device *);

//===----------------------------------------------------------------------===//
// Figures for reports
//===----------------------------------------------------------------------===//

/// Phases of a step, in order: see nsrt_phase_name.
int32_t nsrt_num_phases(void);
/// "route", "ids_exchange", "lookup", ...; null if there is no such phase.
const char *nsrt_phase_name(int32_t phase);
/// The term of the planner's objective that a phase belongs to: "input",
/// "forward", ...
const char *nsrt_phase_term(int32_t phase);
/// Wall time in ms that the device's calling thread has spent in a phase
/// since the world was opened or nsrt_device_reset_phases; waiting for other
/// devices counts in the *_exchange phases.
double nsrt_device_phase_ms(const nsrt_device *, int32_t phase);
/// Bytes the device has sent to other devices in a phase in the same time.
int64_t nsrt_device_phase_bytes(const nsrt_device *, int32_t phase);
void nsrt_device_reset_phases(nsrt_device *);

/// Kinds of memory for nsrt_device_memory_bytes. Weights and state include
/// the padding of rows; buffers is the peak of the step buffers.
enum {
  NSRT_MEMORY_WEIGHTS = 0,
  NSRT_MEMORY_STATE = 1,
  NSRT_MEMORY_BUFFERS = 2
};
int64_t nsrt_device_memory_bytes(const nsrt_device *, int32_t kind);

/// What step buffers are for (BufferKind), in order.
int32_t nsrt_num_buffer_kinds(void);
/// "places", "sent_ids", ...; null if there is no such kind.
const char *nsrt_buffer_kind_name(int32_t kind);
/// Bytes of all buffers of a kind that the device's steps took since the world
/// was opened, memory that was used again included.
int64_t nsrt_device_buffer_bytes(const nsrt_device *, int32_t kind);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_RUNTIME_DRIVERABI_H
