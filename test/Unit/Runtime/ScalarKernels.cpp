//===- ScalarKernels.cpp - Plain loops with the kernel ABI ----------------===//
//
// The ABI passes no dim, so every kernel is a template over it, and tables of
// function pointers choose.
//
//===----------------------------------------------------------------------===//

#include "ScalarKernels.h"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace neuroshard::test {

float loadElement(Element type, const void *row, int64_t column) {
  if (type == Element::F32)
    return static_cast<const float *>(row)[column];
  if (type == Element::F16)
    return static_cast<float>(static_cast<const _Float16 *>(row)[column]);
  uint32_t bits =
      static_cast<uint32_t>(static_cast<const uint16_t *>(row)[column]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void storeElement(Element type, void *row, int64_t column, float value) {
  if (type == Element::F32) {
    static_cast<float *>(row)[column] = value;
    return;
  }
  if (type == Element::F16) {
    static_cast<_Float16 *>(row)[column] = static_cast<_Float16>(value);
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(value));
  uint32_t kept = bits >> 16;
  uint32_t rest = bits & 0xffffu;
  if (rest > 0x8000u || (rest == 0x8000u && (kept & 1u)))
    ++kept;
  static_cast<uint16_t *>(row)[column] = static_cast<uint16_t>(kept);
}

void stepElement(Optimizer optimizer, float stepSize, float gradient,
                 float mean, float &weight, float *state0, float *state1) {
  switch (optimizer) {
  case Optimizer::None:
    return;
  case Optimizer::Sgd:
    weight -= stepSize * gradient;
    return;
  case Optimizer::Adagrad:
    *state0 += gradient * gradient;
    weight -= stepSize * gradient / (std::sqrt(*state0) + kEpsilon);
    return;
  case Optimizer::RowwiseAdagrad: // the caller has added the mean to the state
    weight -= stepSize * gradient / (std::sqrt(mean) + kEpsilon);
    return;
  case Optimizer::Adam:
    *state0 = kBeta1 * *state0 + (1 - kBeta1) * gradient;
    *state1 = kBeta2 * *state1 + (1 - kBeta2) * gradient * gradient;
    weight -= stepSize * *state0 / (std::sqrt(*state1) + kEpsilon);
    return;
  }
}

namespace {

constexpr int elementSize(Element type) { return type == Element::F32 ? 4 : 2; }

template <int Dim, Element Type>
const void *weightRow(const void *base, int64_t row) {
  int64_t stride = nsrt_row_stride(Dim, elementSize(Type)) * elementSize(Type);
  return static_cast<const char *>(base) + row * stride;
}

template <int Dim, Element Type, typename Id, bool Pooled, bool Weighted>
void forward(const void *weights, const void *ids, const int64_t *offsets,
             const float *sampleWeights, float *out, int64_t outStride,
             int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; ++b) {
    float sum[Dim] = {};
    int64_t first = Pooled ? offsets[b] : b;
    int64_t last = Pooled ? offsets[b + 1] : b + 1;
    for (int64_t j = first; j < last; ++j)
      for (int c = 0; c < Dim; ++c) {
        float value = loadElement(
            Type,
            weightRow<Dim, Type>(weights, static_cast<const Id *>(ids)[j]), c);
        sum[c] += Weighted ? sampleWeights[j] * value : value;
      }
    std::memcpy(out + b * outStride, sum, sizeof(sum));
  }
}

template <int Dim, Element Type, typename Id>
void weightGradient(const void *weights, const void *ids,
                    const int64_t *gradientOffsets, const float *gradients,
                    float *out, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    const void *row =
        weightRow<Dim, Type>(weights, static_cast<const Id *>(ids)[j]);
    out[j] = 0;
    for (int c = 0; c < Dim; ++c)
      out[j] += loadElement(Type, row, c) * gradients[gradientOffsets[j] + c];
  }
}

template <int Dim, bool Weighted>
void sumGradients(int64_t begin, int64_t end, const int64_t *offsets,
                  const float *sampleWeights, const float *gradients,
                  float *sum) {
  std::fill_n(sum, Dim, 0.0f);
  for (int64_t k = begin; k < end; ++k)
    for (int c = 0; c < Dim; ++c) {
      float gradient = gradients[offsets[k] + c];
      sum[c] += Weighted ? sampleWeights[k] * gradient : gradient;
    }
}

template <int Dim> float squaredNorm(const float *gradient) {
  float norm = 0;
  for (int c = 0; c < Dim; ++c)
    norm += gradient[c] * gradient[c];
  return norm;
}

template <int Dim, Element Type>
void stepRow(Optimizer optimizer, void *weights, float *state0, float *state1,
             int64_t row, const float *gradient, float mean, float stepSize) {
  int64_t stride = nsrt_row_stride(Dim, sizeof(float));
  auto *at = const_cast<void *>(weightRow<Dim, Type>(weights, row));
  if (optimizer == Optimizer::RowwiseAdagrad)
    mean = state0[row] += mean;
  for (int c = 0; c < Dim; ++c) {
    float weight = loadElement(Type, at, c);
    stepElement(optimizer, stepSize, gradient[c], mean, weight,
                state0 ? state0 + row * stride + c : nullptr,
                state1 ? state1 + row * stride + c : nullptr);
    storeElement(Type, at, c, weight);
  }
}

template <int Dim, Element Type, Optimizer Kind, bool Weighted>
void update(void *weights, float *state0, float *state1, float *,
            const int64_t *rows, const int64_t *segments,
            const int64_t *offsets, const float *sampleWeights,
            const float *gradients, float stepSize, float, uint32_t, float,
            float, float, const float *, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    float sum[Dim];
    sumGradients<Dim, Weighted>(segments[u], segments[u + 1], offsets,
                                sampleWeights, gradients, sum);
    stepRow<Dim, Type>(Kind, weights, state0, state1, rows[u], sum,
                       squaredNorm<Dim>(sum) / Dim, stepSize);
  }
}

