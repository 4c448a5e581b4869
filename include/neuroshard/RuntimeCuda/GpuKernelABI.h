//===- GpuKernelABI.h - Arguments of generated GPU kernels ------*- C++ -*-===//
//
// The contract between the GPU module of a device program and the launcher of
// its kernels (lib/RuntimeCuda). Plain C, no dependency. All structs lie in
// device memory, in arrays that the launcher writes; all pointers in them are
// device pointers.
//
// Kernels and their parameters, in this order:
//
//   nsg_lookup(const nsg_lookup_task *tasks, const int32_t *task_of_block,
//              uint64_t *bad_id)
//   nsg_weight_gradient(const nsg_lookup_task *tasks,
//              const int32_t *task_of_block)
//   nsg_expand(const nsg_lookup_task *tasks, const int32_t *task_of_block,
//              const nsg_positions *positions)
//   nsg_ranges(const nsg_slot *slots, int32_t num_slots,
//              const nsg_sorted *sorted)
//   nsg_find_places(const nsg_cached_part *parts, int32_t num_parts,
//              const nsg_sorted *sorted)
//   nsg_partials(const nsg_slot *slots, int32_t num_slots,
//              const nsg_sorted *sorted)
//   nsg_update_<v>(const nsg_slot *slots, int32_t first_slot,
//              int32_t end_slot, const nsg_sorted *sorted), of the slots
//              [first_slot, end_slot), all with body v of nsg_update
//   nsg_reduce_<v>, nsg_apply_<v>: as nsg_update_<v>
//   nsg_update_by_sums_<v>: as nsg_update_<v>, of replicated slots
//   nsg_move_rows(const nsg_move *moves, int32_t num_moves)
//   nsg_move_scaled_rows: as nsg_move_rows
//   nsg_add_up(const nsg_bags *sets, int32_t num_sets)
//   nsg_check_offsets(const int64_t *offsets, int64_t bags,
//              uint64_t *first_bad)
//   nsg_trust_offsets(const int64_t *offsets, int64_t bags, int64_t num_ids,
//              uint64_t *bad, int64_t *trusted, float *sizes)
//   nsg_count_bags(const nsg_bucket *buckets, int32_t num_buckets,
//              uint64_t *bad_id)
//   nsg_pack_ids(const nsg_bucket *buckets, int32_t num_buckets)
//   nsg_add_values(float *out, const float *values, const int64_t *places,
//              int64_t first, int64_t count)
//   nsg_divide_values(float *values, int64_t count, float divisor)
//
// All have blocks of NSG_THREADS threads in x. A kernel exists only if the
// program needs it; <program>.gpu.json lists them. Those from nsg_move_rows on
// are in all: they move the values of an exchange, whatever the device has of
// the tables.
//
// Items and blocks. nsg_lookup, nsg_weight_gradient and nsg_expand run a task's
// items in blocks of their own: ceil(items / n) blocks, where n is
// items_per_block of the task's variant x items_per_group of the task
// (nsg_expand: NSG_EXPAND_ITEMS). Block b works for task t = task_of_block[b]
// on the items from (b - first block of t) x n on; the first block of t is
// tasks[t].first_block (lookup), .first_gradient_block (weight gradient) or
// .first_expand_block (expand). An item is a bag, or an id if the lookup is
// unpooled. Results do not depend on items_per_group.
//
// nsg_ranges has num_slots + 1 threads in ceil((num_slots + 1) / NSG_THREADS)
// blocks. nsg_find_places has a thread for each run, of which there are at most
// num_positions. nsg_partials runs any number of blocks, which share all
// chunks, and each body of nsg_update, nsg_reduce, nsg_apply and
// nsg_update_by_sums any number of blocks, which share the runs of its slots.
//
// nsg_move_rows runs the units of a move, rows x width, in blocks of its own
// with NSG_MOVE_UNITS each, from first_block on. nsg_move_scaled_rows, for
// moves in which a format has scales, has blocks with NSG_SCALED_ROWS rows
// each. nsg_add_up has a warp for each set.
//
// Ids are packed in three launches. nsg_count_bags writes how many ids of each
// bag a bucket has, nsg_add_up adds these up, and nsg_pack_ids writes the ids.
// Both run the bags of a bucket with `lanes` threads each, in blocks of its
// own, from first_block on. nsg_check_offsets lessens *first_bad, a number of a
// bag, to that of the first bag that ends before it begins or has 2^31 ids.
// nsg_trust_offsets copies the bags + 1 offsets to `trusted` if bad[0], what
// nsg_check_offsets has found, is all ones and they go from 0 to num_ids; else
// it sets all of them to 0, and in the second case bad[1] as well. If `sizes`
// is not null it gets the number of ids of each bag.
// nsg_add_values adds values[i] to out[places[i]], or to out[first + i] if
// places is null; no two places are the same.
//
// Long runs. A row with many ids in a batch would keep one warp busy long after
// all others are done. So nsg_partials sums each NSG_CHUNK positions of a run,
// counted from where it begins; the update adds up the positions that are left,
// and then these sums. A row's sum depends on its own gradients alone, so
// copies of a row on several devices keep the same bits. A chunk that begins at
// order[p] has number p / NSG_CHUNK, as no other chunk has.
//
// Caches of rows. Where rows of a shard are at places of a cache, lookups get
// places as ids, and updates rows, as row norms and sums are told by them. Once
// the rows are sorted nsg_find_places replaces the key of each by that of its
// place, of which one of its ids knows.
//
// Replicated tables. Where their row sums travel, nsg_reduce writes into
// `reduced` and `norms`, at the place of each row, the sum of its gradients and
// how many there are; nsg_update_by_sums then updates the rows that have some.
//
// Order of a training step: nsg_lookup; nsg_expand; stable radix sort of
// (keys, 0, 1, 2, ...) by key; distinct keys and the start of each run;
// nsg_ranges; nsg_find_places, if slots have caches of rows; and, with the
// gradients, nsg_weight_gradient, nsg_partials and
// nsg_update, or nsg_partials, nsg_reduce, exchange of norms, nsg_apply. Slots
// with the same bodies are neighbours, so that a launch takes all of them.
//
// Arithmetic is f32. A bag's rows are added in the order of its ids, a row's
// gradients in the order of their positions, but for long runs.
// The same input always gives the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIMECUDA_GPUKERNELABI_H
#define NEUROSHARD_RUNTIMECUDA_GPUKERNELABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NSG_VERSION 16
#define NSG_THREADS 256
/// Lanes of a warp.
#define NSG_WARP 32
#define NSG_EXPAND_ITEMS 32
/// Positions of a chunk; see nsg_partials.
#define NSG_CHUNK 256

