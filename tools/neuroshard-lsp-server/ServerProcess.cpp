//===- ServerProcess.cpp - A server behind a filter of messages -----------===//

#include "ServerProcess.h"

#include "llvm/Support/LSP/Transport.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace neuroshard;

namespace {

struct Pipe {
  int read = -1, write = -1;

  bool open() {
    int ends[2];
    if (::pipe(ends) != 0)
      return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close() const {
    ::close(read);
    ::close(write);
  }
};

/// Calls `pass` with each message until the input ends.
void readMessages(std::FILE *in, llvm::function_ref<void(std::string)> pass) {
  llvm::lsp::JSONTransportInputOverFile input(in);
  while (!input.isEndOfInput() && !input.hasError()) {
    std::string message;
    if (succeeded(input.readMessage(message)))
      pass(std::move(message));
  }
}

void writeMessage(std::FILE *out, llvm::StringRef message) {
  std::fprintf(out, "Content-Length: %zu\r\n\r\n", message.size());
  std::fwrite(message.data(), 1, message.size(), out);
  std::fflush(out);
}

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "neuroshard-lsp-server: error: cannot %s: %s\n", what,
               std::strerror(errno));
  std::exit(EXIT_FAILURE);
}

} // namespace

int neuroshard::runBehind(HoverPrices &prices,
                          llvm::function_ref<int()> server) {
  Pipe toServer, toClient;
  if (!toServer.open() || !toClient.open())
    fail("open a pipe");
  pid_t process = ::fork();
  if (process < 0)
    fail("start a process");
  if (process == 0) {
    ::dup2(toServer.read, STDIN_FILENO);
    ::dup2(toClient.write, STDOUT_FILENO);
    toServer.close();
    toClient.close();
    return server();
  }
  ::close(toServer.read);
  ::close(toClient.write);
  // A server or a client that is gone ends the other's input.
  std::signal(SIGPIPE, SIG_IGN);
  std::FILE *requests = ::fdopen(toServer.write, "w");
  std::FILE *answers = ::fdopen(toClient.read, "r");
  std::thread([&] {
    readMessages(stdin, [&](std::string message) {
      prices.readRequest(message);
      writeMessage(requests, message);
    });
    std::fclose(requests);
  }).detach();
  readMessages(answers, [&](std::string message) {
    writeMessage(stdout, prices.convertAnswer(std::move(message)));
  });
  int status = 0;
  ::waitpid(process, &status, 0);
  // The thread may wait for the client for ever.
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}
