//===- Diagnostics.h - Errors as values: where and what ---------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_DIAGNOSTICS_H
#define NEUROSHARD_MODEL_DIAGNOSTICS_H

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace neuroshard {

/// One thing that is wrong. `where` names the place (a path such as
/// "tables[3].rows", a shard, a device); `message` states the rule and what was
/// found, in lower case.
struct Diagnostic {
  std::string where;
  std::string message;

  /// "where: message", in one printable line.
  std::string str() const;
};

using Diagnostics = std::vector<Diagnostic>;

/// One diagnostic per line, no newline at the end.
std::string toString(const Diagnostics &diagnostics);

/// A value, or everything that kept it from being made.
template <typename T> using Expected = tl::expected<T, Diagnostics>;

/// A failed Expected with a single diagnostic.
inline tl::unexpected<Diagnostics> failure(std::string where,
                                           std::string message) {
  return tl::unexpected<Diagnostics>(
      Diagnostics{{std::move(where), std::move(message)}});
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_DIAGNOSTICS_H
