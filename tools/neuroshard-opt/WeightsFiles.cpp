//===- WeightsFiles.cpp - Weights files, kept back until a run ends -------===//

#include "WeightsFiles.h"

#include "neuroshard/Transforms/WeightsFile.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
using namespace neuroshard;

namespace {

class Place : public WeightsFilePlace {
public:
  Place(Dialect *dialect, WeightsFiles &files)
      : WeightsFilePlace(dialect), files(files) {}
  std::string placeFor(const std::string &path) const final {
    return files.placeFor(path);
  }

private:
  WeightsFiles &files;
};

class PlaceExtension
    : public DialectExtension<PlaceExtension, ir::NeuroShardDialect> {
public:
  explicit PlaceExtension(WeightsFiles &files) : files(files) {}
  void apply(MLIRContext *, ir::NeuroShardDialect *dialect) const final {
    dialect->addInterface(std::make_unique<Place>(dialect, files));
  }

private:
  WeightsFiles &files;
};

} // namespace

void WeightsFiles::addTo(DialectRegistry &registry) {
  registry.addExtension(TypeID::get<PlaceExtension>(),
                        std::make_unique<PlaceExtension>(*this));
}

std::string WeightsFiles::placeFor(const std::string &path) {
  llvm::SmallString<128> place;
  llvm::sys::fs::createUniquePath(path + "-%%%%%%%%", place,
                                  /*MakeAbsolute=*/false);
  std::lock_guard lock(mutex);
  std::string &known = places[path];
  if (known.empty()) {
    known = place.str();
    llvm::sys::RemoveFileOnSignal(known);
  }
  return known;
}

std::string WeightsFiles::keep() {
  for (auto &place : places) {
    if (std::error_code error =
            llvm::sys::fs::rename(place.second, place.first()))
      return place.first().str() + ": " + error.message();
    llvm::sys::DontRemoveFileOnSignal(place.second);
  }
  places.clear();
  return "";
}

WeightsFiles::~WeightsFiles() {
  for (auto &place : places) {
    llvm::sys::fs::remove(place.second);
    llvm::sys::DontRemoveFileOnSignal(place.second);
  }
}
