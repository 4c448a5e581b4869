//===- ShortestText.h - Numbers as text that reads back ---------*- C++ -*-===//

#ifndef NEUROSHARD_SUPPORT_SHORTESTTEXT_H
#define NEUROSHARD_SUPPORT_SHORTESTTEXT_H

#include <array>
#include <charconv>
#include <string>
#include <system_error>

namespace neuroshard {

/// The shortest text that parses to this number.
template <typename T> std::string shortestText(T value) {
  std::array<char, 32> text;
  auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : "?";
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_SHORTESTTEXT_H
