// Recurrent layers: products of a library, or loops where its operands would
// not be aligned, and a kernel for the gates of each step. The course is
// kernels/common/recurrent_run.h's: launches alone, so that it can be captured;
// nothing is added atomically, so that the bits are the same each time.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "graph/base/philox.h"
#include "kernels/common/recurrent_run.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Which = RecurrentProduct;

// A thread for each unit of each row.
template <typename Body>
__global__ void __launch_bounds__(kThreads)
    UnitKernel(const __grid_constant__ Body body, Divider columns, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t row = columns.Divide(i);
  body.At(row)(i - row * columns.divisor());
}

// out[j] = the sum of column j, row after row.
template <typename C>
struct ColumnSums {
  const C* x;
  int64_t rows, columns;
  float* out;
  HT_HOST_DEVICE ColumnSums At(int64_t) const { return *this; }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    float sum = 0.0f;
    for (int64_t row = 0; row < rows; ++row)
      sum += functors::Widen(x[row * columns + j]);
    out[j] = sum;
  }
};

// A thread for each element of the product, added up in f32.
template <typename C, typename Out>
struct ProductBody {
  Matrix x, y;
  int64_t out_pitch;
  const C *x_data, *y_data;
  Out* out;
  HT_HOST_DEVICE ProductBody At(int64_t row) const {
    ProductBody body = *this;
    body.x_data += row * x.row_stride;
    body.out += row * out_pitch;
    return body;
  }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    float sum = 0.0f;
    for (int64_t k = 0; k < x.columns; ++k) {
      sum += functors::Widen(x_data[k * x.column_stride]) *
             functors::Widen(y_data[k * y.row_stride + j * y.column_stride]);
    }
    out[j] = functors::Cast<Out>(sum);
  }
};

// Dropout of row t * batch + b; elements are counted as on the CPU.
template <typename E>
struct DropoutRows {
  functors::DropoutOp dropout;
  uint32_t stream;
  const int64_t *seed, *step, *first_sample;
  int64_t batch, columns, first;
  E* x;
  int64_t sample = 0;
  HT_HOST_DEVICE DropoutRows At(int64_t row) const {
    DropoutRows body = *this;
    body.sample = *first_sample + row % batch;
    body.first += row / batch * columns;
    body.x += row * columns;
    return body;
  }
  HT_HOST_DEVICE void operator()(int64_t j) const {
    const Philox4 draw =
        PhiloxDraw(PhiloxKey(static_cast<uint64_t>(*seed), stream),
                   static_cast<uint64_t>(*step), static_cast<uint64_t>(sample),
                   static_cast<uint32_t>((first + j) / 4));
    x[j] = functors::Cast<E>(
        dropout(functors::Widen(x[j]), draw.x[(first + j) % 4]));
  }
};

// An op's products as a library has prepared them; none: loops.
class Calls {
 public:
  absl::Status Prepare(const ProductLibrary& library,
                       const RecurrentShape& shape, bool backward,
                       absl::string_view op, runtime::Device& device) {
    const auto add = [&](Which which) -> absl::Status {
      const DType out = IsOfWeight(which) ? shape.dtype : DType::kF32;
      const bool varies = shape.layers > 1 && DependsOnInput(which);
      for (int later = 0; later < (varies ? 2 : 1); ++later) {
        const BoundProduct product = BindProduct(ProductOf(shape, which, later),
                                                 shape.dtype, shape.dtype, out);
        auto& call = calls_[static_cast<int>(which)][later];
        HT_ASSIGN_OR_RETURN(call, library.prepare(product, op, device));
        if (call != nullptr) continue;
        return ModelError(op, ": ", library.name, " has no algorithm for ",
                          product.d.columns, " x ", product.d.rows,
                          " products of ", Name(shape.dtype),
                          "; use --black on the op");
      }
      return absl::OkStatus();
    };
    if (!backward) {
      HT_RETURN_IF_ERROR(add(Which::kGates));
      return add(Which::kStep);
    }
    HT_RETURN_IF_ERROR(add(Which::kInputGrad));
    HT_RETURN_IF_ERROR(add(Which::kInputWeightGrad));
    HT_RETURN_IF_ERROR(add(Which::kStepGrad));
    return add(Which::kStateWeightGrad);
  }
  // Null: there is no library.
  ProductCall* Of(Which which, int64_t layer) const {
    const bool later = layer > 0 && DependsOnInput(which);
    return calls_[static_cast<int>(which)][later ? 1 : 0].get();
  }

