//===- MappedAhead.cpp - Ranks that drop what was mapped ahead ------------===//

#include "MappedAhead.h"

#include <atomic>
#include <sstream>
#include <utility>

namespace neuroshard::runtime {

struct MappedAhead::State {
  std::atomic<int64_t> kept{-1}; ///< the last lookup.
  std::atomic<int64_t> drops{0}; ///< so far.
};

MappedAhead::MappedAhead(std::shared_ptr<GroupWatch> groupWatch,
                         std::string topicName, int ownRank)
    : watch(std::move(groupWatch)), topic(std::move(topicName)), rank(ownRank),
      state(std::make_shared<State>()) {
  auto judgeDrop = [state = state,
                    rank = rank](const std::string &notice) -> std::string {
    int64_t drops = 0, lookup = 0, other = 0;
    std::istringstream(notice) >> drops >> lookup >> other;
    if (state->drops >= drops || state->kept < lookup)
      return "";
    return "rank " + std::to_string(other) +
           " does not begin its step as its ids were mapped ahead, and rank " +
           std::to_string(rank) +
           " does; with dynamic ids under pipeline() all ranks must change "
           "between training and lookups without it, call the module with "
           "other ids than the loader's, or not call it, in the same steps";
  };
  judge = std::make_shared<GroupWatch::Judge>(judgeDrop);
  watch->listen(topic, judge);
}

void MappedAhead::keep(int64_t lookup) { state->kept = lookup; }

void MappedAhead::drop(int64_t lookup, bool tells) {
  int64_t drops = ++state->drops;
  if (tells)
    watch->tell(topic, std::to_string(drops) + " " + std::to_string(lookup) +
                           " " + std::to_string(rank));
}

} // namespace neuroshard::runtime
