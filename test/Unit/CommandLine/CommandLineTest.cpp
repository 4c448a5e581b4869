//===- CommandLineTest.cpp - Values, refusals and exit codes --------------===//

#include "CommandLine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

using namespace neuroshard;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Values {
  int count = 3;
  uint64_t seed = 1;
  double share = 0.5;
  std::vector<int> devices = {2, 4};
  std::string file;
  bool train = false;
};

/// The exit code; what was printed goes to `printed`.
int run(CommandLine &line, std::vector<std::string> words,
        std::string &printed) {
  words.insert(words.begin(), "tool");
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  int code = line.run(static_cast<int>(arguments.size()), arguments.data());
  printed = testing::internal::GetCapturedStdout() +
            testing::internal::GetCapturedStderr();
  return code;
}

int runWith(std::vector<std::string> words, Values &values,
            std::string &printed) {
  CommandLine line("tool", "A tool");
  Command program = line.program();
  program.add("file", values.file).required();
  program.add("--count", values.count, "how many").range(1, 10);
  program.add("--seed", values.seed);
  program.add("--share", values.share).range(0.0, 1.0);
  program.add("--devices", values.devices).commas();
  program.addFlag("--train", values.train, "also train");
  program.action([] { return Expected<void>(); });
  return run(line, std::move(words), printed);
}

std::string refused(const std::string &option, const std::string &value) {
  Values values;
  std::string printed;
  EXPECT_EQ(runWith({"file", option, value}, values, printed), 1);
  return printed;
}

TEST(CommandLineTest, EmptyValuesBetweenCommasAreRefused) {
  for (const char *value : {"1,", ",1", "1,,8"})
    EXPECT_EQ(refused("--devices", value),
              std::string("tool: --devices: expected values with a comma "
                          "between each two, got: '") +
                  value + "'\n");
  Values values;
  std::string printed;
  EXPECT_EQ(runWith({"file", "--devices=1,8,"}, values, printed), 1);
  EXPECT_THAT(printed, HasSubstr("got: '1,8,'"));
  EXPECT_EQ(runWith({"a,,b", "--devices", "1,8", "2"}, values, printed), 0)
      << printed;
}

TEST(CommandLineTest, ValuesAreRead) {
  Values values;
  std::string printed;
  ASSERT_EQ(runWith({"a.json", "--count", "7", "--seed", "18446744073709551615",
                     "--share", "1e-3", "--devices", "1,8", "--train"},
                    values, printed),
            0)
      << printed;
  EXPECT_EQ(values.file, "a.json");
  EXPECT_EQ(values.count, 7);
  EXPECT_EQ(values.seed, UINT64_MAX);
  EXPECT_EQ(values.share, 1e-3);
  EXPECT_EQ(values.devices, (std::vector{1, 8}));
  EXPECT_TRUE(values.train);
}

TEST(CommandLineTest, LeadingZerosAreNotOctal) {
  Values values;
  std::string printed;
  ASSERT_EQ(
      runWith({"a", "--count", "010", "--devices", "010,08"}, values, printed),
      0)
      << printed;
  EXPECT_EQ(values.count, 10);
  EXPECT_EQ(values.devices, (std::vector{10, 8}));
}

TEST(CommandLineTest, HelpStatesRangesAndDefaults) {
  Values values;
  std::string printed;
  EXPECT_EQ(runWith({"--help"}, values, printed), 0);
  EXPECT_THAT(printed, HasSubstr("[1, 10]"));
  EXPECT_THAT(printed, HasSubstr("=3"));
}

TEST(CommandLineTest, NumbersThatAreNoneAreRefused) {
  EXPECT_THAT(refused("--share", "nan"),
              HasSubstr("--share: expected a number"));
  EXPECT_THAT(refused("--seed", "-1"),
              HasSubstr("--seed: expected a whole number of at least 0, got"));
  EXPECT_THAT(refused("--seed", "18446744073709551616"), HasSubstr("--seed"));
  EXPECT_THAT(refused("--devices", "2,4294967298"), HasSubstr("--devices"));
  EXPECT_THAT(
      refused("--count", "2.5"),
      HasSubstr("--count: expected a whole number in [1, 10], got: 2.5"));
  EXPECT_THAT(refused("--count", "0x4"), HasSubstr("--count"));
  EXPECT_THAT(refused("--seed", ""), HasSubstr("--seed"));
  EXPECT_THAT(refused("--share", "inf"), HasSubstr("--share"));
  EXPECT_THAT(refused("--share", "1e400"), HasSubstr("--share"));
}

