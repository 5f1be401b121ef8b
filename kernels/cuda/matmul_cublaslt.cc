// Where cuBLASLt's documentation is silent this relies on what the tests of
// NVIDIA's own bindings (nvmath-python) hold it to: its gelu is by tanh; row r
// of a column of a mask is bit r % 8 of byte r / 8; there is no gradient of a
// product of depth 1, and no sum of an operand of one row. None of it has run
// here on a device.
#include "kernels/cuda/matmul_cublaslt.h"

#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "graph/base/error.h"
#include "kernels/cuda/register_all.h"
#include "runtime/device/cuda/cublas_error.h"
#include "runtime/device/cuda/native.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// What NVIDIA recommends for its H100.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
// Of every operand's first element. The library would expect 256 bytes, which
// a plan's arenas give, but no kernel moves more than 16 at once.
constexpr uint32_t kAlignment = 16;

cudaDataType_t DataType(DType dtype) {
  if (dtype == DType::kF16) return CUDA_R_16F;
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtEpilogue_t EpilogueOf(const BoundProduct& product) {
  const bool bias = product.bias_at.there();
  const bool sums = product.sums_at.there();
  switch (product.epilogue) {
    case Epilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kBias:  // one number for each row of d
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kGeluAux:
      return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                  : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGrad:
      return sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kReluGrad:
      return sums ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
    case Epilogue::kSumA:
      return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::kSumB:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename T>
absl::Status Set(cublasLtMatmulDesc_t desc,
                 cublasLtMatmulDescAttributes_t attribute, const T& value,
                 absl::string_view op) {
  return HT_CUDA(
      cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
      op);
}

template <typename T>
absl::Status Set(cublasLtMatrixLayout_t layout,
                 cublasLtMatrixLayoutAttribute_t attribute, const T& value,
                 absl::string_view op) {
  return HT_CUDA(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value,
                                                  sizeof(value)),
                 op);
}

using Preference =
    CublasLtOwned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

absl::StatusOr<Preference> MakePreference(absl::string_view op) {
  cublasLtMatmulPreference_t preference = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(cublasLtMatmulPreferenceCreate(&preference), op));
  Preference owned(preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                          const auto& value) {
    return HT_CUDA(cublasLtMatmulPreferenceSetAttribute(preference, attribute,
                                                        &value, sizeof(value)),
                   op);
  };
  HT_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                            uint64_t{kWorkspaceBytes}));
  // Parts of a product are added in f32, in one order.
  HT_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                            uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE |
                                     CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    HT_RETURN_IF_ERROR(prefer(attribute, kAlignment));
  }
  return owned;
}

// To make and to end one takes its time, and each has a cache of what its
// heuristic found.
using Handle = std::shared_ptr<std::remove_pointer_t<cublasLtHandle_t>>;

absl::StatusOr<Handle> MakeHandle(runtime::Device& device) {
  HT_RETURN_IF_ERROR(device.Use());
  cublasLtHandle_t handle = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(cublasLtCreate(&handle), "products"));
  return Handle(handle, cublasLtDestroy);
}

// A handle per device, as CudnnCache has them: for as long as a kernel there
// holds it.
class Handles {
 public:
  absl::StatusOr<Handle> Of(runtime::Device& device) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& kept = kept_[&device];
    if (Handle held = kept.lock()) return held;
    HT_ASSIGN_OR_RETURN(Handle made, MakeHandle(device));
    kept = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<const runtime::Device*, Handle::weak_type> kept_;
};

class CublasLtCall final : public ProductCall {
 public:
  CublasLtCall(absl::string_view op, CublasLtProduct product, Handle handle)
      : name_(op), product_(std::move(product)), handle_(std::move(handle)) {}

  // Whether the library has an algorithm on the thread's device.
  absl::StatusOr<bool> Prepare() {
    HT_ASSIGN_OR_RETURN(const Preference preference, MakePreference(name_));
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_.get(), product_.desc(), product_.a(), product_.b(),
        product_.d(), product_.d(), preference.get(), 1, &result, &found);
    // Its word for an epilogue that it lacks for such operands is either.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
        (status == CUBLAS_STATUS_INVALID_VALUE && product_.has_epilogue())) {
      return false;
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
      return runtime::CudaCallStatus(status, "cublasLtMatmulAlgoGetHeuristic",
                                     name_);
    }
    algorithm_ = result.algo;
    // Each result has a status, without which its algorithm is none.
    return found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  }

  absl::Status Run(const Data& data, runtime::Stream& stream) override {
    const void* vector = data.sums == nullptr ? data.bias : data.sums;
    HT_RETURN_IF_ERROR(product_.SetPointers(vector, data.aux, name_));
    const float one = 1.0f, zero = 0.0f;
    return HT_CUDA(cublasLtMatmul(handle_.get(), product_.desc(), &one, data.a,
                                  product_.a(), data.b, product_.b(), &zero,
                                  data.d, product_.d(), data.d, product_.d(),
                                  &algorithm_, data.workspace, kWorkspaceBytes,
                                  runtime::CudaStreamOf(stream)),
                   name_);
  }

 private:
  std::string name_;
  CublasLtProduct product_;
  Handle handle_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

}  // namespace

