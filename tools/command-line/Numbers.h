//===- Numbers.h - How command lines write numbers --------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_NUMBERS_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_NUMBERS_H

#include <charconv>
#include <cmath>
#include <string>
#include <system_error>
#include <type_traits>

namespace neuroshard {

/// Reads a number that is the whole text, decimal and finite, and that T holds.
template <typename T> bool readNumber(const std::string &text, T &value) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value))
      return false;
  return error == std::errc() && stop == end;
}

/// The error of a text that is no number of type T, or an empty one. Rewrites
/// whole numbers without leading zeros, which CLI11 would take for octal.
template <typename T> std::string normalizeNumber(std::string &text) {
  T value{};
  if (!readNumber(text, value)) {
    const char *expected = std::is_floating_point_v<T> ? "a number"
                           : std::is_signed_v<T>
                               ? "a whole number"
                               : "a whole number of at least 0";
    return std::string("expected ") + expected + ", got: " + text;
  }
  if constexpr (!std::is_floating_point_v<T>)
    text = std::to_string(value);
  return {};
}

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_NUMBERS_H
