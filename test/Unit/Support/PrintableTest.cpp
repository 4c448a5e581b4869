//===- PrintableTest.cpp - Control characters become escapes --------------===//

#include "neuroshard/Support/Printable.h"

#include <gtest/gtest.h>

using namespace neuroshard;
using namespace std::string_literals;

namespace {

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\x1b[31m\0\x07\n\x7f"s),
            "a\\x1b[31m\\x00\\x07\\x0a\\x7f");
  // U+009B begins a sequence of a terminal as ESC [ does.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");
}

TEST(Printable, ControlsOfDirectionsAreEscaped) {
  for (auto [code, escape] : {std::pair("\xd8\x9c", "\\u061c"),
                              {"\xe2\x80\x8e", "\\u200e"},
                              {"\xe2\x80\x8f", "\\u200f"},
                              {"\xe2\x80\xa8", "\\u2028"},
                              {"\xe2\x80\xae", "\\u202e"},
                              {"\xe2\x81\xa6", "\\u2066"},
                              {"\xe2\x81\xa9", "\\u2069"}})
    EXPECT_EQ(printable("a" + std::string(code) + "b"),
              "a" + std::string(escape) + "b");
  // Neighbours, and texts that are cut off.
  for (std::string text : {"\xd8\x9d", "\xe2\x80\x8d", "\xe2\x80\xaf",
                           "\xe2\x81\xa5", "\xe2\x81\xaa", "\xe2\x80", "\xd8"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, LongWordsOfErrorsAreShortened) {
  std::string name(5000, 'x');
  EXPECT_EQ(withShortWords("table '" + name + "' has no rows"),
            "table '" + name.substr(0, 119) + "..." + name.substr(0, 59) +
                "' has no rows");
  std::string usual = "table '" + name.substr(0, 190) + "' has no rows\n";
  EXPECT_EQ(withShortWords(usual), usual);
  std::string wide;
  for (int i = 0; i < 100; ++i)
    wide += "\xe2\x82\xac";
  std::string shortened = withShortWords("a" + wide);
  EXPECT_EQ(shortened, "a" + wide.substr(0, 117) + "..." + wide.substr(0, 60));
  EXPECT_EQ(withShortWords(""), "");
}

TEST(Printable, OtherTextStays) {
  EXPECT_EQ(printable("user \xc3\xa4 \xe2\x82\xac \"~\\"),
            "user \xc3\xa4 \xe2\x82\xac \"~\\");
  EXPECT_EQ(printable("\xc2\xa0\xc2"), "\xc2\xa0\xc2");
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(printableLines("one\ntwo\r\x1b"), "one\ntwo\\x0d\\x1b");
}

} // namespace
