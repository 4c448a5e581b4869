//===- TokenMutator.cpp - Changes texts token by token --------------------===//

#include "TokenMutator.h"

#include "Fuzz.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace neuroshard;
using namespace neuroshard::fuzz;

namespace {

constexpr std::string_view kPartMark = "// -----";

/// Numbers at which types and limits end.
constexpr std::array<std::string_view, 22> kNumbers = {
    "0",          "1",
    "2",          "3",
    "7",          "64",
    "256",        "65536",
    "65537",      "1048577",
    "2147483647", "2147483648",
    "4294967296", "281474976710657",
    "-1",         "-9223372036854775808",
    "1.0e300",    "9223372036854775807",
    "0.5",        "18446744073709551616",
    "nan",        "9007199254740993"};

enum class Kind { Number, Name, Sigil, Text, Space, Other };

struct Token {
  Kind kind;
  std::string text;
};

bool isNamePart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
         c == '$';
}

Kind kindOf(char c) {
  if (std::isdigit(static_cast<unsigned char>(c)))
    return Kind::Number;
  if (std::isalpha(static_cast<unsigned char>(c)) || c == '_')
    return Kind::Name;
  if (c == '%' || c == '@' || c == '!' || c == '#' || c == '^')
    return Kind::Sigil;
  if (c == '"')
    return Kind::Text;
  if (c == ' ' || c == '\t')
    return Kind::Space;
  return Kind::Other;
}

size_t endOf(Kind kind, std::string_view text, size_t begin) {
  size_t end = begin + 1;
  auto skip = [&](auto holds) {
    while (end < text.size() && holds(text[end]))
      ++end;
  };
  if (kind == Kind::Number)
    skip([](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
  else if (kind == Kind::Name || kind == Kind::Sigil)
    skip(isNamePart);
  else if (kind == Kind::Space)
    skip([](char c) { return kindOf(c) == Kind::Space; });
  else if (kind == Kind::Text)
    end = std::min(text.find('"', end), text.size() - 1) + 1;
  return end;
}

std::vector<Token> tokensOf(std::string_view text) {
  std::vector<Token> tokens;
  for (size_t begin = 0; begin < text.size();) {
    Kind kind = kindOf(text[begin]);
    size_t end = endOf(kind, text, begin);
    tokens.push_back({kind, std::string(text.substr(begin, end - begin))});
    begin = end;
  }
  return tokens;
}

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

class TextChanger {
public:
  explicit TextChanger(unsigned seed) : random(seed) {}

  std::string change(std::string_view text) {
    std::string changed = onePart(text);
    for (size_t changes = 1 + below(4); changes > 0 && !changed.empty();
         --changes)
      changed = below(4) ? changeTokens(changed) : changeLines(changed);
    return changed;
  }

  size_t below(size_t count) { return random() % count; }

private:
  std::string onePart(std::string_view text);
  std::string changeTokens(std::string_view text);
  std::string changeLines(std::string_view text);

  std::minstd_rand random;
};

std::string TextChanger::onePart(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t mark; (mark = text.find(kPartMark)) != text.npos;) {
    parts.push_back(text.substr(0, mark));
    text.remove_prefix(mark + kPartMark.size());
  }
  parts.push_back(text);
  return std::string(parts[below(parts.size())]);
}

std::string TextChanger::changeTokens(std::string_view text) {
  std::vector<Token> tokens = tokensOf(text);
  std::vector<size_t> others;
  size_t at = below(tokens.size());
  while (at + 1 < tokens.size() && tokens[at].kind == Kind::Space)
    ++at;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].kind == tokens[at].kind)
      others.push_back(i);
  Token &other = tokens[others[below(others.size())]];
  switch (below(8)) {
  case 0:
    tokens[at].text.clear();
    break;
  case 1:
    tokens[at].text += " " + tokens[at].text;
    break;
  case 2:
    std::swap(tokens[at].text, other.text);
    break;
  default:
    if (tokens[at].kind == Kind::Number && below(2))
      tokens[at].text = kNumbers[below(kNumbers.size())];
    else
      tokens[at].text = other.text;
  }
  std::string result;
  for (const Token &token : tokens)
    result += token.text;
  return result;
}

std::string TextChanger::changeLines(std::string_view text) {
  std::vector<std::string> lines = linesOf(text);
  size_t at = below(lines.size()), other = below(lines.size());
  switch (below(3)) {
  case 0:
    lines[at].clear();
    break;
  case 1:
    lines[at] += lines[other];
    break;
  default:
    std::swap(lines[at], lines[other]);
  }
  std::string result;
  for (const std::string &line : lines)
    result += line;
  return result;
}

} // namespace

size_t neuroshard::fuzz::mutateTokens(uint8_t *data, size_t size,
                                      size_t maxSize, unsigned seed) {
  TextChanger changer(seed);
  if (size == 0 || changer.below(16) == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  return replaceInput(changer.change(textOf(data, size)), data, size, maxSize);
}