/// Units of a block; see nsg_move_rows.
#define NSG_MOVE_UNITS 1024
/// Rows of a block; see nsg_move_scaled_rows.
#define NSG_SCALED_ROWS 32
/// The widest row of a move, so that places in a row fit into 32 bits.
#define NSG_WIDEST_MOVE (1 << 30)

/// Bits of the position in the word of a bad id; see nsg_lookup_task.ids. The
/// number of the task has the others.
#define NSG_BAD_ID_POSITION_BITS 40

/// nsg_lookup_task.flags, for kernels with one body for all lookups.
#define NSG_POOLED 1       /* items are bags; else ids */
#define NSG_MEAN 2         /* gradients are divided by the ids of the bag */
#define NSG_WEIGHTED 4     /* sample_weights are read */
#define NSG_FIXED 8        /* bags of `pooling` ids; offsets are not read */
#define NSG_ID64 16        /* ids are i64; else i32 */
#define NSG_PACKED_ID64 32 /* nsg_pack_ids writes i64; else i32 */

/// Formats of values that moves convert. From NSG_INT8 on, rows begin with a
/// scale in f32, at any address, and have bytes behind it.
#define NSG_F32 0
#define NSG_F16 1
#define NSG_BF16 2
#define NSG_INT8 3
#define NSG_FP8 4

