//===- CommandLine.cpp - Options and subcommands of a tool ----------------===//

#include "CommandLine.h"
#include "Version.h"

#include "Numbers.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/Printable.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

using namespace neuroshard;

namespace {

template <typename T> CLI::Validator inRange(T least, T most) {
  std::string range = "[" + CLI::detail::to_string(least) + ", " +
                      CLI::detail::to_string(most) + "]";
  const char *what =
      std::is_floating_point_v<T> ? "a number" : "a whole number";
  return CLI::Validator(
      [=](std::string &text) {
        T value{};
        if (readNumber(text, value) && value >= least && value <= most)
          return std::string();
        return std::string("expected ") + what + " in " + range +
               ", got: " + text;
      },
      range);
}

template <typename T> struct ElementOf {
  using Type = T;
  static constexpr bool kIsList = false;
};
template <typename T> struct ElementOf<std::vector<T>> {
  using Type = T;
  static constexpr bool kIsList = true;
};

template <typename T> bool isEmpty(const T &value) {
  if constexpr (ElementOf<T>::kIsList)
    return value.empty();
  else
    return false;
}

/// An error if not everything that was printed has arrived, as on a full disk.
Expected<void> flushOutput() {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout)
    return {};
  return failure("", "cannot write to the standard output; is the disk full?");
}

/// A line for each argument that no option or command has taken, but that is
/// close to the name of one.
std::string suggestions(const CLI::App &app) {
  std::vector<std::string> options, commands;
  std::vector<const CLI::App *> chosen = {&app};
  for (const CLI::App *command : app.get_subcommands())
    chosen.push_back(command);
  for (const CLI::App *one : chosen)
    for (const CLI::Option *option : one->get_options())
      for (const std::string &name : option->get_lnames())
        options.push_back("--" + name);
  for (const CLI::App *command : app.get_subcommands({}))
    commands.push_back(command->get_name());
  std::string text;
  for (const std::string &argument : app.remaining(true)) {
    std::string word = argument.substr(0, argument.find('='));
    std::string meant =
        didYouMean(word, word.starts_with('-') ? options : commands);
    if (!meant.empty())
      text += "Unknown: '" + word + "'" + meant + "\n";
  }
  return text;
}

/// The option of `command` that has values between commas and is called
/// `name`; null without one.
const CLI::Option *findList(const CLI::App *command, const std::string &name) {
  const CLI::Option *found = command->get_option_no_throw(name);
  return found && found->get_delimiter() == ',' ? found : nullptr;
}

/// An error for an empty value between commas, which CLI11 passes over.
Expected<void> checkCommas(const CLI::App &app, int argc, char **argv) {
  std::vector<const CLI::App *> commands = {&app};
  for (const CLI::App *command : app.get_subcommands())
    commands.push_back(command);
  const CLI::Option *list = nullptr; // that the arguments are values of
  for (int i = 1; i < argc; ++i) {
    std::string value = argv[i];
    if (value.starts_with("--")) {
      size_t end = value.find('=');
      list = nullptr;
      for (const CLI::App *command : commands)
        if (const CLI::Option *found = findList(command, value.substr(0, end)))
          list = found;
      if (end == std::string::npos)
        continue;
      value.erase(0, end + 1);
    }
    if (list && ("," + value + ",").find(",,") != std::string::npos)
      return failure("", list->get_name() +
                             ": expected values with a comma between each two, "
                             "got: '" +
                             value + "'");
  }
  return {};
}

/// Prints help, or what is wrong. Returns whether help was asked for.
bool showHelpOrError(const CLI::App &app, const CLI::ParseError &error) {
  std::ostringstream errors;
  int code = app.exit(error, std::cout, errors);
  if (code != 0)
    errors << suggestions(app);
  std::fputs(printableLines(errors.str()).c_str(), stderr);
  return code == 0;
}

} // namespace

//===----------------------------------------------------------------------===//
// CommandOption
//===----------------------------------------------------------------------===//

CommandOption CommandOption::required() {
  option->required();
  return *this;
}

CommandOption CommandOption::wholeRange(int64_t least, int64_t most) {
  // Before the check of the type, which knows no range.
  option->transform(inRange(least, most));
  return *this;
}

CommandOption CommandOption::realRange(double least, double most) {
  option->transform(inRange(least, most));
  return *this;
}

CommandOption CommandOption::oneOf(const std::vector<std::string> &texts) {
  option->check(CLI::IsMember(texts));
  return *this;
}

