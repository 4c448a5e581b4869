//===- CommandTest.h - A command line as a test of failures ----*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REDUCE_COMMANDTEST_H
#define NEUROSHARD_TOOLS_REDUCE_COMMANDTEST_H

#include <string>
#include <vector>

namespace neuroshard {

/// A test program that runs a command on a module, in a temporary file that is
/// removed with this.
class CommandTest {
public:
  CommandTest() = default;
  CommandTest(const CommandTest &) = delete;
  CommandTest &operator=(const CommandTest &) = delete;
  ~CommandTest();

  /// Splits `TOOL [options] -- COMMAND...` and gives back what MLIR's driver
  /// gets: the options before `--`, without ours and with the pass and the
  /// program. Ours are `--error TEXT`, which the command is to print for a
  /// module that fails (without it the command is to crash), and `--seconds N`
  /// (10), after which a run counts as no failure. Without `--` the arguments
  /// as they are. Prints an error and gives nothing where they are wrong.
  std::vector<std::string> parse(int argc, char **argv);

private:
  std::string path;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REDUCE_COMMANDTEST_H
