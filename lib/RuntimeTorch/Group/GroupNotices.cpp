//===- GroupNotices.cpp - Notices of ranks that end a group ---------------===//
//
// A rank that departs from what others do gives a notice, by the group's store.
// Each rank judges it by what it does itself, in the watcher's thread, as its
// program may wait for the other one.
//
//===----------------------------------------------------------------------===//

#include "GroupWatch.h"

namespace neuroshard::runtime {

static std::string noticeOf(const std::string &topic) {
  return "notice " + topic;
}

void GroupWatch::listen(const std::string &topic,
                        const std::shared_ptr<Judge> &judge) {
  std::lock_guard lock(mutex);
  std::erase_if(topics, [](const Topic &one) { return one.judge.expired(); });
  topics.push_back({topic, judge, ""});
}

void GroupWatch::tell(const std::string &topic,
                      const std::string &notice) noexcept {
  try {
    store.set(key(noticeOf(topic).c_str()), notice);
    store.add(key("news"), 1);
  } catch (const std::exception &) {
    // Without a store nobody learns it; the watcher ends the group.
  }
}

void GroupWatch::readNotices() {
  std::vector<std::string> names;
  {
    std::lock_guard lock(mutex);
    for (const Topic &one : topics)
      names.push_back(one.name);
  }
  for (const std::string &name : names) {
    std::string notice = store.read(key(noticeOf(name).c_str()));
    std::lock_guard lock(mutex);
    for (Topic &one : topics)
      if (one.name == name)
        one.notice = notice;
  }
}

void GroupWatch::judgeNotices() {
  std::vector<Topic> now;
  {
    std::lock_guard lock(mutex);
    now = topics;
  }
  for (const Topic &one : now) {
    std::shared_ptr<Judge> judge = one.judge.lock();
    if (!judge || one.notice.empty())
      continue;
    if (std::string why = (*judge)(one.notice); !why.empty())
      return end(why);
  }
}

} // namespace neuroshard::runtime
