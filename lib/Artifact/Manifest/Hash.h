//===- Hash.h - Hashes of an artifact's files ------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_HASH_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_HASH_H

#include <cstdint>
#include <memory>
#include <string>

namespace neuroshard {

/// hashOf() of bytes that come piece by piece.
class Hash {
public:
  Hash();
  ~Hash();
  void add(const void *bytes, int64_t count);
  /// In 32 hexadecimal digits.
  std::string text() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_HASH_H
