//===- DeviceClassAttrs.cpp - Device classes of users in the IR -----------===//

#include "DeviceClassAttrs.h"

#include "neuroshard/Dialect/DeviceClassesAttr.h"
#include "neuroshard/Model/DeviceClassFields.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"

#include "mlir/IR/Builders.h"

#include <algorithm>

using namespace mlir;
using namespace neuroshard;

using ir::kDeviceClassesAttrName;
using ir::TopologyOp;

/// The number that an attribute states; fails for one that is none.
static std::optional<double> numberOf(Attribute value) {
  if (auto whole = dyn_cast<IntegerAttr>(value))
    return static_cast<double>(whole.getInt());
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValueAsDouble();
  return std::nullopt;
}

static Expected<DeviceClassDefinition> definitionFrom(DictionaryAttr attr) {
  DeviceClassDefinition definition;
  std::pair<StringRef, std::string *> texts[] = {{"name", &definition.name},
                                                 {"like", &definition.like},
                                                 {"kind", &definition.kind}};
  for (NamedAttribute entry : attr) {
    StringRef key = entry.getName().getValue();
    auto *text =
        llvm::find_if(texts, [&](auto &one) { return one.first == key; });
    if (text != std::end(texts)) {
      auto value = dyn_cast<StringAttr>(entry.getValue());
      if (!value)
        return neuroshard::failure(key.str(), "expected a text");
      *text->second = value.str();
      continue;
    }
    std::optional<double> number = numberOf(entry.getValue());
    if (!number)
      return neuroshard::failure(key.str(), "expected a number");
    definition.numbers.emplace_back(key.str(), *number);
  }
  return definition;
}

LogicalResult neuroshard::readDeviceClasses(TopologyOp op, Topology &topology) {
  auto list = op->getAttrOfType<ArrayAttr>(kDeviceClassesAttrName);
  if (!list)
    return success();
  for (auto [index, attr] :
       llvm::enumerate(list.getAsRange<DictionaryAttr>())) {
    std::string where = "device_classes[" + std::to_string(index) + "]";
    auto fail = [&](Diagnostics errors) {
      for (Diagnostic &error : errors)
        error.where = error.where.empty() ? where : where + "." + error.where;
      return emitDiagnostics(op.getLoc(), errors);
    };
    Expected<DeviceClassDefinition> definition = definitionFrom(attr);
    if (!definition)
      return fail(definition.error());
    Expected<const DeviceClass *> made = defineDeviceClass(*definition);
    if (!made)
      return fail(made.error());
    if (llvm::any_of(topology.ownClasses, [&](const DeviceClass *known) {
          return known->name == (*made)->name;
        }))
      return fail(
          {{"name", "a second device class '" + definition->name + "'"}});
    topology.ownClasses.push_back(*made);
  }
  return success();
}

void neuroshard::writeDeviceClasses(const Topology &topology, TopologyOp op) {
  if (topology.ownClasses.empty())
    return;
  Builder builder(op.getContext());
  SmallVector<Attribute> classes;
  for (const DeviceClass *one : topology.ownClasses) {
    DeviceClassDefinition definition = definitionOf(*one);
    SmallVector<NamedAttribute> entries;
    auto addText = [&](StringRef key, const std::string &text) {
      if (!text.empty())
        entries.push_back(
            builder.getNamedAttr(key, builder.getStringAttr(text)));
    };
    addText("name", definition.name);
    addText("like", definition.like);
    addText("kind", definition.kind);
    for (const auto &[key, value] : definition.numbers) {
      auto *field = &*std::ranges::find(deviceClassFields(), key,
                                        &DeviceClassField::name);
      entries.push_back(builder.getNamedAttr(
          key, field->isWhole ? Attribute(builder.getI64IntegerAttr(
                                    static_cast<int64_t>(value)))
                              : Attribute(builder.getF64FloatAttr(value))));
    }
    classes.push_back(builder.getDictionaryAttr(entries));
  }
  op->setAttr(kDeviceClassesAttrName, builder.getArrayAttr(classes));
}
