// Matrix products: a library's, with what comes before and after them. f32
// products are in f32 (no TF32), 16-bit ones are added in f32 and rounded once.
//
// There is no kernel for the pattern matmul_bias_relu. The library's ReLU is
// max(x, 0), which makes a 0 of a NaN (users report it): the finite check would
// miss that an activation was lost. A ReLU of our own after the product is what
// the body has, where it may join its neighbours. Its gradient is another
// matter: the library multiplies or selects by a mask, in which we let NaNs
// pass.
#include <algorithm>
#include <utility>

#include "graph/base/error.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/matmul_epilogue.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Of what a library is given in the workspace.
constexpr int64_t kPartAlignment = 256;

int64_t Aligned256(int64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// The mask, then what the library takes, or the sums after it.
int64_t WorkspaceBytes(const ProductLibrary& library,
                       const BoundProduct& product) {
  return Aligned256(product.mask_bytes()) +
         std::max(library.workspace_bytes, FinishBytes(product));
}

class MatmulInstance final : public KernelInstance {
 public:
  MatmulInstance(absl::string_view op, BoundProduct product)
      : name_(op), product_(std::move(product)) {}

  // Asks the library for its algorithm on the device: with the epilogue, with
  // the bias alone, for the product alone.
  absl::Status Prepare(const ProductLibrary& library, runtime::Device& device) {
    if (product_.elements() == 0 || product_.depth == 0) {
      return absl::OkStatus();
    }
    BoundProduct asked = product_;
    if (product_.bias_at.there() && product_.bias != product_.d.dtype) {
      asked.epilogue = Epilogue::kNone;  // no epilogue takes it
    }
    while (true) {
      HT_ASSIGN_OR_RETURN(call_, library.prepare(asked, name_, device));
      called_ = asked.epilogue;
      if (call_ != nullptr) return absl::OkStatus();
      if (called_ == Epilogue::kNone) break;
      const bool gelu =
          called_ == Epilogue::kGelu || called_ == Epilogue::kGeluAux;
      asked.epilogue =
          gelu && product_.bias_at.there() ? Epilogue::kBias : Epilogue::kNone;
    }
    return ModelError(name_, ": ", library.name, " has no algorithm for ",
                      Name(product_.d.dtype), "[", product_.d.columns, ",",
                      product_.d.rows, "] of ", Name(product_.a.dtype),
                      "; use --black on the op, or other dims");
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    if (product_.elements() == 0) return absl::OkStatus();
    Launcher launch(stream, name_);
    if (product_.depth == 0) {  // a fusion is never
      launch.Zero(At(buffers, product_.d_at),
                  product_.elements() * SizeOf(product_.d.dtype));
    } else {
      HT_RETURN_IF_ERROR(Multiply(buffers, stream, launch));
    }
    const bool in_call = product_.depth > 0 && called_ != Epilogue::kNone;
    if (product_.bias_at.there() && !in_call) {
      AddBias(launch, product_, Stored(buffers), At(buffers, product_.bias_at));
    }
    if (product_.depth > 0 && called_ != product_.epilogue) {
      Finish(buffers, launch);
    }
    return launch.status();
  }

 private:
  static void* At(const Buffers& buffers, const Place& place) {
    if (!place.there()) return nullptr;
    if (place.output) return buffers.outputs[place.position];
    return const_cast<void*>(buffers.inputs[place.position]);
  }
  // Where the call leaves its product.
  void* Stored(const Buffers& buffers) const {
    const bool kept =
        product_.epilogue == Epilogue::kGeluAux && called_ != product_.epilogue;
    return At(buffers, kept ? product_.aux_at : product_.d_at);
  }

  absl::Status Multiply(const Buffers& buffers, runtime::Stream& stream,
                        Launcher& launch) {
    ProductCall::Data data;
    data.a = At(buffers, product_.a_at);
    data.b = At(buffers, product_.b_at);
    data.d = Stored(buffers);
    data.bias = At(buffers, product_.bias_at);
    if (called_ == product_.epilogue) {
      data.aux = At(buffers, product_.aux_at);
      data.sums = At(buffers, product_.sums_at);
    }
    data.workspace = buffers.workspace;
    HT_CHECK(Aligned({data.a, data.b, data.d, data.bias, data.aux, data.sums}),
             "an operand of a product that is not aligned");
    if (called_ == Epilogue::kReluGrad) {
      PackMask(launch, product_, data.aux, buffers.workspace);
      HT_RETURN_IF_ERROR(launch.status());
      data.aux = buffers.workspace;
      data.workspace = static_cast<char*>(buffers.workspace) +
                       Aligned256(product_.mask_bytes());
    }
    return call_->Run(data, stream);
  }

  void Finish(const Buffers& buffers, Launcher& launch) {
    ProductData data;
    data.d = At(buffers, product_.d_at);
    data.aux = At(buffers, product_.aux_at);
    data.summed =
        At(buffers, product_.epilogue == Epilogue::kSumA ? product_.a_at
                                                         : product_.b_at);
    data.sums = At(buffers, product_.sums_at);
    data.workspace = buffers.workspace;
    FinishProduct(launch, product_, data);
  }

  std::string name_;
  BoundProduct product_;
  Epilogue called_ = Epilogue::kNone;  // what the library does
  std::unique_ptr<ProductCall> call_;
};

// The same library without its epilogues, but for a bias: kernels of our own
// come after the product. `halftone tune` finds out which is faster.
ProductLibrary Split(const ProductLibrary& library) {
  ProductLibrary split = library;
  split.name += "_split";
  split.prepare = [library](const BoundProduct& product, absl::string_view op,
                            runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<ProductCall>> {
    const bool asks = product.epilogue == Epilogue::kNone ||
                      product.epilogue == Epilogue::kBias;
    if (!asks) return std::unique_ptr<ProductCall>();
    return library.prepare(product, op, device);
  };
  return split;
}

using Bind = BoundProduct (*)(const BoundOp&);

Candidate MakeCandidate(const ProductLibrary& library, Bind bind) {
  Candidate candidate;
  candidate.name = library.name;
  candidate.workspace_bytes = [library, bind](const BoundOp& op) {
    return WorkspaceBytes(library, bind(op));
  };
  candidate.prepare = [library, bind](const BoundOp& op,
                                      runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    auto instance = std::make_unique<MatmulInstance>(op.name(), bind(op));
    HT_RETURN_IF_ERROR(instance->Prepare(library, device));
    return std::unique_ptr<KernelInstance>(std::move(instance));
  };
  return candidate;
}

}  // namespace

void RegisterProducts(const ProductLibrary& library, KernelRegistry& registry) {
  // What cuBLASLt multiplies: (operands, result).
  const DType kTypes[][2] = {{DType::kF32, DType::kF32},
                             {DType::kF16, DType::kF16},
                             {DType::kF16, DType::kF32},
                             {DType::kBF16, DType::kBF16},
                             {DType::kBF16, DType::kF32}};
  for (const auto& types : kTypes) {
    registry.Add("matmul", types, Layout::kRowMajor,
                 MakeCandidate(library, BindMatmul));
    registry.Add("mul", types, Layout::kRowMajor,
                 MakeCandidate(library, BindMul));
  }
  for (const char* pattern : {"matmul_gelu", "matmul_gelu_grad",
                              "matmul_relu_grad", "matmul_bias_grad"}) {
    for (const ProductLibrary& each : {library, Split(library)}) {
      Candidate candidate = MakeCandidate(each, BindMatmulFusion);
      candidate.supports = [](const BoundOp& fusion) {
        return BindMatmulFusion(fusion).refused.empty();
      };
      candidate.refusal = [](const BoundOp& fusion) {
        return BindMatmulFusion(fusion).refused;
      };
      registry.AddPattern(pattern, {DType::kF32, DType::kF16, DType::kBF16},
                          {Layout::kRowMajor}, std::move(candidate));
    }
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
