//===- Sessions.h - The open sessions of this process ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_SESSIONS_H
#define NEUROSHARD_LIB_RUNTIMETORCH_SESSIONS_H

#include "RankSession.h"

#include <memory>
#include <string>

namespace neuroshard::runtime {

/// The open sessions of this process by name. findSession throws if there is
/// none of that name.
std::shared_ptr<RankSession> findSession(const std::string &name);
void addSession(const std::string &name, std::shared_ptr<RankSession> session);
void closeSession(const std::string &name);
/// Throws if no session has the name `from`, or one has the name `to`.
void renameSession(const std::string &from, const std::string &to);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_SESSIONS_H
