//===- TorchContenders.cpp - EmbeddingBag and FBGEMM, in C++ --------------===//
//
// The one file that includes LibTorch. FBGEMM's operators register themselves
// when its libraries are loaded, and are called through the dispatcher.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace neuroshard::bench {

namespace {

namespace fs = std::filesystem;

at::ScalarType elementType(const Shape &shape) {
  return shape.element == "f16"    ? at::kHalf
         : shape.element == "bf16" ? at::kBFloat16
                                   : at::kFloat;
}

at::Tensor viewOf(const std::vector<int64_t> &values) {
  return at::from_blob(const_cast<int64_t *>(values.data()),
                       {static_cast<int64_t>(values.size())}, at::kLong);
}

at::Tensor viewOf(const std::vector<float> &values) {
  return at::from_blob(const_cast<float *>(values.data()),
                       {static_cast<int64_t>(values.size())}, at::kFloat);
}

void loadLibrary(const fs::path &path) {
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw std::runtime_error(dlerror());
}

/// PyTorch's folder, from where its library has been loaded.
fs::path torchFolder() {
  Dl_info info = {};
  auto *function = reinterpret_cast<void *>(&at::set_num_threads);
  if (!dladdr(function, &info) || !info.dli_fname)
    return {};
  return fs::canonical(info.dli_fname).parent_path().parent_path();
}

/// In the order in which they need each other.
constexpr const char *kFbgemmLibraries[] = {"asmjit",
                                            "fbgemm",
                                            "fbgemm_gpu_config",
                                            "fbgemm_gpu_tbe_utils",
                                            "fbgemm_gpu_sparse_async_cumsum",
                                            "fbgemm_gpu_tbe_index_select",
                                            "fbgemm_gpu_tbe_cache",
                                            "fbgemm_gpu_tbe_optimizers",
                                            "fbgemm_gpu_tbe_common",
                                            "fbgemm_gpu_tbe_inference",
                                            "fbgemm_gpu_tbe_training_forward",
                                            "fbgemm_gpu_tbe_training_backward"};

void loadFbgemm(const fs::path &folder) {
  loadLibrary(torchFolder() / "lib" / "libtorch.so");
  for (const char *name : kFbgemmLibraries)
    loadLibrary(folder / std::string(name).append(".so"));
}

/// All tables of the shape, one after the other.
at::Tensor makeTables(const Shape &shape, const TableValues &values) {
  at::Tensor flat =
      at::empty({shape.tables * shape.rows * shape.dim}, elementType(shape));
  for (int64_t t = 0; t < shape.tables; ++t)
    values(t, static_cast<char *>(flat.data_ptr()) + t * shape.tableBytes());
  return flat;
}

at::Tensor tableOf(const at::Tensor &flat, const Shape &shape, int64_t table) {
  int64_t size = shape.rows * shape.dim;
  return flat.narrow(0, table * size, size).view({shape.rows, shape.dim});
}

class EmbeddingBags final : public Contender {
public:
  EmbeddingBags(const Shape &shape, const at::Tensor &flat) : shape(shape) {
    for (int64_t t = 0; t < shape.tables; ++t)
      tables.push_back(tableOf(flat, shape, t));
  }

  /// Each module of a model gets ids and offsets of its own.
  void run(const IdSet &set) override {
    at::NoGradGuard noGradients;
    const Inputs &inputs = inputsOf(set);
    results.clear();
    for (int64_t t = 0; t < shape.tables; ++t) {
      auto index = static_cast<size_t>(t);
      std::optional<at::Tensor> weights;
      if (shape.weighted)
        weights = inputs.weights[index];
      results.push_back(std::get<0>(at::embedding_bag(
          tables[index], inputs.ids[index], inputs.offsets,
          /*scale_grad_by_freq=*/false, /*mode=*/shape.mean ? 1 : 0,
          /*sparse=*/false, weights, /*include_last_offset=*/true)));
    }
  }

  RowsView result(int64_t table) override {
    compared = results[static_cast<size_t>(table)].to(at::kFloat).contiguous();
    return {compared.const_data_ptr<float>(), shape.dim};
  }

  void drop() override { results.clear(); }

private:
  struct Inputs {
    std::vector<at::Tensor> ids, weights;
    at::Tensor offsets;
  };

  const Inputs &inputsOf(const IdSet &set) {
    auto [found, isNew] = inputs.try_emplace(&set);
    if (!isNew)
      return found->second;
    Inputs &made = found->second;
    int64_t count = shape.batch * shape.pooling;
    for (int64_t t = 0; t < shape.tables; ++t) {
      made.ids.push_back(viewOf(set.ids).narrow(0, t * count, count));
      if (shape.weighted)
        made.weights.push_back(viewOf(set.weights)
                                   .narrow(0, t * count, count)
                                   .to(elementType(shape)));
    }
    made.offsets = viewOf(set.offsets).narrow(0, 0, shape.batch + 1);
    return made;
  }

  const Shape shape;
  std::vector<at::Tensor> tables, results;
  at::Tensor compared;
  std::map<const IdSet *, Inputs> inputs;
};

class Fbgemm final : public Contender {
public:
  Fbgemm(const Shape &shape, const at::Tensor &tables, const fs::path &folder)
      : shape(shape), tables(tables) {
    loadFbgemm(folder);
    std::string name = "fbgemm::split_embedding_codegen_lookup_";
    name.append(shape.isTraining() ? shape.optimizer : "sgd");
    operation = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.append("_function_cpu").c_str(), "");
    setUpTables();
    setUpOptimizer();
  }

