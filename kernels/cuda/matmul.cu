// Matrix products through cuBLASLt, with a bias in its epilogue. f32 products
// are in f32 (no TF32), 16-bit ones are added in f32 and rounded once.
//
// cuBLASLt takes matrices by columns: see StoredAs.
#include <cublasLt.h>

#include <memory>
#include <string>
#include <utility>

#include "graph/base/error.h"
#include "kernels/common/matmul_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/register_all.h"
#include "kernels/functors/elementwise.h"
#include "runtime/device/cuda/cublas_error.h"
#include "runtime/device/cuda/cuda_device.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// What NVIDIA recommends for sm_90.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
// Of every operand's first element. The library would expect 256 bytes, which
// a plan's arenas give, but no kernel moves more than 16 at once.
constexpr uint32_t kAlignment = 16;

cudaDataType_t DataType(DType dtype) {
  if (dtype == DType::kF16) return CUDA_R_16F;
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <typename T, cublasStatus_t (*kDestroy)(T)>
struct Destroyer {
  using pointer = T;
  void operator()(T object) const { kDestroy(object); }
};
template <typename T, cublasStatus_t (*kDestroy)(T)>
using Owned = std::unique_ptr<T, Destroyer<T, kDestroy>>;

using Handle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixDesc = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference =
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

absl::StatusOr<MatrixDesc> Describe(const Matrix& m, int64_t batch, DType dtype,
                                    absl::string_view op) {
  const Stored stored = StoredAs(m);
  cublasLtMatrixLayout_t layout = nullptr;
  HT_RETURN_IF_ERROR(
      HT_CUDA(cublasLtMatrixLayoutCreate(
                  &layout, DataType(dtype), static_cast<uint64_t>(stored.width),
                  static_cast<uint64_t>(stored.height), stored.pitch),
              op));
  MatrixDesc owned(layout);
  const int32_t count = static_cast<int32_t>(batch);
  const int64_t stride = m.batch > 1 ? m.batch_stride : 0;
  HT_RETURN_IF_ERROR(HT_CUDA(
      cublasLtMatrixLayoutSetAttribute(
          layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
      op));
  HT_RETURN_IF_ERROR(
      HT_CUDA(cublasLtMatrixLayoutSetAttribute(
                  layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                  sizeof(stride)),
              op));
  return owned;
}

template <typename T>
absl::Status Set(cublasLtMatmulDesc_t desc,
                 cublasLtMatmulDescAttributes_t attribute, const T& value,
                 absl::string_view op) {
  return HT_CUDA(
      cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
      op);
}

// out += bias in f32: where the bias has another dtype than the result, which
// no epilogue takes.
struct BiasSum {
  Operand out, bias;
  int64_t elements;

  BiasSum(const TensorDesc& to, const TensorDesc& from)
      : out(to.dtype, to, StridesOf(to)),
        bias(from.dtype, to, BroadcastStrides(from, to, to.rank() - 1)),
        elements(to.elements()) {}
  void Run(Launcher& launch, void* data, const void* bias_data) const {
    MapBinary(launch, out, data, bias, bias_data, out.dtype, data, elements,
              functors::AddOp());
  }
};

class MatmulInstance final : public KernelInstance {
 public:
  // `bias`: its position among the inputs; -1: none.
  MatmulInstance(const BoundOp& op, const Product& product, int bias)
      : name_(op.name()),
        product_(product),
        in_(op.Input("X").dtype),
        out_(op.Output("Out")),
        bias_(bias) {
    if (bias < 0) return;
    const TensorDesc& desc = op.inputs()[bias];
    if (desc.dtype != out_.dtype || AddsNothing()) {
      bias_sum_ = std::make_unique<BiasSum>(out_, desc);
    }
  }

  // Asks the library for its algorithm on the device.
  absl::Status Prepare(runtime::Device& device) {
    if (out_.elements() == 0 || AddsNothing()) return absl::OkStatus();
    HT_RETURN_IF_ERROR(static_cast<runtime::CudaDevice&>(device).Use());
    cublasLtHandle_t handle = nullptr;
    HT_RETURN_IF_ERROR(HT_CUDA(cublasLtCreate(&handle), name_));
    handle_.reset(handle);
    const int64_t batch = product_.out.batch;
    HT_ASSIGN_OR_RETURN(x_, Describe(product_.x, batch, in_, name_));
    HT_ASSIGN_OR_RETURN(y_, Describe(product_.y, batch, in_, name_));
    HT_ASSIGN_OR_RETURN(to_, Describe(product_.out, batch, out_.dtype, name_));
    HT_RETURN_IF_ERROR(MakeDesc());
    return ChooseAlgorithm();
  }

  absl::Status Enqueue(const Buffers& buffers,
                       runtime::Stream& stream) override {
    if (out_.elements() == 0) return absl::OkStatus();
    void* out = buffers.outputs[0];
    HT_CHECK(Aligned({buffers.inputs[0], buffers.inputs[1], out}),
             "an operand of cuBLASLt that is not aligned");
    Launcher launch(stream, name_);
    if (AddsNothing()) {
      launch.Zero(out, out_.bytes());
    } else {
      HT_RETURN_IF_ERROR(Multiply(buffers, runtime::CudaStreamOf(stream)));
    }
    if (bias_sum_ != nullptr) {
      bias_sum_->Run(launch, out, buffers.inputs[bias_]);
    }
    return launch.status();
  }

 private:
  bool AddsNothing() const { return product_.x.columns == 0; }
  bool InEpilogue() const { return bias_ >= 0 && bias_sum_ == nullptr; }

  absl::Status MakeDesc() {
    cublasLtMatmulDesc_t desc = nullptr;
    HT_RETURN_IF_ERROR(
        HT_CUDA(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                name_));
    desc_.reset(desc);
    const auto operation = [](const Matrix& m) {
      return StoredAs(m).transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    HT_RETURN_IF_ERROR(
        Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(product_.y), name_));
    HT_RETURN_IF_ERROR(
        Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(product_.x), name_));
    if (!InEpilogue()) return absl::OkStatus();
    // One number for each row of out^T.
    return Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS,
               name_);
  }

  absl::Status ChooseAlgorithm() {
    cublasLtMatmulPreference_t preference = nullptr;
    HT_RETURN_IF_ERROR(
        HT_CUDA(cublasLtMatmulPreferenceCreate(&preference), name_));
    const Preference owned(preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                            const auto& value) {
      return HT_CUDA(cublasLtMatmulPreferenceSetAttribute(
                         preference, attribute, &value, sizeof(value)),
                     name_);
    };
    HT_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                              uint64_t{kWorkspaceBytes}));
    // Parts of a product are added in f32, in one order.
    HT_RETURN_IF_ERROR(
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE |
                        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
    for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      HT_RETURN_IF_ERROR(prefer(attribute, kAlignment));
    }
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    HT_RETURN_IF_ERROR(HT_CUDA(
        cublasLtMatmulAlgoGetHeuristic(handle_.get(), desc_.get(), y_.get(),
                                       x_.get(), to_.get(), to_.get(),
                                       preference, 1, &result, &found),
        name_));
    if (found == 0) {
      return ModelError(name_, ": cuBLASLt has no algorithm for ",
                        ToString(out_), " of ", Name(in_),
                        "; use --black on the op, or other dims");
    }
    algorithm_ = result.algo;
    return absl::OkStatus();
  }

  absl::Status Multiply(const Buffers& buffers, cudaStream_t stream) {
    if (InEpilogue()) {
      HT_RETURN_IF_ERROR(Set(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                             buffers.inputs[bias_], name_));
    }
    const float one = 1.0f, zero = 0.0f;
    void* out = buffers.outputs[0];
    return HT_CUDA(
        cublasLtMatmul(handle_.get(), desc_.get(), &one, buffers.inputs[1],
                       y_.get(), buffers.inputs[0], x_.get(), &zero, out,
                       to_.get(), out, to_.get(), &algorithm_,
                       buffers.workspace, kWorkspaceBytes, stream),
        name_);
  }

  std::string name_;
  Product product_;
  DType in_;
  TensorDesc out_;
  int bias_;
  std::unique_ptr<BiasSum> bias_sum_;
  Handle handle_;
  MatmulDesc desc_;
  MatrixDesc x_, y_, to_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