 private:
  std::unique_ptr<ProductCall> calls_[static_cast<int>(Which::kCount)][2];
};

// T is C.
template <typename C>
class CudaRecurrence {
 public:
  using Compute = C;
  static constexpr bool kConverts = false;

  CudaRecurrence(const RecurrentShape& shape, const RecurrentDraws& draws,
                 const Calls& calls, const Buffers& buffers, void* scratch,
                 runtime::Stream& stream, Launcher& launch)
      : s_(shape),
        draws_(draws),
        calls_(calls),
        buffers_(buffers),
        scratch_(scratch),
        stream_(stream),
        launch_(launch) {}

  template <typename Body>
  void ForEach(int64_t rows, int64_t columns, const Body& body) {
    const int64_t n = rows * columns;
    launch_(UnitKernel<Body>, CeilDiv(n, kThreads), kThreads, body,
            Divider(columns), n);
  }

  absl::Status Repeat(Which, const C*) { return absl::OkStatus(); }
  absl::Status Multiply(Which which, int64_t layer, const C* x, const C* y,
                        float* out) {
    return Product(which, layer, x, y, out);
  }
  absl::Status MultiplyToWeight(Which which, int64_t layer, const C* x,
                                const C* y, void* out, void*) {
    return Product(which, layer, x, y, static_cast<C*>(out));
  }

  const C* Load(const void* tensor, int64_t, void*) {
    return static_cast<const C*>(tensor);
  }
  const float* LoadFloats(const void* tensor, int64_t n, void* scratch) {
    const C* from = static_cast<const C*>(tensor);
    if constexpr (std::is_same<C, float>::value) {
      return from;
    } else {
      float* to = static_cast<float*>(scratch);
      ForEach(1, n, functors::Converted<C, float>{from, to});
      return to;
    }
  }
  void Store(const float* from, int64_t n, void* tensor) {
    ForEach(1, n, functors::Converted<float, C>{from, static_cast<C*>(tensor)});
  }
  void StoreResult(const C*, int64_t, void*) {}
  void Round(float*, int64_t) {}
  void SumColumns(const C* x, int64_t rows, int64_t columns, float* out) {
    ForEach(1, columns, ColumnSums<C>{x, rows, columns, out});
  }
  void Copy(void* to, const void* from, int64_t bytes) {
    launch_.Copy(to, from, bytes);
  }
  void Zero(void* to, int64_t bytes) { launch_.Zero(to, bytes); }

  template <typename E>
  void Dropout(int64_t layer, E* x) {
    if (!draws_.dropout.Drops()) return;
    const auto scalar = [&](int i) {
      return static_cast<const int64_t*>(buffers_.inputs[draws_.seed + i]);
    };
    const int64_t columns = s_.out_columns();
    ForEach(s_.rows(), columns,
            DropoutRows<E>{draws_.dropout, draws_.stream, scalar(0), scalar(1),
                           scalar(2), s_.batch, columns,
                           layer * s_.steps * columns, x});
  }

 private:
  template <typename Out>
  absl::Status Product(Which which, int64_t layer, const C* x, const C* y,
                       Out* out) {
    if (ProductCall* call = calls_.Of(which, layer)) {
      HT_RETURN_IF_ERROR(launch_.status());
      ProductCall::Data data;
      data.a = y;
      data.b = x;
      data.d = out;
      data.workspace = scratch_;
      return call->Run(data, stream_);
    }
    const kernels::Product product = ProductOf(s_, which, layer);
    ForEach(product.out.rows, product.out.columns,
            ProductBody<C, Out>{product.x, product.y, product.out.row_stride, x,
                                y, out});
    return launch_.status();
  }

