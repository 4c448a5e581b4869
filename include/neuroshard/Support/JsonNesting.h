//===- JsonNesting.h - Limit of the depth of JSON ---------------*- C++ -*-===//
///
/// \file
/// The JSON library reads, copies and prints by recursion, so a text from
/// outside that nests without end would overflow the stack.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_JSONNESTING_H
#define NEUROSHARD_SUPPORT_JSONNESTING_H

#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard {

/// Lists and objects inside each other that readers of JSON accept; files of
/// ours have fewer than ten.
inline constexpr int kMaxJsonNesting = 64;

/// Whether `text`, if it is JSON, nests deeper than that.
constexpr bool isNestedTooDeep(std::string_view text) {
  int depth = 0;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isInString && c == '\\')
      ++i;
    else if (c == '"')
      isInString = !isInString;
    else if (!isInString && (c == '[' || c == '{') && ++depth > kMaxJsonNesting)
      return true;
    else if (!isInString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// What a reader says of such a text.
inline std::string expectedNesting() {
  return "expected lists and objects at most " +
         std::to_string(kMaxJsonNesting) + " deep inside each other";
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_JSONNESTING_H
