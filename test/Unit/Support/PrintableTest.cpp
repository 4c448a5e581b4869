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

TEST(Printable, OtherTextStays) {
  EXPECT_EQ(printable("user \xc3\xa4 \xe2\x82\xac \"~\\"),
            "user \xc3\xa4 \xe2\x82\xac \"~\\");
  EXPECT_EQ(printable("\xc2\xa0\xc2"), "\xc2\xa0\xc2");
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(printableLines("one\ntwo\r\x1b"), "one\ntwo\\x0d\\x1b");
}

} // namespace
