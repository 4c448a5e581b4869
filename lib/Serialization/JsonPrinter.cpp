//===- JsonPrinter.cpp - JSON as readable text ----------------------------===//

#include "JsonPrinter.h"

using namespace neuroshard;

using Json = nlohmann::ordered_json;

/// Values deeper than this are written on one line.
static constexpr int kIndentedDepth = 2;

static void printValue(const Json &value, int depth, std::string &text) {
  bool nested = !value.empty() && depth < kIndentedDepth &&
                (value.is_object() ||
                 (value.is_array() && value.front().is_structured()));
  if (!nested) {
    text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  bool isObject = value.is_object();
  std::string indent(static_cast<size_t>(depth + 1), ' ');
  text += isObject ? "{\n" : "[\n";
  bool first = true;
  for (const auto &item : value.items()) {
    text += first ? "" : ",\n";
    text += indent;
    first = false;
    if (isObject)
      text += Json(item.key())
                  .dump(-1, ' ', false, Json::error_handler_t::replace) +
              ": ";
    printValue(item.value(), depth + 1, text);
  }
  text += '\n';
  text.append(static_cast<size_t>(depth), ' ');
  text += isObject ? '}' : ']';
}

std::string neuroshard::json::print(const Json &root) {
  std::string text;
  printValue(root, 0, text);
  text += '\n';
  return text;
}
