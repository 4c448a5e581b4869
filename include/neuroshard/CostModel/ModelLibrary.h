//===- ModelLibrary.h - The trained models for a topology ------*- C++ -*-===//

#ifndef NEUROSHARD_COSTMODEL_MODELLIBRARY_H
#define NEUROSHARD_COSTMODEL_MODELLIBRARY_H

#include "neuroshard/CostModel/CommunicationModel.h"
#include "neuroshard/CostModel/NeuralCompute.h"

#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// A trained model and the name of its file, without folder and ending.
template <typename Model> struct ModelPart {
  std::string name;
  std::shared_ptr<const Model> model;
};

using ComputePart = ModelPart<NeuralCompute>;
using CommunicationPart = ModelPart<CommunicationModel>;

/// Trained models of several device classes.
struct ModelParts {
  std::vector<ComputePart> compute;
  std::vector<CommunicationPart> communication;
  /// The folder that was to have them and is not there; "": it is.
  std::string missingFolder = {};
};

/// Reads a compute or a communication model and adds it. Errors name the file.
Expected<void> addModelFile(const std::string &path, ModelParts &parts);

/// Where the shipped models are: the environment's NEUROSHARD_MODELS, else
/// beside the program or shared object that this code is part of (models/, as
/// in the Python package), else ../share/neuroshard/models from it.
std::string modelsFolder();

/// Every cost model in a folder (.safetensors), by name. A folder that is not
/// there holds none, unless NEUROSHARD_MODELS names it.
Expected<ModelParts> readModelsFolder(const std::string &folder);

/// Whether the compute of some device is predicted by the model of this class:
/// it is of the class, or of one whose kernels are said to be like its.
bool usesKernelsOf(const Topology &topology, std::string_view deviceClass);

/// The parts that serve a topology. An error if several compute models serve
/// one device class, or several communication models the topology.
/// `measuredOnly` leaves out models trained on simulated times.
Expected<ModelParts> partsFor(const Topology &topology, const ModelParts &all,
                              bool measuredOnly);

/// One cost model made of the parts that partsFor() chose. The roofline
/// predicts what no part covers, and remarks() says so. name() is that of the
/// parts, such as "cpu_compute+gloo_communication"; "roofline" stands for a
/// side without any part.
std::unique_ptr<CostModel> composeModel(ModelParts parts);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_MODELLIBRARY_H
