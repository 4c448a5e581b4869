//===- ClosestName.h - Suggestions by edit distance -------------*- C++ -*-===//

#ifndef NEUROSHARD_SUPPORT_CLOSESTNAME_H
#define NEUROSHARD_SUPPORT_CLOSESTNAME_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Levenshtein's distance: characters to insert, drop and replace.
inline size_t editDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j)
    row[j] = j;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      size_t replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The first name that `text` of three or more characters begins; else the one
/// that it is closest to, the first of several. Empty if more than a third of
/// it is wrong, or if it has more than 100 characters.
inline std::string closestName(std::string_view text,
                               const std::vector<std::string> &names) {
  constexpr size_t kMostCharacters = 100, kLeastOfBeginning = 3;
  std::string best;
  size_t least = text.size() / 3 + 1;
  if (text.size() > kMostCharacters)
    return best;
  if (text.size() >= kLeastOfBeginning)
    for (const std::string &name : names)
      if (name.starts_with(text))
        return name;
  for (const std::string &name : names)
    if (size_t distance = editDistance(text, name); distance < least) {
      least = distance;
      best = name;
    }
  return best;
}

/// "; did you mean 'name'?" for closestName(), or nothing.
inline std::string didYouMean(std::string_view text,
                              const std::vector<std::string> &names) {
  std::string name = closestName(text, names);
  return name.empty() ? "" : "; did you mean '" + name + "'?";
}

} // namespace neuroshard

#endif // NEUROSHARD_SUPPORT_CLOSESTNAME_H
