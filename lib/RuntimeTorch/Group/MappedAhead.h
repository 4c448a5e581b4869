//===- MappedAhead.h - Ranks that drop what was mapped ahead ----*- C++ -*-===//
//
// Ids of coming steps become rows ahead of them, and what a step turns out not
// to be as expected is dropped, by all ranks alike. A rank that drops it alone
// would ask the others for other rows, while they wait for its gradients. So it
// tells them, and one that has begun the step ends the group.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_MAPPEDAHEAD_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_MAPPEDAHEAD_H

#include "GroupWatch.h"

#include <cstdint>
#include <memory>
#include <string>

namespace neuroshard::runtime {

/// What a rank does with the lookups that were mapped ahead, which all ranks
/// number alike.
class MappedAhead {
public:
  /// `topic`: of the exchanges of these maps, on all ranks.
  MappedAhead(std::shared_ptr<GroupWatch> watch, std::string topic, int rank);

  /// A step has begun with a lookup.
  void keep(int64_t lookup);
  /// Lookups from this one on are dropped. `tells`: the others learn it.
  void drop(int64_t lookup, bool tells);

private:
  struct State;

  std::shared_ptr<GroupWatch> watch;
  std::string topic;
  int rank;
  std::shared_ptr<State> state; ///< that the judge has, too.
  std::shared_ptr<GroupWatch::Judge> judge;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_MAPPEDAHEAD_H
