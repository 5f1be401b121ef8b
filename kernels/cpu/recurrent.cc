// Recurrent layers. The course is kernels/common/recurrent_run.h's; products
// are oneDNN's, with weights of the steps packed once: of bf16 where there are
// instructions for that, else of f32 whatever the storage.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/base/half.h"
#include "graph/base/philox.h"
#include "kernels/common/dispatch.h"
#include "kernels/common/recurrent_run.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/onednn_product.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/sums.h"
#include "kernels/functors/cast.h"
#include "kernels/register_all.h"

namespace halftone {
namespace kernels {
namespace {

using Which = RecurrentProduct;

// All products of an op; those of the first layer and of the others.
class Products {
 public:
  // Throws dnnl::error.
  Products(const RecurrentShape& shape, DType operands, bool backward,
           int threads) {
    const auto add = [&](Which which) {
      const bool varies = shape.layers > 1 && DependsOnInput(which);
      for (int later = 0; later < (varies ? 2 : 1); ++later) {
        at_[static_cast<int>(which)][later] = static_cast<int>(all_.size());
        all_.emplace_back(ProductOf(shape, which, later), operands,
                          IsOfWeight(which) ? operands : DType::kF32,
                          IsRepeated(which), threads);
        bytes_ = std::max(bytes_, all_.back().workspace_bytes());
      }
    };
    if (backward) {
      for (Which which : {Which::kInputGrad, Which::kInputWeightGrad,
                          Which::kStepGrad, Which::kStateWeightGrad}) {
        add(which);
      }
    } else {
      add(Which::kGates);
      add(Which::kStep);
    }
  }
  OnednnProduct& Of(Which which, int64_t layer) {
    const bool later = layer > 0 && DependsOnInput(which);
    return all_[at_[static_cast<int>(which)][later ? 1 : 0]];
  }
  // Packed weights stay while other products run.
  int64_t bytes() const { return 2 * Aligned(); }
  int64_t Aligned() const {
    constexpr int64_t kAlignment = RecurrentWorkspace::kAlignment;
    return (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  std::vector<OnednnProduct> all_;
  int at_[static_cast<int>(Which::kCount)][2] = {};
  int64_t bytes_ = 0;
};

// C: float, or what the op is of.
template <typename C>
class CpuRecurrence {
 public:
  using Compute = C;
  static constexpr bool kConverts = std::is_same<C, float>::value;

  CpuRecurrence(const RecurrentShape& shape, const RecurrentDraws& draws,
                Products& products, const Buffers& buffers, void* scratch,
                int threads)
      : s_(shape),
        draws_(draws),
        products_(products),
        buffers_(buffers),
        packed_(scratch),
        scratch_(static_cast<char*>(scratch) + products.Aligned()),
        threads_(threads) {}

  template <typename Body>
  void ForEach(int64_t rows, int64_t columns, const Body& body) {
    if (rows == 1) {
      return ParallelFor(
          threads_, columns, kMapGrain,
          [&](int64_t begin, int64_t end) { Units(body.At(0), begin, end); });
    }
    const int64_t grain = std::max<int64_t>(1, kMapGrain / (4 * columns));
    ParallelFor(threads_, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Units(body.At(row), 0, columns);
      }
    });
  }

  absl::Status Repeat(Which which, const C* y) {
    return products_.Of(which, 0).Pack(y, packed_);
  }
  absl::Status Multiply(Which which, int64_t layer, const C* x, const C* y,
                        void* out) {
    return products_.Of(which, layer)
        .Run(x, y, out, IsRepeated(which) ? packed_ : scratch_);
  }
  absl::Status MultiplyToWeight(Which which, int64_t layer, const C* x,
                                const C* y, void* out, void* scratch) {
    if (s_.dtype == DTypeOf<C>()) return Multiply(which, layer, x, y, out);
    float* to = static_cast<float*>(scratch);
    HT_RETURN_IF_ERROR(Multiply(which, layer, x, y, to));
    const int64_t columns =
        which == Which::kStateWeightGrad ? s_.hidden : s_.width(layer);
    Store(to, s_.gate_columns() * columns, out);
    return absl::OkStatus();
  }

  const float* LoadFloats(const void* tensor, int64_t n, void* scratch) {
    if (s_.dtype == DType::kF32) return static_cast<const float*>(tensor);
    float* to = static_cast<float*>(scratch);
    const char* from = static_cast<const char*>(tensor);
    Each(n, [=, dtype = s_.dtype](int64_t begin, int64_t end) {
      ToFloat(dtype, from + begin * SizeOf(dtype), to + begin, end - begin);
    });
    return to;
  }
  const C* Load(const void* tensor, int64_t n, void* scratch) {
    if constexpr (kConverts) {
      return LoadFloats(tensor, n, scratch);
    } else {
      return static_cast<const C*>(tensor);
    }
  }
  void Store(const float* from, int64_t n, void* tensor) {
    char* to = static_cast<char*>(tensor);
    Each(s_.dtype == DType::kF32 && from == tensor ? 0 : n,
         [=, dtype = s_.dtype](int64_t begin, int64_t end) {
           FromFloat(dtype, from + begin, to + begin * SizeOf(dtype),
                     end - begin);
         });
  }
  void StoreResult(const C* from, int64_t n, void* tensor) {
    if constexpr (kConverts) Store(from, n, tensor);
  }
  void Round(float* x, int64_t n) {
    if (kConverts && s_.dtype != DType::kF32) RoundTo(s_.dtype, x, n);
  }
  // Row after row, whatever the threads.
  void SumColumns(const C* x, int64_t rows, int64_t columns, float* out) {
    const int64_t grain = std::max<int64_t>(kLanes, kMapGrain / rows);
    ParallelFor(threads_, columns, grain, [=](int64_t begin, int64_t end) {
      ForIsa([=] {
        for (int64_t j = begin; j < end; ++j) out[j] = 0;
        for (int64_t row = 0; row < rows; ++row) {
          const C* from = x + row * columns;
#pragma GCC ivdep
          for (int64_t j = begin; j < end; ++j) {
            out[j] += functors::Widen(from[j]);
          }
        }
      });
    });
  }
  void Copy(void* to, const void* from, int64_t bytes) {
    std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
  }
  void Zero(void* to, int64_t bytes) {
    std::fill_n(static_cast<char*>(to), bytes, char{0});
  }

