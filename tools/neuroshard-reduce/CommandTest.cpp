//===- CommandTest.cpp - A command line as a test of failures -------------===//

#include "CommandTest.h"

#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Our own options; the value as `--name VALUE` or `--name=VALUE`.
struct OwnOptions {
  std::string error;
  std::string seconds = "10";

  std::string *find(llvm::StringRef name) {
    return name == "--error"     ? &error
           : name == "--seconds" ? &seconds
                                 : nullptr;
  }
};

llvm::raw_ostream &printError() {
  return llvm::WithColor::error(llvm::errs(), "neuroshard-reduce");
}

constexpr llvm::StringLiteral kHelp =
    R"(Makes a module that fails smaller.

USAGE: neuroshard-reduce INPUT -o OUTPUT [--error TEXT] [--seconds N] -- COMMAND...
       neuroshard-reduce INPUT -o OUTPUT --neuroshard-reduction=test=PROGRAM
       neuroshard-reduce INPUT -o OUTPUT --reduction-tree="traversal-mode=0 test=PROGRAM"

  COMMAND...     gets a module as its last argument
  --error TEXT   what it prints for a module that fails; default: it crashes
  --seconds N    a run that takes longer is no failure; default: 10
  PROGRAM        gets a module, and exits with 1 if it fails, else with 0

MLIR's options:

)";

/// Whether the options of a pass name a program that tests modules, or the
/// tool is only asked about itself.
bool hasTest(llvm::ArrayRef<std::string> words) {
  return llvm::any_of(words, [](llvm::StringRef word) {
    return word.contains("test=") || word.starts_with("--help") ||
           word == "-h" || word == "-help" || word.ends_with("-version");
  });
}

/// Quoted for a shell.
std::string quoted(llvm::StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Exits with 1 if the command fails on $1 as it is to fail.
std::string scriptOf(const std::vector<std::string> &command,
                     const OwnOptions &own) {
  std::string line;
  for (const std::string &word : command)
    line += quoted(word) + " ";
  // A shell says on its own which signal has ended a command.
  std::string text = "#!/bin/sh\nexport LLVM_DISABLE_SYMBOLIZATION=1\n";
  text += "{ output=$(timeout " + own.seconds + " " + line +
          "\"$1\" 2>&1); } 2>/dev/null\ncode=$?\n";
  if (own.error.empty()) // A signal; timeout gives 124 itself.
    return text + "[ \"$code\" -lt 128 ]\n";
  return text + "case \"$output\" in *" + quoted(own.error) +
         "*) exit 1 ;; esac\nexit 0\n";
}

bool writeProgram(const std::string &text, std::string &path) {
  int file = 0;
  llvm::SmallString<64> name;
  if (llvm::sys::fs::createTemporaryFile("neuroshard-reduce", "sh", file, name))
    return false;
  path = name.str();
  llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
  out << text;
  out.close();
  bool isWritten = !out.has_error();
  out.clear_error();
  return isWritten &&
         !llvm::sys::fs::setPermissions(path, llvm::sys::fs::owner_all);
}

} // namespace

CommandTest::~CommandTest() {
  if (!path.empty())
    llvm::sys::fs::remove(path);
}

std::vector<std::string> CommandTest::parse(int argc, char **argv) {
  std::vector<std::string> all(argv, argv + argc);
  auto end = std::find(all.begin(), all.end(), "--");
  if (std::find(all.begin(), end, "--help") != end) {
    llvm::outs() << kHelp;
    return {all.front(), "--help"};
  }
  OwnOptions own;
  if (end == all.end()) {
    for (llvm::StringRef word : all)
      if (llvm::StringRef name = word.split('=').first; own.find(name)) {
        printError() << name
                     << ": has an effect only with a command after --\n";
        return {};
      }
    if (!hasTest(all)) {
      printError() << "expected what tells whether a module fails: a command "
                      "after --, or test=PROGRAM of a pass; see --help\n";
      return {};
    }
    return all;
  }
  std::vector<std::string> command(end + 1, all.end()), rest;
  if (command.empty()) {
    printError() << "expected a command after --, such as: -- neuroshard-opt "
                    "--neuroshard-plan\n";
    return {};
  }
  // A name with a slash is found whether it is there or not.
  llvm::ErrorOr<std::string> program =
      llvm::sys::findProgramByName(command.front());
  if (!program || !llvm::sys::fs::can_execute(*program)) {
    printError() << printable(command.front())
                 << ": cannot be run; expected a program after --\n";
    return {};
  }
  for (auto word = all.begin(); word != end; ++word) {
    auto [name, value] = llvm::StringRef(*word).split('=');
    std::string *option = own.find(name);
    if (!option) {
      rest.push_back(*word);
      continue;
    }
    bool isNext = name.size() == word->size();
    if (isNext && ++word == end) {
      printError() << printable(*(word - 1)) << ": expected a value\n";
      return {};
    }
    *option = isNext ? *word : value.str();
  }
  unsigned seconds = 0;
  if (llvm::StringRef(own.seconds).getAsInteger(10, seconds) || seconds == 0) {
    printError() << "--seconds: expected a whole number above 0, got: '"
                 << printable(own.seconds) << "'\n";
    return {};
  }
  if (!writeProgram(scriptOf(command, own), path)) {
    printError() << "cannot write the test program to " << printable(path)
                 << "\n";
    return {};
  }
  rest.push_back("--neuroshard-reduction=test=" + path);
  return rest;
}
