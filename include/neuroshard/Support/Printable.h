//===- Printable.h - Control characters as escapes --------------*- C++ -*-===//
///
/// \file
/// Names from outside may have control characters, which a terminal obeys, and
/// controls of the direction of writing, with which a name looks like another.
/// Messages show them as escapes: \x1b for ESC, \u202e for the override from
/// right to left. Python's rule is the same (python/neuroshard/_printable.py).
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_PRINTABLE_H
#define NEUROSHARD_SUPPORT_PRINTABLE_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard {

/// The control of directions, or separator of lines, that begins at a byte of a
/// text, as its code point; 0: none does.
inline unsigned layoutControlAt(std::string_view text, size_t i) {
  auto byteAt = [&](size_t place) {
    return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U;
  };
  if (byteAt(i) == 0xd8 && byteAt(i + 1) == 0x9c)
    return 0x061c;
  unsigned second = byteAt(i + 1), third = byteAt(i + 2);
  if (byteAt(i) != 0xe2 || (second & 0xc0) != 0x80 || (third & 0xc0) != 0x80)
    return 0;
  unsigned code = 0x2000 | (second & 0x3f) << 6 | (third & 0x3f);
  bool isControl = code == 0x200e || code == 0x200f ||
                   (code >= 0x2028 && code <= 0x202e) ||
                   (code >= 0x2066 && code <= 0x2069);
  return isControl ? code : 0;
}

/// The text with escapes for control characters, also those of UTF-8 from
/// U+0080 to U+009F. `isKept` says which of one byte stay.
template <typename IsKept>
std::string withEscapes(std::string_view text, const IsKept &isKept) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (unsigned code = layoutControlAt(text, i)) {
      result += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4)
        result += kDigits[code >> shift & 15];
      i += code < 0x800 ? 1 : 2;
      continue;
    }
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

/// The text of an error with the middle of words of more than 200 bytes left
/// out: names and paths may be of any length.
inline std::string withShortWords(std::string_view text) {
  constexpr size_t kMost = 200, kBegin = 120, kEnd = 60;
  auto isInside = [](char c) { return (c & 0xc0) == 0x80; }; // of a character
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    if (word.size() > kMost) {
      size_t first = kBegin, last = word.size() - kEnd;
      while (first > 0 && isInside(word[first]))
        --first;
      while (last < word.size() && isInside(word[last]))
        ++last;
      result.append(word.substr(0, first)).append("...");
      word.remove_prefix(last);
    }
    result.append(word).append(text.substr(end, 1));
    begin = end + 1;
  }
  return result;
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_PRINTABLE_H