  // An element's number within its sample is (layer * T + t) * columns + j.
  template <typename E>
  void Dropout(int64_t layer, E* x) {
    if (!draws_.dropout.Drops()) return;
    const auto scalar = [&](int i) {
      return static_cast<uint64_t>(
          *static_cast<const int64_t*>(buffers_.inputs[draws_.seed + i]));
    };
    const uint64_t key = PhiloxKey(scalar(0), draws_.stream);
    const uint64_t step = scalar(1), first_sample = scalar(2);
    const int64_t columns = s_.out_columns();
    ParallelFor(threads_, s_.rows(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = (layer * s_.steps + row / s_.batch) * columns;
        E* const y = x + row * columns;
        ApplyDropout(draws_.dropout, key, step, first_sample + row % s_.batch,
                     first, columns, y, y);
        if constexpr (std::is_same<E, float>::value) {
          if (s_.dtype != DType::kF32) RoundTo(s_.dtype, y, columns);
        }
      }
    });
  }

 private:
  template <typename Body>
  static void Units(const Body& body, int64_t begin, int64_t end) {
    ForIsa([=] {
#pragma GCC ivdep
      for (int64_t j = begin; j < end; ++j) body(j);
    });
  }
  template <typename Block>
  void Each(int64_t n, const Block& block) {
    ParallelFor(threads_, n, kMapGrain, block);
  }

  const RecurrentShape& s_;
  const RecurrentDraws& draws_;
  Products& products_;
  const Buffers& buffers_;
  void *packed_, *scratch_;
  int threads_;
};

template <typename C>
class RecurrentKernel final : public KernelInstance {
 public:
  // Throws dnnl::error.
  RecurrentKernel(const BoundOp& op, bool backward)
      : backward_(backward),
        shape_(op),
        slots_(backward ? RecurrentSlots::Backward(op)
                        : RecurrentSlots::Forward(op)),
        workspace_(backward ? RecurrentWorkspace::Backward(shape_, sizeof(C))
                            : RecurrentWorkspace::Forward(
                                  shape_, slots_.gates >= 0, sizeof(C))),
        draws_(op),
        products_(shape_, DTypeOf<C>(), backward, op.context().threads) {}

  int64_t workspace_bytes() const {
    return workspace_.bytes + products_.bytes();
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    OnednnUseThreads(stream.threads());
    void* scratch = static_cast<char*>(buffers.workspace) + workspace_.bytes;
    CpuRecurrence<C> device(shape_, draws_, products_, buffers, scratch,
                            stream.threads());
    RecurrentRun<CpuRecurrence<C>> run(shape_, slots_, workspace_, buffers,
                                       device);
    return backward_ ? run.Backward() : run.Forward();
  }

 private:
  bool backward_;
  RecurrentShape shape_;
  RecurrentSlots slots_;
  RecurrentWorkspace workspace_;
  RecurrentDraws draws_;
  Products products_;
};

// The library counts in 32 bits.
bool IsSmall(const BoundOp& op) {
  const RecurrentShape s(op);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return s.rows() > 0 && s.input > 0 &&
         s.rows() < kMost / std::max(s.kept_columns(), s.widest()) &&
         s.widest() < kMost / s.gate_columns();
}

// With what products read as a TypeTag.
template <typename Body>
auto ForCompute(const BoundOp& op, const Body& body) {
  if (op.Input("Input").dtype == DType::kBF16 && OnednnHasBf16()) {
    return body(TypeTag<bfloat16>());
  }
  return body(TypeTag<float>());
}

Candidate MakeRecurrent(bool backward) {
  Candidate candidate;
  candidate.name = "onednn";
  candidate.supports = [backward](const BoundOp& op) {
    if (!IsSmall(op)) return false;
    try {
      ForCompute(op, [&](auto tag) {
        RecurrentKernel<typename decltype(tag)::type>(op, backward);
      });
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  };
  candidate.workspace_bytes = [backward](const BoundOp& op) {
    return ForCompute(op, [&](auto tag) {
      return RecurrentKernel<typename decltype(tag)::type>(op, backward)
          .workspace_bytes();
    });
  };
  candidate.prepare = [backward](const BoundOp& op, runtime::Device&)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    try {
      return ForCompute(op, [&](auto tag) -> std::unique_ptr<KernelInstance> {
        using Kernel = RecurrentKernel<typename decltype(tag)::type>;
        return std::make_unique<Kernel>(op, backward);
      });
    } catch (const dnnl::error& error) {
      return DeviceError(op.name(), ": oneDNN: ", error.what());
    }
  };
  return candidate;
}

}  // namespace

void RegisterCpuRecurrent(KernelRegistry& registry) {
  AddForSchema(registry, "rnn", MakeRecurrent(false), {"TLength"});
  AddForSchema(registry, "rnn_eval", MakeRecurrent(false), {"TLength"});
  AddForSchema(registry, "rnn_grad", MakeRecurrent(true), {"TLength"});
}

}  // namespace kernels
}  // namespace halftone
