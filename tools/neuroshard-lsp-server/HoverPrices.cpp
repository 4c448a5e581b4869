//===- HoverPrices.cpp - Prices among a server's answers ------------------===//

#include "HoverPrices.h"

#include "Version.h"

#include "llvm/Support/raw_ostream.h"

using namespace neuroshard;
namespace json = llvm::json;

static constexpr llvm::StringLiteral kMark = "neuroshard-price ";
/// DiagnosticSeverity.Information of the protocol.
static constexpr int64_t kInformation = 3;

std::string neuroshard::forHover(llvm::StringRef symbol, llvm::StringRef text) {
  return (kMark + llvm::Twine(symbol.size()) + " " + symbol + text).str();
}

/// A message that is an object; nothing for others, which are sent on.
static std::optional<json::Object> parse(llvm::StringRef message) {
  llvm::Expected<json::Value> value = json::parse(message);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  if (json::Object *object = value->getAsObject())
    return std::move(*object);
  return std::nullopt;
}

static std::string textOf(const json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

void HoverPrices::readRequest(llvm::StringRef message) {
  // Most messages are texts of documents.
  if (!message.contains("textDocument/hover"))
    return;
  std::optional<json::Object> request = parse(message);
  if (!request || request->getString("method") != "textDocument/hover")
    return;
  const json::Value *id = request->get("id");
  const json::Object *params = request->getObject("params");
  const json::Object *document =
      params ? params->getObject("textDocument") : nullptr;
  const json::Object *position =
      params ? params->getObject("position") : nullptr;
  if (!id || !document || !position)
    return;
  std::lock_guard lock(mutex);
  requests[textOf(*id)] = {document->getString("uri").value_or("").str(),
                           position->getInteger("line").value_or(0)};
}

/// Says in the answer to `initialize` which server this is.
static bool nameServer(json::Object &answer) {
  json::Object *result = answer.getObject("result");
  if (!result || !result->getObject("serverInfo"))
    return false;
  (*result)["serverInfo"] = json::Object{{"name", "neuroshard-lsp-server"},
                                         {"version", projectVersion()}};
  return true;
}

/// Takes the diagnostics with a mark out; false if nothing changes.
bool HoverPrices::takePrices(json::Object &params) {
  json::Array *diagnostics = params.getArray("diagnostics");
  if (!diagnostics)
    return false;
  bool changed = false;
  std::vector<Price> prices;
  json::Array others;
  for (json::Value &value : *diagnostics) {
    const json::Object *diagnostic = value.getAsObject();
    llvm::StringRef text =
        diagnostic ? diagnostic->getString("message").value_or("") : "";
    size_t symbolSize = 0;
    // Only prices are remarks; the server calls all diagnostics "Parse Error".
    if (diagnostic && diagnostic->getInteger("severity") == kInformation) {
      (*value.getAsObject())["category"] = "Price";
      changed = true;
    }
    if (!text.consume_front(kMark) || text.consumeInteger(10, symbolSize) ||
        !text.consume_front(" ")) {
      others.push_back(std::move(value));
      continue;
    }
    const json::Object *range = diagnostic->getObject("range");
    const json::Object *start = range ? range->getObject("start") : nullptr;
    prices.push_back({start ? start->getInteger("line").value_or(0) : 0,
                      text.take_front(symbolSize).str(),
                      text.drop_front(symbolSize).str()});
  }
  pricesOfDocument[params.getString("uri").value_or("")] = std::move(prices);
  *diagnostics = std::move(others);
  return changed;
}

/// The prices of the op that a hover begins with: `"op.name"`, and if the op
/// is a symbol, ` : visibility @symbol`. An op without a symbol is on the line
/// of the position. A file may have several modules: of ops with the same
/// symbol, the last before the position is taken, else the first.
std::string HoverPrices::pricesOf(llvm::StringRef hover,
                                  const Position &position) {
  auto found = pricesOfDocument.find(position.document);
  if (found == pricesOfDocument.end() || !hover.starts_with("\"neuroshard."))
    return {};
  llvm::StringRef symbol = hover.split('\n').first.split(" @").second;
  int64_t line = symbol.empty() ? position.line : -1;
  if (!symbol.empty())
    for (const Price &price : found->second)
      if (price.symbol == symbol && (line < 0 || price.line <= position.line))
        line = std::max(line, price.line);
  std::string text;
  for (const Price &price : found->second)
    if (price.symbol == symbol && price.line == line)
      text += price.text + "\n\n";
  return text;
}

/// Adds prices below the name of the op; false if there are none.
bool HoverPrices::addPrices(const json::Value &id, json::Object &answer) {
  auto request = requests.find(textOf(id));
  if (request == requests.end())
    return false;
  Position position = request->second;
  requests.erase(request);
  json::Object *result = answer.getObject("result");
  json::Object *contents = result ? result->getObject("contents") : nullptr;
  if (!contents)
    return false;
  std::string hover = contents->getString("value").value_or("").str();
  std::string prices = pricesOf(hover, position);
  size_t end = hover.find("\n\n");
  if (prices.empty() || end == std::string::npos)
    return false;
  (*contents)["value"] = hover.insert(end + 2, prices);
  return true;
}

std::string HoverPrices::convertAnswer(std::string message) {
  std::optional<json::Object> answer = parse(message);
  if (!answer)
    return message;
  std::lock_guard lock(mutex);
  bool changed = false;
  if (answer->getString("method") == "textDocument/publishDiagnostics") {
    json::Object *params = answer->getObject("params");
    changed = params && takePrices(*params);
  } else if (const json::Value *id = answer->get("id")) {
    changed = nameServer(*answer) || addPrices(*id, *answer);
  }
  return changed ? textOf(std::move(*answer)) : message;
}
