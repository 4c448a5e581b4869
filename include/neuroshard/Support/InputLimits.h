//===- InputLimits.h - Limits of files and JSON from outside ----*- C++ -*-===//
///
/// \file
/// Files are read as a whole, and the JSON library reads, copies and prints by
/// recursion: what is too large or nests without end would exhaust the memory
/// or the stack.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_INPUTLIMITS_H
#define NEUROSHARD_SUPPORT_INPUTLIMITS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace neuroshard {

/// Bytes of a file, or of a text of JSON. A workload of 100,000 tables has 50
/// MB, with all statistics 200 MB; a plan of 100,000 shards 15 MB.
inline constexpr uint64_t kMaxInputBytes = uint64_t{1} << 30;

/// Lists and objects inside each other that readers of JSON accept; files of
/// ours have fewer than ten.
inline constexpr int kMaxJsonNesting = 64;

/// What a reader says of a file or text that is too large.
inline std::string expectedSize() {
  return "expected at most " + std::to_string(kMaxInputBytes) + " bytes";
}

/// Whether `text`, if it is JSON, nests too deep.
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

/// Why readers refuse a text of JSON before they parse it; "" if they do not.
inline std::string jsonLimitError(std::string_view text) {
  if (text.size() > kMaxInputBytes)
    return expectedSize() + ", found " + std::to_string(text.size());
  if (isNestedTooDeep(text))
    return "expected lists and objects at most " +
           std::to_string(kMaxJsonNesting) + " deep inside each other";
  return {};
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_INPUTLIMITS_H
