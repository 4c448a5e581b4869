//===- Printable.h - Control characters as escapes --------------*- C++ -*-===//
///
/// \file
/// Names from outside may have control characters, which a terminal obeys.
/// Messages show them as escapes: \x1b for ESC. Python's rule is the same
/// (python/neuroshard/_printable.py).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_PRINTABLE_H
#define NEUROSHARD_SUPPORT_PRINTABLE_H

#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard {

/// The text with escapes for control characters, also those of UTF-8 from
/// U+0080 to U+009F. `isKept` says which of one byte stay.
template <typename IsKept>
std::string withEscapes(std::string_view text, const IsKept &isKept) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    auto next =
        static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    bool isLatin = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (isLatin)
      byte = static_cast<unsigned char>(text[++i]);
    bool isControl = isLatin || byte < 0x20 || byte == 0x7f;
    if (!isControl || isKept(text[i])) {
      result += text[i];
      continue;
    }
    result += "\\x";
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

/// A name or one line: no control character stays.
inline std::string printable(std::string_view text) {
  return withEscapes(text, [](char) { return false; });
}

/// Lines stay lines.
inline std::string printableLines(std::string_view text) {
  return withEscapes(text, [](char c) { return c == '\n'; });
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_PRINTABLE_H
