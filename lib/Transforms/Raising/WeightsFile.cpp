//===- WeightsFile.cpp - Rows of constants, in a file ---------------------===//

#include "WeightsFile.h"

#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Transforms/WeightsFile.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace neuroshard;

/// The bytes of a resource, where the file has them all.
static std::optional<ArrayRef<char>> bytesOf(ElementsAttr elements) {
  auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
  AsmResourceBlob *blob =
      resource ? resource.getRawHandle().getBlob() : nullptr;
  size_t width = elements.getElementType().getIntOrFloatBitWidth() / 8;
  if (!blob || blob->getData().size() !=
                   static_cast<size_t>(elements.getNumElements()) * width)
    return std::nullopt;
  return blob->getData();
}

/// The elements, row-major; nullopt where they are not there.
static std::optional<std::vector<float>> valuesOf(Attribute contents) {
  auto elements = dyn_cast<ElementsAttr>(contents);
  auto type =
      elements ? dyn_cast<FloatType>(elements.getElementType()) : FloatType();
  if (!type || type.getWidth() > 32)
    return std::nullopt;
  std::vector<float> values;
  values.reserve(elements.getNumElements());
  auto add = [&](APFloat number) {
    bool loses = false;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &loses);
    values.push_back(number.convertToFloat());
  };
  if (auto dense = dyn_cast<DenseFPElementsAttr>(contents)) {
    for (APFloat number : dense.getValues<APFloat>())
      add(number);
    return values;
  }
  std::optional<ArrayRef<char>> bytes = bytesOf(elements);
  if (!bytes)
    return std::nullopt;
  size_t width = type.getWidth() / 8;
  for (int64_t i = 0; i < elements.getNumElements(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes->data() + i * width, width);
    add(APFloat(type.getFloatSemantics(), APInt(type.getWidth(), bits)));
  }
  return values;
}

bool neuroshard::raising::canWrite(Attribute contents) {
  auto elements = dyn_cast<ElementsAttr>(contents);
  if (!elements || !isa<FloatType>(elements.getElementType()))
    return false;
  return isa<DenseFPElementsAttr>(contents) || bytesOf(elements);
}

std::string neuroshard::whyNotWeightsFile(const std::string &path) {
  if (Expected<void> writable = checkWritable(path); !writable)
    return toString(writable.error());
  // It may be the module itself, or a plan.
  if (llvm::sys::fs::is_regular_file(path) && !readTensorFile(path))
    return "'" + path +
           "' is there and is no safetensors file; name another file to write";
  return "";
}

std::string neuroshard::raising::writeWeights(
    const std::vector<std::pair<std::string, Attribute>> &rows,
    const std::string &path, const WeightsFilePlace *place) {
  if (std::string reason = whyNotWeightsFile(path); !reason.empty())
    return reason;
  TensorFile file;
  for (const auto &[name, contents] : rows) {
    std::optional<std::vector<float>> values = valuesOf(contents);
    if (!values)
      return "the values of table '" + name + "' cannot be read";
    ArrayRef<int64_t> shape =
        cast<ElementsAttr>(contents).getShapedType().getShape();
    file.tensors.emplace(
        name, makeTensor<float>(*values, {shape.begin(), shape.end()}));
  }
  Expected<void> written =
      writeTensorFile(file, place ? place->placeFor(path) : path);
  return written ? "" : toString(written.error());
}
