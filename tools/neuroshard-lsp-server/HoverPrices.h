//===- HoverPrices.h - Prices among a server's answers ---------*- C++ -*-===//
//
// MLIR's server has no place for further text in hovers, but sends on every
// diagnostic. Prices of shards and tables come as diagnostics, some thousands
// in a large module, and are told apart by a mark; they are taken out, and put
// into the answers on the ops that they are about.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_LSP_SERVER_HOVERPRICES_H
#define NEUROSHARD_TOOLS_LSP_SERVER_HOVERPRICES_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard {

/// The text of a diagnostic that is for a hover; `symbol` is the op's name
/// among symbols, or empty.
std::string forHover(llvm::StringRef symbol, llvm::StringRef text);

/// Reads the messages between a client and a server. Messages of one side may
/// be read while those of the other are.
class HoverPrices {
public:
  /// Notes what a client asks.
  void readRequest(llvm::StringRef message);

  /// The message of the server as the client is to get it.
  std::string convertAnswer(std::string message);

private:
  struct Price {
    int64_t line = 0;
    std::string symbol;
    std::string text;
  };
  struct Position {
    std::string document;
    int64_t line = 0;
  };

  bool takePrices(llvm::json::Object &diagnostics);
  bool addPrices(const llvm::json::Value &id, llvm::json::Object &answer);
  std::string pricesOf(llvm::StringRef hover, const Position &position);

  std::mutex mutex;
  /// Requests for hovers that have no answer yet, by id.
  llvm::StringMap<Position> requests;
  llvm::StringMap<std::vector<Price>> pricesOfDocument;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_LSP_SERVER_HOVERPRICES_H