/// One lookup on one slot, for the bags of one peer or of all.
typedef struct nsg_lookup_task {
  /// Rows of the slot, each padded to 16 bytes; 16-byte aligned.
  const void *weights;
  /// Row row_begin + r of the table is row r of the slot. An id outside
  /// [row_begin, row_begin + rows) is bad: it counts as row_begin, and
  /// *bad_id becomes min(*bad_id, t << NSG_BAD_ID_POSITION_BITS | position in
  /// ids), t: the number of the task. Bad ids update nothing.
  const void *ids;
  /// Bag b has the ids [offsets[b], offsets[b + 1]) of `ids`. Not read if
  /// unpooled, where item i is id first_id + i, or fixed, where bag b has the
  /// ids from first_id + b * pooling up to first_id + (b + 1) * pooling.
  const int64_t *offsets;
  /// By position in `ids`, or null.
  const float *sample_weights;
  /// Item i is written to out + i * out_stride (elements of the variant's
  /// output type). Bodies store 16 bytes at a time where rows are whole pieces
  /// of 16 bytes: out and the stride then are aligned so; else anywhere.
  void *out;
  int64_t out_stride;
  int64_t items;
  int64_t rows;
  int64_t row_begin;
  int64_t pooling;
  /// Which body of nsg_lookup, as <program>.gpu.json numbers them.
  int32_t variant;
  int32_t first_block;

  /// nsg_expand: id j of the task is position position_begin + j.
  int64_t position_begin;
  /// Row r of the slot has the key key_begin + r.
  int64_t key_begin;
  /// Gradient of item i: f32, from element gradient_begin + i *
  /// gradient_stride of the gradients on. 16-byte aligned, as is the stride, if
  /// the dim is a multiple of four; else anywhere.
  int64_t gradient_begin;
  int64_t gradient_stride;
  int32_t flags;
  int32_t first_expand_block;

  /// nsg_weight_gradient: of each id j of item i, weight_gradient[j] = sum over
  /// columns of weight x gradients[gradient_begin + i * gradient_stride +
  /// column], divided by the item's ids if the lookup is a mean.
  const float *gradients;
  float *weight_gradient;
  int32_t gradient_variant;
  int32_t first_gradient_block;
  /// Unpooled and fixed: see `offsets`.
  int64_t first_id;
  /// Items that a group of lanes takes one after another, at least 1. Of the
  /// items of a block group g takes g, g + items_per_block, ...
  int32_t items_per_group;
  int32_t reserved;

  /// An id that updates nothing; -1: none.
  int64_t padding;
} nsg_lookup_task;

/// The arrays that nsg_expand writes, by position. Positions of no task must
/// hold a key of no row, at least the key_end of the last slot.
typedef struct nsg_positions {
  /// u32 or u64: key_bytes.
  void *keys;
  /// Offset of the gradient, in elements of f32.
  int64_t *gradient_offsets;
  /// Factor of the gradient, or null if all are 1: sample weight, divided by
  /// the ids of the bag if the lookup is a mean. Null unless some lookup is
  /// weighted or a mean.
  float *factors;
  int32_t key_bytes;
  int32_t reserved;
} nsg_positions;

/// The sorted positions, as the update kernels read them. nsg_update_by_sums
/// reads run_begin alone.
typedef struct nsg_sorted {
  /// Distinct keys in ascending order, u32 or u64: key_bytes; from
  /// nsg_find_places on those of places, in the order of the rows.
  void *keys;
  /// Run u is order[starts[u]] ... order[starts[u + 1] - 1]. nsg_ranges writes
  /// starts[*num_runs] = num_positions.
  int32_t *starts;
  /// Positions, by key and then ascending.
  const int32_t *order;
  const int32_t *num_runs;
  int64_t num_positions;
  const int64_t *gradient_offsets;
  const float *factors; /* null: all 1 */
  const float *gradients;
  /// nsg_ranges writes [num_slots + 1]: slot s has the runs [run_begin[s],
  /// run_begin[s + 1]). Of nsg_update_by_sums the "runs" are rows, and the
  /// launcher writes them.
  int32_t *run_begin;
  int32_t key_bytes;
  float one; /* 1: what kernels read where factors is null */
  /// Row c, from element c * partial_stride on, is the sum of chunk c, if there
  /// is one; num_positions / NSG_CHUNK rows of the largest dim of a slot,
  /// aligned to 16 bytes. Null: runs are added up from gradients alone,
  /// and nsg_partials is not launched.
  float *partials;
  int64_t partial_stride;
} nsg_sorted;

/// The positions of ids of a slot with a cache of rows.
typedef struct nsg_cached_part {
  /// Of the row of the id at position_begin + i: its place, i32 or i64.
  const void *places;
  int64_t position_begin;
  int64_t position_end;
  /// Place p has the key key_begin + p.
  int64_t key_begin;
  int32_t id_bytes; ///< of a place.
  int32_t reserved;
} nsg_cached_part;

/// One slot, as the update sees it. Slots come in the order of their keys.
typedef struct nsg_slot {
  /// As in KernelABI.h.
  void *weights;
  float *state0;
  float *state1;
  float *state2;
  /// Keys [key_begin, key_end) are rows 0, 1, ... of the slot.
  int64_t key_begin;
  int64_t key_end;
  /// step_size, kept, seed, first, second, step and history of
  /// nsrt_update_kernel, one after the other. In device memory, so that a
  /// captured graph can be replayed with others.
  const float *step_size;
  /// nsg_reduce writes, nsg_apply reads: `reduced` (f32, padded rows) and
  /// `norms` of nsrt_reduce_kernel, by run of the slot. With a body for the
  /// sums of all rows, nsg_reduce writes sums and numbers of gradients by row,
  /// and nsg_update_by_sums reads them: rows without gradients are not updated.
  float *reduced;
  float *norms;
  /// Which body of nsg_partials; -1: none.
  int32_t partial_variant;
  int32_t reserved;
} nsg_slot;

