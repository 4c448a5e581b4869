//===- Hash.cpp - Hashes of an artifact's files ---------------------------===//

#include "Hash.h"

#include "neuroshard/Artifact/ArtifactFile.h"

#include <cstddef>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace neuroshard {

static std::string digitsOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (unsigned char byte : canonical.digest)
    for (int digit : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

std::string hashOf(std::string_view bytes) {
  return digitsOf(XXH3_128bits(bytes.data(), bytes.size()));
}

struct Hash::State {
  XXH3_state_t values;
};

Hash::Hash() : state(std::make_unique<State>()) {
  XXH3_128bits_reset(&state->values);
}

Hash::~Hash() = default;

void Hash::add(const void *bytes, int64_t count) {
  XXH3_128bits_update(&state->values, bytes, static_cast<size_t>(count));
}

std::string Hash::text() const {
  return digitsOf(XXH3_128bits_digest(&state->values));
}

} // namespace neuroshard