template <int Dim, bool Weighted>
void reduce(const void *, float *, float *, float *, const int64_t *,
            const int64_t *segments, const int64_t *offsets,
            const float *sampleWeights, const float *gradients, float, float,
            float *reduced, float *norms, int64_t begin, int64_t end) {
  int64_t stride = nsrt_row_stride(Dim, sizeof(float));
  for (int64_t u = begin; u < end; ++u) {
    sumGradients<Dim, Weighted>(segments[u], segments[u + 1], offsets,
                                sampleWeights, gradients, reduced + u * stride);
    norms[u] = squaredNorm<Dim>(reduced + u * stride);
  }
}

template <int Dim, int TableDim, Element Type>
void apply(void *weights, float *state0, float *, float *, const int64_t *rows,
           const float *reduced, const float *norms, float stepSize, float,
           uint32_t, float, float, float, int64_t begin, int64_t end) {
  int64_t stride = nsrt_row_stride(Dim, sizeof(float));
  for (int64_t u = begin; u < end; ++u)
    stepRow<Dim, Type>(Optimizer::RowwiseAdagrad, weights, state0, nullptr,
                       rows[u], reduced + u * stride, norms[u] / TableDim,
                       stepSize);
}

/// Calls choose(std::integral_constant<int, dim>).
template <typename Choose, int... Dims>
auto byDim(int dim, const Choose &choose, std::integer_sequence<int, Dims...>) {
  using Kernel = decltype(choose(std::integral_constant<int, 1>()));
  std::array<Kernel, sizeof...(Dims)> kernels = {
      choose(std::integral_constant<int, Dims + 1>())...};
  return kernels.at(static_cast<size_t>(dim - 1));
}

template <typename Choose> auto byDim(int dim, const Choose &choose) {
  return byDim(dim, choose, std::make_integer_sequence<int, kMaxDim>());
}

template <typename Choose> auto byElement(Element type, const Choose &choose) {
  if (type == Element::F32)
    return choose(std::integral_constant<Element, Element::F32>());
  if (type == Element::F16)
    return choose(std::integral_constant<Element, Element::F16>());
  return choose(std::integral_constant<Element, Element::BF16>());
}

template <typename Choose> auto byBool(bool value, const Choose &choose) {
  return value ? choose(std::true_type()) : choose(std::false_type());
}

} // namespace

nsrt_lookup_kernel forwardKernel(int dim, Element type, int idBytes,
                                 bool pooled, bool weighted) {
  return byDim(dim, [&](auto d) {
    return byElement(type, [&](auto e) {
      return byBool(pooled, [&](auto p) {
        return byBool(weighted, [&](auto w) -> nsrt_lookup_kernel {
          return idBytes == 4 ? forward<d(), e(), int32_t, p(), w()>
                              : forward<d(), e(), int64_t, p(), w()>;
        });
      });
    });
  });
}

nsrt_weight_gradient_kernel weightGradientKernel(int dim, Element type,
                                                 int idBytes) {
  return byDim(dim, [&](auto d) {
    return byElement(type, [&](auto e) -> nsrt_weight_gradient_kernel {
      return idBytes == 4 ? weightGradient<d(), e(), int32_t>
                          : weightGradient<d(), e(), int64_t>;
    });
  });
}

nsrt_update_kernel updateKernel(int dim, Element type, Optimizer optimizer,
                                bool weighted) {
  return byDim(dim, [&](auto d) {
    return byElement(type, [&](auto e) {
      return byBool(weighted, [&](auto w) -> nsrt_update_kernel {
        switch (optimizer) {
        case Optimizer::None:
          return nullptr;
        case Optimizer::Sgd:
          return update<d(), e(), Optimizer::Sgd, w()>;
        case Optimizer::Adagrad:
          return update<d(), e(), Optimizer::Adagrad, w()>;
        case Optimizer::RowwiseAdagrad:
          return update<d(), e(), Optimizer::RowwiseAdagrad, w()>;
        case Optimizer::Adam:
          return update<d(), e(), Optimizer::Adam, w()>;
        }
        return nullptr;
      });
    });
  });
}

nsrt_reduce_kernel reduceKernel(int dim, bool weighted) {
  return byDim(dim, [&](auto d) {
    return byBool(weighted, [&](auto w) -> nsrt_reduce_kernel {
      return reduce<d(), w()>;
    });
  });
}

nsrt_apply_kernel applyKernel(int dim, int tableDim, Element type) {
  return byDim(dim, [&](auto d) {
    return byDim(tableDim, [&](auto t) {
      return byElement(type, [&](auto e) -> nsrt_apply_kernel {
        return apply<d(), t(), e()>;
      });
    });
  });
}

} // namespace neuroshard::test