  const RecurrentShape& s_;
  const RecurrentDraws& draws_;
  const Calls& calls_;
  const Buffers& buffers_;
  void* scratch_;
  runtime::Stream& stream_;
  Launcher& launch_;
};

template <typename C>
class RecurrentInstance final : public KernelInstance {
 public:
  RecurrentInstance(const BoundOp& op, bool backward, Calls calls)
      : name_(op.name()),
        backward_(backward),
        shape_(op),
        slots_(backward ? RecurrentSlots::Backward(op)
                        : RecurrentSlots::Forward(op)),
        workspace_(backward ? RecurrentWorkspace::Backward(shape_, sizeof(C))
                            : RecurrentWorkspace::Forward(
                                  shape_, slots_.gates >= 0, sizeof(C))),
        draws_(op),
        calls_(std::move(calls)) {}

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    Launcher launch(stream, name_);
    void* scratch = static_cast<char*>(buffers.workspace) + workspace_.bytes;
    CudaRecurrence<C> device(shape_, draws_, calls_, buffers, scratch, stream,
                             launch);
    RecurrentRun<CudaRecurrence<C>> run(shape_, slots_, workspace_, buffers,
                                        device);
    HT_RETURN_IF_ERROR(backward_ ? run.Backward() : run.Forward());
    return launch.status();
  }

 private:
  std::string name_;
  bool backward_;
  RecurrentShape shape_;
  RecurrentSlots slots_;
  RecurrentWorkspace workspace_;
  RecurrentDraws draws_;
  Calls calls_;
};

int64_t WorkspaceBytes(const BoundOp& op, bool backward) {
  const RecurrentShape shape(op);
  const int64_t compute = SizeOf(shape.dtype);
  const auto workspace =
      backward ? RecurrentWorkspace::Backward(shape, compute)
               : RecurrentWorkspace::Forward(
                     shape, RecurrentSlots::Forward(op).gates >= 0, compute);
  return workspace.bytes;
}

// Steps are pieces of tensors, and the library wants all of them aligned.
bool AreStepsAligned(const BoundOp& op) {
  return op.Int("hidden_size") * SizeOf(op.Input("Input").dtype) % 16 == 0;
}

// library: null for loops.
Candidate MakeRecurrent(const ProductLibrary* library, bool backward) {
  Candidate candidate;
  candidate.name = library == nullptr ? "own" : library->name;
  const ProductLibrary used = library == nullptr ? ProductLibrary() : *library;
  if (library != nullptr) candidate.supports = AreStepsAligned;
  candidate.workspace_bytes = [backward, used](const BoundOp& op) {
    return WorkspaceBytes(op, backward) + used.workspace_bytes;
  };
  candidate.prepare = [backward, used](const BoundOp& op,
                                       runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    Calls calls;
    const RecurrentShape shape(op);
    if (used.prepare != nullptr) {
      HT_RETURN_IF_ERROR(
          calls.Prepare(used, shape, backward, op.name(), device));
    }
    std::unique_ptr<KernelInstance> instance;
    DispatchType(FloatTypes(), shape.dtype, [&](auto tag) {
      using C = typename decltype(tag)::type;
      instance = std::make_unique<RecurrentInstance<C>>(op, backward,
                                                        std::move(calls));
    });
    return instance;
  };
  return candidate;
}

void Register(const ProductLibrary* library, KernelRegistry& registry) {
  for (const char* op : {"rnn", "rnn_eval"}) {
    AddForSchema(registry, op, MakeRecurrent(library, false), {"TLength"});
  }
  AddForSchema(registry, "rnn_grad", MakeRecurrent(library, true), {"TLength"});
}

}  // namespace

void RegisterRecurrent(const ProductLibrary& library,
                       KernelRegistry& registry) {
  Register(&library, registry);
}

void RegisterCudaRecurrent(KernelRegistry& registry) {
  Register(nullptr, registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
