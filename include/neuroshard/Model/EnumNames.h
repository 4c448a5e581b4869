//===- EnumNames.h - Enumerations by lists of names -------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_ENUMNAMES_H
#define NEUROSHARD_MODEL_ENUMNAMES_H

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// The name of a value that counts from 0 in the order of `names`.
template <typename Enum>
std::string_view nameOf(std::span<const std::string_view> names, Enum value) {
  size_t index = static_cast<size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

/// The value with this name.
template <typename Enum>
std::optional<Enum> valueOf(std::span<const std::string_view> names,
                            std::string_view text) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

/// The names of an enumeration of the model for an error: "f32, f16 or bf16".
template <typename Enum> std::string choicesOf();

/// Written like one.
struct WireType;
template <> std::string choicesOf<WireType>();

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ENUMNAMES_H
