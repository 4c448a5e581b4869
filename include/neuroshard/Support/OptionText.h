//===- OptionText.h - Pass options as text, checked -------------*- C++ -*-===//
///
/// \file
/// MLIR reads pass options from text such as "algorithm=size seed=7". It takes
/// the last of two values without a word, and 010 for 8.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_SUPPORT_OPTIONTEXT_H
#define NEUROSHARD_SUPPORT_OPTIONTEXT_H

#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/Printable.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

namespace neuroshard {

/// Takes the first option from the text: "key=value" or "key". Spaces inside
/// quotes and brackets belong to it. Empty if there is none.
inline std::string_view takeOption(std::string_view &text) {
  constexpr std::string_view kSpace = " \t\n", kOpening = "{[(",
                             kClosing = "}])";
  constexpr size_t npos = std::string_view::npos;
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  size_t end = 0;
  int depth = 0;
  for (char quote = 0; end < text.size(); ++end) {
    char c = text[end];
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (kOpening.find(c) != npos) {
      ++depth;
    } else if (kClosing.find(c) != npos) {
      --depth;
    } else if (depth <= 0 && kSpace.find(c) != npos) {
      break;
    }
  }
  std::string_view option = text.substr(0, end);
  text.remove_prefix(end);
  return option;
}

/// Whether a value is a whole number that LLVM takes for octal, hexadecimal or
/// binary: 010, 0x10, 0b10.
inline bool isOfOtherBase(std::string_view value) {
  if (value.starts_with('-') || value.starts_with('+'))
    value.remove_prefix(1);
  constexpr size_t npos = std::string_view::npos;
  return value.size() > 1 && value[0] == '0' &&
         std::string_view("0123456789xXbBoO").find(value[1]) != npos &&
         value.find_first_not_of("0123456789abcdefABCDEF", 2) == npos;
}

/// Whether a value is a decimal number that no f64 can hold, which LLVM takes
/// for infinity: 1e400.
inline bool isTooLarge(std::string_view value) {
  return !value.empty() &&
         value.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
         std::isinf(std::strtod(std::string(value).c_str(), nullptr));
}

/// The symbol that the value of an option names, with or without its '@'.
inline std::string_view symbolOption(std::string_view value) {
  return value.starts_with('@') ? value.substr(1) : value;
}

/// Why options are refused; "" if they are not.
inline std::string optionTextError(std::string_view text) {
  std::set<std::string_view> seen;
  while (true) {
    std::string_view option = takeOption(text);
    if (option.empty())
      return {};
    size_t assign = option.find('=');
    std::string_view key = option.substr(0, assign);
    std::string_view value =
        assign == std::string_view::npos ? "" : option.substr(assign + 1);
    std::string about = "option '" + printable(key) + "'";
    if (!seen.insert(key).second)
      return about + " is given twice; expected it once";
    if (isOfOtherBase(value))
      return about +
             ": expected a decimal number without leading zeros, "
             "got: '" +
             printable(value) + "'";
    if (isTooLarge(value))
      return about + ": expected a number up to 1.7e308, got: '" +
             printable(value) + "'";
  }
}

/// The error of MLIR's parser of options, with the name that an unknown one may
/// mean. `owner` is the pass or pipeline, `printed` its options as MLIR prints
/// them: "name{key=value key=value}". Lists that are empty are not among these.
inline std::string unknownOptionError(std::string_view owner,
                                      std::string_view error,
                                      std::string_view printed) {
  constexpr std::string_view kUnknown = "no such option ";
  size_t at = error.find(kUnknown);
  if (at == std::string_view::npos)
    return std::string(error);
  std::string_view key = error.substr(at + kUnknown.size());
  key = key.substr(0, key.find_first_of(" \n"));
  size_t begin = printed.find('{'), end = printed.rfind('}');
  std::vector<std::string> names;
  if (begin < end && end != std::string_view::npos) {
    std::string_view options = printed.substr(begin + 1, end - begin - 1);
    for (std::string_view option = takeOption(options); !option.empty();
         option = takeOption(options))
      names.emplace_back(option.substr(0, option.find('=')));
  }
  std::string suggestion = didYouMean(key, names);
  return "'" + std::string(owner) + "' has no option '" + printable(key) + "'" +
         (suggestion.empty() ? "; --help lists them" : suggestion);
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_OPTIONTEXT_H
