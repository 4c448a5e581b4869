//===- Sessions.cpp - The open sessions of this process -------------------===//

#include "Sessions.h"

#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <utility>

namespace neuroshard::runtime {

namespace {
struct Sessions {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<RankSession>> byName;
};

/// Never destroyed: sessions that are still open at the end of the process must
/// not be torn down after torch is.
Sessions &sessions() {
  static auto *all = new Sessions;
  return *all;
}
} // namespace

std::shared_ptr<RankSession> findSession(const std::string &name) {
  std::lock_guard lock(sessions().mutex);
  auto found = sessions().byName.find(name);
  TORCH_CHECK_VALUE(found != sessions().byName.end(),
                    "there is no open model named \"", name,
                    "\"; it was closed or never opened");
  return found->second;
}

void addSession(const std::string &name, std::shared_ptr<RankSession> session) {
  std::lock_guard lock(sessions().mutex);
  bool added = sessions().byName.emplace(name, std::move(session)).second;
  TORCH_CHECK_VALUE(added, "a model named \"", name, "\" is open already");
}

void closeSession(const std::string &name) {
  std::shared_ptr<RankSession> last; // closed after the lock is free
  std::lock_guard lock(sessions().mutex);
  auto found = sessions().byName.find(name);
  if (found == sessions().byName.end())
    return;
  last = std::move(found->second);
  sessions().byName.erase(found);
}

void renameSession(const std::string &from, const std::string &to) {
  addSession(to, findSession(from));
  closeSession(from);
}

} // namespace neuroshard::runtime
