//===- JsonMutator.cpp - Changes JSON texts at random ---------------------===//

#include "JsonMutator.h"

#include "Fuzz.h"
#include "neuroshard/Support/InputLimits.h"

#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <vector>

using namespace neuroshard;
using namespace neuroshard::fuzz;
using Json = nlohmann::ordered_json;

namespace {

class JsonChanger {
public:
  JsonChanger(Json &root, std::minstd_rand &random) : random(random) {
    collect(root);
  }
  void change();

private:
  size_t below(size_t count) { return random() % count; }
  Json &any() { return *nodes[below(nodes.size())]; }
  void collect(Json &node) {
    nodes.push_back(&node);
    for (Json &child : node)
      if (node.is_structured())
        collect(child);
  }
  Json scalar();
  void changeNumber(Json &node);
  void changeText(Json &node);
  void changeChildren(Json &node);

  std::minstd_rand &random;
  std::vector<Json *> nodes;
};

/// Values at which types and limits end.
Json JsonChanger::scalar() {
  static const std::array<Json, 30> kScalars = {
      nullptr,
      true,
      false,
      "",
      "a",
      std::string(300, 'x'),
      "\xc3\xa4\n\"",
      0,
      1,
      -1,
      2,
      3,
      16,
      255,
      65536,
      65537,
      (1 << 20) + 1,
      std::numeric_limits<int32_t>::max(),
      std::numeric_limits<int32_t>::min(),
      int64_t{1} << 32,
      int64_t{1} << 48,
      (int64_t{1} << 53) + 1,
      std::numeric_limits<int64_t>::max(),
      std::numeric_limits<int64_t>::min(),
      std::numeric_limits<uint64_t>::max(),
      0.5,
      -0.0,
      1e308,
      1e-308,
      -1e30};
  return kScalars[below(kScalars.size())];
}

void JsonChanger::changeNumber(Json &node) {
  // Unsigned, since it wraps around.
  auto value = node.get<uint64_t>();
  const std::array<uint64_t, 6> changed = {value + 1, value - 1, value * 2,
                                           value / 2, 0 - value, below(64)};
  node = static_cast<int64_t>(changed[below(changed.size())]);
}

void JsonChanger::changeText(Json &node) {
  auto text = node.get<std::string>();
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.resize(text.size() + 16);
  bytes.resize(LLVMFuzzerMutate(bytes.data(), text.size(), bytes.size()));
  node = std::string(bytes.begin(), bytes.end());
}

void JsonChanger::changeChildren(Json &node) {
  if (node.empty())
    node = scalar();
  size_t child = below(std::max<size_t>(node.size(), 1));
  if (node.is_array() && below(2))
    node.insert(node.begin() + static_cast<long>(child), Json(node[child]));
  else if (node.is_structured())
    node.erase(std::next(node.begin(), static_cast<long>(child)));
}

void JsonChanger::change() {
  Json &node = any();
  switch (below(8)) {
  case 0:
    node = scalar();
    return;
  case 1:
    node = Json(any());
    return;
  case 2:
    node = Json::array({Json(node)});
    return;
  case 3:
    node = Json::object({{"name", Json(node)}});
    return;
  default:
    if (node.is_number_integer())
      changeNumber(node);
    else if (node.is_number())
      node = node.get<double>() * (below(2) ? -1 : 1e6);
    else if (node.is_string())
      changeText(node);
    else if (node.is_structured())
      changeChildren(node);
    else
      node = scalar();
  }
}

} // namespace

std::string neuroshard::fuzz::changeJson(std::string_view text,
                                         std::minstd_rand &random) {
  if (isNestedTooDeep(text))
    return std::string(text);
  Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    return std::string(text);
  for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
    JsonChanger(root, random).change();
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

size_t neuroshard::fuzz::mutateJson(uint8_t *data, size_t size, size_t maxSize,
                                    unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string_view before = textOf(data, size);
  std::string after = changeJson(before, random);
  if (after == before || after.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  return replaceInput(after, data, size, maxSize);
}

size_t neuroshard::fuzz::mutateDrawnJson(
    uint8_t *data, size_t size, size_t maxSize, unsigned seed,
    const std::function<std::string(std::mt19937 &)> &draw) {
  std::mt19937 random(seed);
  if (size > 1 && random() % 64)
    return mutateJson(data, size, maxSize, seed);
  return replaceInput(draw(random), data, size, maxSize);
}
