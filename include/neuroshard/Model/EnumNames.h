//===- EnumNames.h - Enumerations by lists of names -------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_ENUMNAMES_H
#define NEUROSHARD_MODEL_ENUMNAMES_H

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace neuroshard {

/// The name of a value that counts from 0 in the order of `names`.
template <typename Enum, size_t N>
std::string_view nameOf(const std::array<std::string_view, N> &names,
                        Enum value) {
  size_t index = static_cast<size_t>(value);
  return index < N ? names[index] : "unknown";
}

/// The value with this name.
template <typename Enum, size_t N>
std::optional<Enum> valueOf(const std::array<std::string_view, N> &names,
                            std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ENUMNAMES_H