CommandOption CommandOption::existingFolder() {
  option->check(CLI::ExistingDirectory);
  return *this;
}

CommandOption CommandOption::output(const std::string &kind) {
  option->check([kind](const std::string &path) {
    return path.empty()
               ? "expected the name of a " + kind + ", got an empty text"
               : std::string();
  });
  return *this;
}

CommandOption CommandOption::deviceClass() {
  std::vector<std::string> names;
  for (const DeviceClass &known : deviceClasses())
    names.emplace_back(known.name);
  return oneOf(names);
}

CommandOption CommandOption::commas() {
  option->delimiter(',');
  return *this;
}

CommandOption CommandOption::count(int values) {
  option->expected(values);
  return *this;
}

CommandOption CommandOption::excludes(CommandOption other) {
  option->excludes(other.option);
  return *this;
}

CommandOption CommandOption::group(const std::string &heading) {
  option->group(heading);
  return *this;
}

CommandOption CommandOption::withoutDefault() {
  option->default_str("");
  return *this;
}

bool CommandOption::isGiven() const { return option->count() > 0; }

std::string CommandOption::name() const { return option->get_name(); }

//===----------------------------------------------------------------------===//
// Command
//===----------------------------------------------------------------------===//

template <typename T>
CommandOption Command::add(const std::string &names, T &value,
                           const std::string &help) {
  using Element = typename ElementOf<T>::Type;
  CLI::Option *option = app->add_option(names, value, help);
  if constexpr (std::is_arithmetic_v<Element>)
    option->transform(CLI::Validator(normalizeNumber<Element>, ""));
  if (!isEmpty(value))
    option->capture_default_str();
  return CommandOption(option);
}

#define NEUROSHARD_ADD_OPTION(T)                                               \
  template CommandOption Command::add(const std::string &, T &,                \
                                      const std::string &);                    \
  template CommandOption Command::add(const std::string &, std::vector<T> &,   \
                                      const std::string &);
NEUROSHARD_ADD_OPTION(std::string)
NEUROSHARD_ADD_OPTION(int)
NEUROSHARD_ADD_OPTION(int64_t)
NEUROSHARD_ADD_OPTION(uint64_t)
NEUROSHARD_ADD_OPTION(float)
NEUROSHARD_ADD_OPTION(double)
#undef NEUROSHARD_ADD_OPTION

CommandOption Command::addFlag(const std::string &names, bool &value,
                               const std::string &help) {
  return CommandOption(app->add_flag(names, value, help));
}

void Command::allowRest() { app->allow_extras(); }

std::vector<std::string> Command::rest() const { return app->remaining(); }

void Command::helpColumn(int column) {
  app->get_formatter()->column_width(static_cast<size_t>(column));
}

void Command::action(Action action) {
  app->callback(
      [line = line, action = std::move(action)] { line->chosen = action; });
}

//===----------------------------------------------------------------------===//
// CommandLine
//===----------------------------------------------------------------------===//

const char *neuroshard::projectVersion() { return NEUROSHARD_VERSION; }

CommandLine::CommandLine(std::string program, const std::string &description)
    : name(std::move(program)),
      app(std::make_unique<CLI::App>(description, name)) {
  app->set_version_flag("--version", [this] {
    return name + " " + projectVersion() +
           (versionDetail.empty() ? "" : " (" + versionDetail + ")");
  });
}

void CommandLine::addToVersion(const std::string &detail) {
  versionDetail = detail;
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() { return {this, app.get()}; }

Command CommandLine::addCommand(const std::string &command,
                                const std::string &description) {
  app->require_subcommand(1);
  return {this, app->add_subcommand(command, description)};
}

int CommandLine::run(int argc, char **argv) {
  std::optional<std::string> problem;
  auto note = [&](const Expected<void> &done) {
    if (!done)
      problem = toString(done.error());
  };
  try {
    app->parse(argc, argv);
    note(checkCommas(*app, argc, argv).and_then(chosen));
  } catch (const CLI::ParseError &error) {
    if (!showHelpOrError(*app, error))
      return 1;
  } catch (const std::bad_alloc &) {
    problem = "not enough memory";
  } catch (const std::exception &error) {
    problem = printableLines(error.what());
  }
  if (!problem)
    note(flushOutput());
  if (!problem)
    return 0;
  std::fprintf(stderr, "%s: %s\n", name.c_str(), problem->c_str());
  return 1;
}
