//===- neuroshard-c/Planner.h - Planning from JSON to JSON --------*- C -*-===//
///
/// \file
/// The planner for programs in C or any language that calls C: a workload in, a
/// plan out, both in the JSON of docs/formats.md. libneuroshard_planner_c.so
/// needs neither MLIR nor LLVM.
///
/// Every function may be called from any thread, several at a time. None throws
/// or ends the program. Texts given are UTF-8 with a zero at the end, and are
/// the caller's; texts returned are the caller's too, to be given to
/// neuroshardStringFree().
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_C_PLANNER_H
#define NEUROSHARD_C_PLANNER_H

#include <stdint.h>

#if defined(__GNUC__)
#define NEUROSHARD_C_EXPORTED __attribute__((visibility("default")))
#else
#define NEUROSHARD_C_EXPORTED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Status of a call. Later versions keep these numbers and may add others.
enum {
  NEUROSHARD_OK = 0,
  /// The input is valid, but no plan is feasible: a limit binds.
  NEUROSHARD_NO_PLAN = 1,
  /// Wrong JSON, unknown fields, values out of range, null pointers, a cost
  /// model that does not exist; a plan that breaks a rule.
  NEUROSHARD_BAD_INPUT = 2,
  /// Out of memory, or a fault of this library.
  NEUROSHARD_INTERNAL_ERROR = 3
};

/// Progress of a search.
typedef struct NeuroShardProgress {
  /// Size of this struct in the library: later versions add fields.
  uint64_t structBytes;
  /// Since the start.
  double seconds;
  /// Of the search, in [0, 1]; an estimate.
  double share;
  /// Predicted milliseconds per step of the best plan so far.
  double bestCostMs;
  /// The current phase, for people; valid during the call.
  const char *phase;
} NeuroShardProgress;

/// Called several times a second by the thread that called neuroshardPlan().
/// Returning 0 ends the search as a deadline does: with the best plan so far.
typedef int32_t (*NeuroShardProgressCallback)(
    const NeuroShardProgress *progress, void *userData);

/// "0.1.0".
NEUROSHARD_C_EXPORTED const char *neuroshardVersion(void);

/// Frees a text that a function of this header returned; null is allowed.
NEUROSHARD_C_EXPORTED void neuroshardStringFree(char *text);

/// Decides where every shard of every table lies.
///
/// \param workloadJson  A workload (schema neuroshard.workload.v1).
/// \param optionsJson   An object, or null for all defaults. The fields are the
///     keys of include/neuroshard/Planner/SearchOptions.def, which says their
///     ranges, all optional: "algorithm", "cost_model", "objective", "seed",
///     "deadline_s", "evaluation_budget", ...; "previous" is a plan. Besides
///     there are "target", and "topology", such as "8xH200", for a workload
///     without one.
/// \param progress      Called meanwhile, with `userData`; may be null.
/// \param resultJson    Set to what `neuroshard plan --json` prints: "cost_ms",
///     "lower_bound_ms", "breakdown", "memory", "buffers", ... and "plan"
///     (schema neuroshard.plan.v1); null when there is no plan.
/// \param errorJson     Set to an object with "limit", "message", "details" and
///     "advice" when the call fails, to null otherwise. May be null.
/// \return NEUROSHARD_OK or another of the numbers above.
///
/// Without "deadline_s" the plan depends on nothing but workload and options:
/// not on "threads" (0, the default, takes as many as the machine runs at
/// once).
NEUROSHARD_C_EXPORTED int32_t
neuroshardPlan(const char *workloadJson, const char *optionsJson,
               NeuroShardProgressCallback progress, void *userData,
               char **resultJson, char **errorJson);

/// Checks that a plan (schema neuroshard.plan.v1) follows every rule and fits
/// the memory of a workload with a topology. If not, `errorJson` (may be null)
/// is set as by neuroshardPlan(); "message" and "details" have everything that
/// is wrong.
NEUROSHARD_C_EXPORTED int32_t neuroshardVerifyPlan(const char *workloadJson,
                                                   const char *planJson,
                                                   char **errorJson);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_C_PLANNER_H
