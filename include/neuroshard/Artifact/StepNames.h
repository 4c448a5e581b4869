//===- StepNames.h - Names of an artifact's step functions ------*- C++ -*-===//

#ifndef NEUROSHARD_ARTIFACT_STEPNAMES_H
#define NEUROSHARD_ARTIFACT_STEPNAMES_H

namespace neuroshard {

/// Takes the ids of a batch, returns what is in flight.
inline constexpr char kStartName[] = "embeddings_start";
/// Takes what is in flight, waits for the ids, looks rows up and starts to send
/// them; returns what is in flight then.
inline constexpr char kLookupName[] = "embeddings_lookup";
/// Takes what is in flight then, returns one tensor per lookup and, in
/// training, a context.
inline constexpr char kWaitName[] = "embeddings_wait";
/// As wait, with all results side by side in one tensor, [batch, sum of the
/// dims]. Only where there is one exchange, all lookups are pooled and their
/// results have one type.
inline constexpr char kJoinedWaitName[] = "embeddings_wait_joined";
/// Takes the context and one gradient per lookup and starts to send them;
/// returns the gradients of per-sample weights and what is in flight then.
inline constexpr char kGradientsName[] = "embeddings_gradients";
/// Takes what is in flight then, learning rate and step, waits for the
/// gradients and updates the tables. Before neuroshard-partition it does what
/// both do.
inline constexpr char kUpdateName[] = "embeddings_update";

/// All of them, in the order of a step.
inline constexpr const char *kStepNames[] = {kStartName,     kLookupName,
                                             kWaitName,      kJoinedWaitName,
                                             kGradientsName, kUpdateName};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_STEPNAMES_H