Candidate MakeMatmul(Product (*product_of)(const BoundOp&), bool has_bias) {
  Candidate candidate;
  candidate.name = "cublaslt";
  candidate.workspace_bytes = [](const BoundOp&) { return kWorkspaceBytes; };
  candidate.prepare = [product_of, has_bias](const BoundOp& op,
                                             runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<KernelInstance>> {
    auto instance = std::make_unique<MatmulInstance>(
        op, product_of(op), has_bias ? op.InputIndex("Bias") : -1);
    HT_RETURN_IF_ERROR(instance->Prepare(device));
    return std::unique_ptr<KernelInstance>(std::move(instance));
  };
  return candidate;
}

}  // namespace

// There is no kernel for the pattern matmul_bias_relu. The library's ReLU is
// max(x, 0), of which NVIDIA does not say what it makes of a NaN; if a 0, the
// finite check would miss that an activation was lost. And a ReLU of our own
// after the product is what the body has, where it may join its neighbours.
void RegisterCudaMatmul(KernelRegistry& registry) {
  // What cuBLASLt multiplies: (operands, result).
  const DType kTypes[][2] = {{DType::kF32, DType::kF32},
                             {DType::kF16, DType::kF16},
                             {DType::kF16, DType::kF32},
                             {DType::kBF16, DType::kBF16},
                             {DType::kBF16, DType::kF32}};
  for (const auto& types : kTypes) {
    registry.Add("cuda", "matmul", types, Layout::kRowMajor,
                 MakeMatmul(MatmulOf, true));
    registry.Add("cuda", "mul", types, Layout::kRowMajor,
                 MakeMatmul(MulOf, false));
  }
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
