//===- UpperCase.h - ASCII text in upper case -------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_MODEL_UPPERCASE_H
#define NEUROSHARD_LIB_MODEL_UPPERCASE_H

#include <algorithm>
#include <string>
#include <string_view>

namespace neuroshard {

/// To compare names of device classes and nodes, whose case does not count.
inline std::string inUpperCase(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  });
  return upper;
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_MODEL_UPPERCASE_H