absl::StatusOr<CublasLtProduct::MatrixLayout> CublasLtProduct::Describe(
    const ColumnMatrix& m, absl::string_view op) {
  cublasLtMatrixLayout_t layout = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(
      cublasLtMatrixLayoutCreate(&layout, DataType(m.dtype),
                                 static_cast<uint64_t>(m.rows),
                                 static_cast<uint64_t>(m.columns), m.pitch),
      op));
  MatrixLayout owned(layout);
  HT_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                         static_cast<int32_t>(m.batch), op));
  HT_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                         m.batch_stride, op));
  return owned;
}

absl::Status CublasLtProduct::Describe(const BoundProduct& product,
                                       absl::string_view op) {
  cublasLtMatmulDesc_t desc = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(
      cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), op));
  desc_.reset(desc);
  const auto operation = [](const ColumnMatrix& m) {
    return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  HT_RETURN_IF_ERROR(
      Set(desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(product.a), op));
  HT_RETURN_IF_ERROR(
      Set(desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(product.b), op));
  has_epilogue_ = product.epilogue != Epilogue::kNone;
  const cublasLtEpilogue_t epilogue = EpilogueOf(product);
  HT_RETURN_IF_ERROR(Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, op));
  const bool gelu = product.epilogue == Epilogue::kGeluAux ||
                    product.epilogue == Epilogue::kGeluGrad;
  has_aux_ = gelu || product.epilogue == Epilogue::kReluGrad;
  has_vector_ =
      has_epilogue_ && (product.bias_at.there() || product.sums_at.there());
  if (!has_aux_) return absl::OkStatus();
  const int64_t pitch = product.aux_pitch();
  HT_RETURN_IF_ERROR(
      Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, pitch, op));
  if (product.d.batch == 1) return absl::OkStatus();
  return Set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
             pitch * product.d.columns, op);
}

absl::StatusOr<CublasLtProduct> CublasLtProduct::Create(
    const BoundProduct& product, absl::string_view op) {
  CublasLtProduct made;
  HT_ASSIGN_OR_RETURN(made.a_, Describe(product.a, op));
  HT_ASSIGN_OR_RETURN(made.b_, Describe(product.b, op));
  HT_ASSIGN_OR_RETURN(made.d_, Describe(product.d, op));
  HT_RETURN_IF_ERROR(made.Describe(product, op));
  // The heuristic reads no memory, but of these pointers the alignment; without
  // one for aux it finds nothing.
  const void* aligned = reinterpret_cast<const void*>(uintptr_t{kAlignment});
  HT_RETURN_IF_ERROR(made.SetPointers(aligned, aligned, op));
  return made;
}

absl::Status CublasLtProduct::SetPointers(const void* vector, const void* aux,
                                          absl::string_view op) {
  if (has_vector_) {
    HT_RETURN_IF_ERROR(
        Set(desc(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector, op));
  }
  if (has_aux_) {
    HT_RETURN_IF_ERROR(
        Set(desc(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux, op));
  }
  return absl::OkStatus();
}

ProductLibrary CublasLt() {
  ProductLibrary library;
  library.name = "cublaslt";
  library.workspace_bytes = kWorkspaceBytes;
  const auto handles = std::make_shared<Handles>();
  library.prepare = [handles](const BoundProduct& product, absl::string_view op,
                              runtime::Device& device)
      -> absl::StatusOr<std::unique_ptr<ProductCall>> {
    HT_RETURN_IF_ERROR(device.Use());
    HT_ASSIGN_OR_RETURN(Handle handle, handles->Of(device));
    HT_ASSIGN_OR_RETURN(CublasLtProduct made,
                        CublasLtProduct::Create(product, op));
    auto call =
        std::make_unique<CublasLtCall>(op, std::move(made), std::move(handle));
    HT_ASSIGN_OR_RETURN(const bool found, call->Prepare());
    if (!found) return std::unique_ptr<ProductCall>();
    return std::unique_ptr<ProductCall>(std::move(call));
  };
  return library;
}

void RegisterCudaMatmul(KernelRegistry& registry) {
  const ProductLibrary library = CublasLt();
  RegisterProducts(library, registry);
  RegisterRecurrent(library, registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