/// Rows in memory, `stride` bytes apart.
typedef struct nsg_rows {
  /// The first value that is read, or, of a target, where its row begins.
  const void *first;
  int64_t stride;
  /// Bytes from the scale of a row to the value that `first` is in it; not read
  /// of a target, and without a scale.
  int64_t scale;
} nsg_rows;

/// Copies rows, or computes them: row i of the target is
/// round((source[i] + addends[0][i] + ...) / divisors[i] * scale).
/// No move of a launch reads or writes what another one writes.
typedef struct nsg_move {
  nsg_rows source;
  nsg_rows target;
  /// Row i is row source_places[i] - first_place of the source, or
  /// target_places[i] - first_place of the target; null: row i.
  const int64_t *source_places;
  const int64_t *target_places;
  int64_t first_place;
  /// [num_addends], of the type and the places of the source.
  const nsg_rows *addends;
  /// [rows], where 0 divides nothing; or null.
  const float *divisors;
  int64_t rows;
  /// Units of a row, at most NSG_WIDEST_MOVE but for rows with scales.
  int64_t width;
  /// Copies: bytes of a unit, 1, 2, 4, 8 or 16, of which pointers and strides
  /// are multiples. 0: units are values, computed in f32.
  int32_t unit_bytes;
  int32_t num_addends;
  int32_t source_type;
  int32_t target_type;
  float scale;
  int32_t first_block;
} nsg_move;

/// offsets[b] becomes the sum of the lengths before bag b, [bags + 1].
typedef struct nsg_bags {
  const int32_t *lengths;
  int64_t *offsets;
  int64_t bags;
  int64_t *total; /* gets the sum of all lengths, too; or null */
} nsg_bags;

/// The ids of one lookup of a batch whose rows lie in a range, but for padding.
typedef struct nsg_bucket {
  const void *ids; /* of the whole input, i32 or i64 */
  /// Bag b has the ids [offsets[b], offsets[b + 1]).
  const int64_t *offsets;
  const float *sample_weights; /* by position in ids */
  int64_t num_ids;             /* of the input */
  int64_t bags;
  int64_t row_begin;
  int64_t rows;
  int64_t padding; /* an id that is left out; -1: none */
  /// 0, or the rows of the table, and then of an id out of range *bad_id
  /// becomes min(*bad_id, lookup << NSG_BAD_ID_POSITION_BITS | position in
  /// ids).
  int64_t checked_rows;
  int64_t lookup;
  /// nsg_count_bags writes the bucket's ids of each bag, [bags].
  int32_t *lengths;
  /// nsg_pack_ids writes, unless null, all ids of each bag but padding, [bags].
  float *bag_counts;
  /// nsg_pack_ids reads where the ids of each bag are written, [bags + 1], and
  /// writes rows, counted from row_begin; unless null,
  /// their sample weights and positions.
  const int64_t *first;
  void *packed_ids;
  float *packed_weights;
  int64_t *places;
  int32_t flags; /* NSG_ID64, NSG_PACKED_ID64 */
  int32_t lanes; /* of a bag: 1 or NSG_WARP */
  int32_t first_block;
  int32_t reserved;
} nsg_bucket;

#ifdef __cplusplus
}
static_assert(sizeof(nsg_lookup_task) == 176, "generated code has the layout");
static_assert(sizeof(nsg_positions) == 32, "generated code has the layout");
static_assert(sizeof(nsg_sorted) == 96, "generated code has the layout");
static_assert(sizeof(nsg_cached_part) == 40, "generated code has the layout");
static_assert(sizeof(nsg_slot) == 80, "generated code has the layout");
static_assert(sizeof(nsg_rows) == 24, "generated code has the layout");
static_assert(sizeof(nsg_move) == 128, "generated code has the layout");
static_assert(sizeof(nsg_bags) == 32, "generated code has the layout");
static_assert(sizeof(nsg_bucket) == 144, "generated code has the layout");
#endif

#endif // NEUROSHARD_RUNTIMECUDA_GPUKERNELABI_H
