//===- CommandLine.h - Options and subcommands of a tool --------*- C++ -*-===//
///
/// \file
/// Declares what a program can be asked on its command line, reads it, runs
/// what it asks for and reports errors. CLI11 parses; CommandLine.cpp alone
/// includes it.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_COMMANDLINE_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_COMMANDLINE_H

#include "neuroshard/Model/Diagnostics.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace neuroshard {

/// What a command does. Exceptions count as errors.
using Action = std::function<Expected<void>()>;

/// An option or argument of a command. Functions return the option itself.
class CommandOption {
public:
  explicit CommandOption(CLI::Option *option) : option(option) {}

  CommandOption required();
  /// Refuses numbers outside [least, most].
  template <typename T> CommandOption range(T least, T most) {
    if constexpr (std::is_floating_point_v<T>)
      return realRange(least, most);
    else
      return wholeRange(least, most);
  }
  /// Refuses all other texts.
  CommandOption oneOf(const std::vector<std::string> &texts);
  CommandOption existingFolder();
  /// For the path of an output; refuses the empty text. `kind`: "file" or
  /// "folder".
  CommandOption output(const std::string &kind);
  /// Refuses names that no class of devices has.
  CommandOption deviceClass();
  /// For lists: values are separated by commas.
  CommandOption commas();
  /// For lists: exactly so many values.
  CommandOption count(int values);
  /// Refuses command lines that have both.
  CommandOption excludes(CommandOption other);
  /// The heading that help lists it under.
  CommandOption group(const std::string &heading);
  /// Help does not show the value that it has now.
  CommandOption withoutDefault();

  /// Whether the command line that was read has it.
  bool isGiven() const;
  /// Its flag, as it is written.
  std::string name() const;

private:
  CommandOption wholeRange(int64_t least, int64_t most);
  CommandOption realRange(double least, double most);

  CLI::Option *option;
};

class CommandLine;

/// A program without subcommands, or one of its subcommands.
class Command {
public:
  Command(CommandLine *line, CLI::App *app) : line(line), app(app) {}

  /// Adds an option ("-o,--output") or an argument ("data") that sets `value`,
  /// which must live until the action has run and whose value now is the
  /// default. T: std::string, int, int64_t, uint64_t, float, double, or a
  /// vector of these. Numbers are decimal; those that T does not hold, "nan"
  /// and "inf" are refused.
  template <typename T>
  CommandOption add(const std::string &names, T &value,
                    const std::string &help = "");
  CommandOption addFlag(const std::string &names, bool &value,
                        const std::string &help);

  /// Accepts unknown words; rest() has them once the line is read.
  void allowRest();
  std::vector<std::string> rest() const;

  /// The column in which help begins its sentences.
  void helpColumn(int column);

  /// What to do if this command is asked for.
  void action(Action action);

private:
  CommandLine *line;
  CLI::App *app;
};

class CommandLine {
public:
  CommandLine(std::string program, const std::string &description);
  CommandLine(const CommandLine &) = delete;
  CommandLine &operator=(const CommandLine &) = delete;
  ~CommandLine();

  /// The program itself, if it has no subcommands.
  Command program();
  /// Adds a subcommand. A command line must have one of them.
  Command addCommand(const std::string &name, const std::string &description);

  /// --version prints it in brackets behind the version of the project.
  void addToVersion(const std::string &detail);

  /// Reads the command line and runs the action. Returns the exit code of the
  /// program: 1 after an error, which is printed with the program's name.
  int run(int argc, char **argv);

private:
  friend class Command;

  std::string name, versionDetail;
  std::unique_ptr<CLI::App> app;
  Action chosen;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_COMMANDLINE_H