TEST(CommandLineTest, NumbersOutOfRangeAreRefused) {
  EXPECT_THAT(
      refused("--count", "11"),
      HasSubstr("--count: expected a whole number in [1, 10], got: 11"));
  EXPECT_THAT(refused("--share", "much"),
              HasSubstr("--share: expected a number in [0, 1], got: much"));
  EXPECT_THAT(refused("--share", "1.5"), HasSubstr("[0, 1], got: 1.5"));
}

TEST(CommandLineTest, MissingAndUnknownWordsAreRefused) {
  Values values;
  std::string printed;
  EXPECT_EQ(runWith({}, values, printed), 1);
  EXPECT_THAT(printed, HasSubstr("file is required"));
  EXPECT_EQ(runWith({"file", "--speed", "9"}, values, printed), 1);
  EXPECT_THAT(printed, HasSubstr("--speed"));
}

/// A program with a command that fails, one that throws and one that keeps
/// unknown words.
class Commands {
public:
  Commands() {
    line.addCommand("fail", "").action([] {
      return Expected<void>(failure("plan", "too large"));
    });
    line.addCommand("throw", "").action([]() -> Expected<void> {
      throw std::runtime_error("no memory");
    });
    Command keep = line.addCommand("keep", "");
    keep.allowRest();
    keep.action([this, keep] {
      rest = keep.rest();
      return Expected<void>();
    });
  }

  CommandLine line{"tool", "A tool"};
  std::vector<std::string> rest;
};

TEST(CommandLineTest, ControlCharactersAreShown) {
  for (const std::string &printed :
       {refused("--count", "1\x1b[31m"), refused("--\x1b[31m", "1")}) {
    EXPECT_THAT(printed, HasSubstr("\\x1b[31m"));
    EXPECT_THAT(printed, Not(HasSubstr("\x1b")));
  }
  CommandLine line("tool", "A tool");
  line.addCommand("fail", "").action([] {
    return Expected<void>(failure("a\nb", "\x7f is no name"));
  });
  std::string printed;
  EXPECT_EQ(run(line, {"fail"}, printed), 1);
  EXPECT_EQ(printed, "tool: a\\x0ab: \\x7f is no name\n");
}

TEST(CommandLineTest, LinesOfExceptionsStayLines) {
  CommandLine line("tool", "A tool");
  line.program().action(
      []() -> Expected<void> { throw std::runtime_error("one\x1b\ntwo"); });
  std::string printed;
  EXPECT_EQ(run(line, {}, printed), 1);
  EXPECT_EQ(printed, "tool: one\\x1b\ntwo\n");
}

TEST(CommandLineTest, OneCommandRuns) {
  auto expect = [](std::vector<std::string> words, const char *text) {
    Commands commands;
    std::string printed;
    EXPECT_EQ(run(commands.line, std::move(words), printed), 1);
    EXPECT_THAT(printed, HasSubstr(text));
  };
  expect({"fail"}, "tool: plan: too large\n");
  expect({"throw"}, "tool: no memory\n");
  expect({}, "subcommand is required");
}

TEST(CommandLineTest, UnknownWordsAreKept) {
  Commands commands;
  std::string printed;
  EXPECT_EQ(run(commands.line, {"keep", "a", "--batch", "8"}, printed), 0);
  EXPECT_EQ(commands.rest, (std::vector<std::string>{"a", "--batch", "8"}));
}

TEST(CommandLineTest, OptionsKnowWhetherTheyAreGiven) {
  CommandLine line("tool", "A tool");
  std::string output = "out", plan;
  Command command = line.program();
  CommandOption given = command.add("-o,--output", output, "A folder");
  CommandOption other = command.add("--plan", plan).group("Plans");
  std::vector<std::string> flags;
  command.action([&] {
    for (const CommandOption &option : {given, other})
      if (option.isGiven())
        flags.push_back(option.name());
    return Expected<void>();
  });
  std::string printed;
  EXPECT_EQ(run(line, {"-o", "here"}, printed), 0);
  EXPECT_EQ(flags, std::vector<std::string>{"--output"});
}

} // namespace