  void setGradient(const std::vector<float> &values) override {
    gradient = viewOf(values)
                   .view({shape.tables, shape.batch, shape.dim})
                   .transpose(0, 1)
                   .reshape({shape.batch, shape.tables * shape.dim});
  }

  void run(const IdSet &set) override {
    at::AutoGradMode withGradients(shape.isTraining());
    output = call(set);
    if (!shape.isTraining())
      return;
    torch::autograd::backward({output}, {gradient});
    output = output.detach();
  }

  RowsView result(int64_t table) override {
    compared = output.to(at::kFloat).contiguous();
    return {compared.const_data_ptr<float>() + table * shape.dim,
            shape.tables * shape.dim};
  }

  void drop() override { output = at::Tensor(); }

  void readTable(int64_t table, float *out) override {
    at::Tensor values =
        tableOf(tables.detach(), shape, table).to(at::kFloat).contiguous();
    std::memcpy(out, values.const_data_ptr(), values.nbytes());
  }

private:
  at::Tensor multiplesOf(int64_t value, int64_t count, at::ScalarType type) {
    return (at::arange(count, at::kLong) * value).to(type);
  }

  void setUpTables() {
    if (shape.isTraining())
      tables.requires_grad_(true);
    int64_t count = shape.tables;
    auto bits = std::bit_width(static_cast<uint64_t>(count * shape.rows));
    fixed = {
        {"host_weights", tables},
        {"weights_placements", at::zeros({count}, at::kInt)},
        {"weights_offsets",
         multiplesOf(shape.rows * shape.dim, count, at::kLong)},
        {"D_offsets", multiplesOf(shape.dim, count + 1, at::kInt)},
        {"total_D", count * shape.dim},
        {"max_D", shape.dim},
        {"hash_size_cumsum", multiplesOf(shape.rows, count + 1, at::kLong)},
        {"total_hash_size_bits", static_cast<int64_t>(bits)},
        {"pooling_mode", static_cast<int64_t>(shape.mean)},
        {"indice_weights", c10::IValue()},
        {"feature_requires_grad", c10::IValue()},
        {"gradient_clipping", false},
        {"max_gradient", 1.0},
        {"stochastic_rounding", false},
        {"output_dtype", int64_t{0}}};
  }

  void setUpOptimizer() {
    fixed["learning_rate"] = kLearningRate;
    fixed["eps"] = kEps;
    fixed["beta1"] = kBeta1;
    fixed["beta2"] = kBeta2;
    fixed["weight_decay_mode"] = int64_t{0}; // its default is of another type
    std::vector<int64_t> widths = shape.stateWidths();
    widths.resize(2, shape.dim);
    for (size_t i : {0, 1}) {
      const char *name = i == 0 ? "momentum1" : "momentum2";
      int64_t width = widths[i];
      if (!takes(std::string(name).append("_host")))
        continue;
      fixed[std::string(name).append("_host")] =
          at::zeros({shape.tables * shape.rows * width}, at::kFloat);
      fixed[std::string(name).append("_placements")] =
          at::zeros({shape.tables}, at::kInt);
      fixed[std::string(name).append("_offsets")] =
          multiplesOf(shape.rows * width, shape.tables, at::kLong);
    }
  }

  bool takes(const std::string &name) const {
    for (const c10::Argument &argument : operation->schema().arguments())
      if (argument.name() == name)
        return true;
    return false;
  }

  at::Tensor call(const IdSet &set) {
    fixed["indices"] = viewOf(set.ids);
    fixed["offsets"] = viewOf(set.offsets);
    if (shape.weighted)
      fixed["indice_weights"] = viewOf(set.weights);
    fixed["iter"] = ++step;
    std::vector<c10::IValue> stack;
    for (const c10::Argument &argument : operation->schema().arguments()) {
      auto found = fixed.find(argument.name());
      if (found != fixed.end())
        stack.push_back(found->second);
      else if (argument.default_value())
        stack.push_back(*argument.default_value());
      else
        throw std::runtime_error("FBGEMM's operator has an argument '" +
                                 argument.name() + "' that is not known here");
    }
    operation->callBoxed(stack);
    return stack.at(0).toTensor();
  }

  const Shape shape;
  at::Tensor tables, gradient, output, compared;
  std::optional<c10::OperatorHandle> operation;
  std::map<std::string, c10::IValue> fixed;
  int64_t step = 0;
};

class LoadedTorch final : public TorchSide {
public:
  LoadedTorch(const Shape &shape, int threads, const TableValues &values)
      : shape(shape), tables(makeTables(shape, values)) {
    at::set_num_threads(threads);
  }

  std::unique_ptr<Contender> makeEmbeddingBag() override {
    return std::make_unique<EmbeddingBags>(shape, tables);
  }
  std::unique_ptr<Contender> makeFbgemm(const std::string &folder) override {
    return std::make_unique<Fbgemm>(shape, tables, folder);
  }

private:
  const Shape shape;
  at::Tensor tables;
};

} // namespace

extern "C" __attribute__((visibility("default"))) TorchSide *
neuroshard_bench_torch_side(const Shape &shape, int threads,
                            const TableValues &values) {
  return new LoadedTorch(shape, threads, values);
}

extern "C" __attribute__((visibility("default"))) const char *
neuroshard_bench_torch_folder() {
  static const std::string folder = torchFolder().string();
  return folder.c_str();
}

} // namespace neuroshard::bench
