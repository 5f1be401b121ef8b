#include "kernels/cuda/emulation/products.h"

#include <memory>
#include <utility>
#include <vector>

#include "graph/base/half.h"
#include "kernels/cuda/matmul.h"
#include "kernels/functors/gelu.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

float Read(DType dtype, const void* data, int64_t i) {
  if (dtype == DType::kF32) return static_cast<const float*>(data)[i];
  if (dtype == DType::kF16) {
    return static_cast<float>(static_cast<const half*>(data)[i]);
  }
  return static_cast<float>(static_cast<const bfloat16*>(data)[i]);
}

void Write(DType dtype, void* data, int64_t i, float value) {
  if (dtype == DType::kF32) {
    static_cast<float*>(data)[i] = value;
  } else if (dtype == DType::kF16) {
    static_cast<half*>(data)[i] = half(value);
  } else {
    static_cast<bfloat16*>(data)[i] = bfloat16(value);
  }
}

// Element (row, column) of what is multiplied.
float ReadOp(const ColumnMatrix& m, const void* data, int64_t batch,
             int64_t row, int64_t column) {
  if (m.transposed) std::swap(row, column);
  return Read(m.dtype, data, batch * m.batch_stride + column * m.pitch + row);
}

class EmulatedCall final : public ProductCall {
 public:
  explicit EmulatedCall(const BoundProduct& product) : p_(product) {}

  absl::Status Run(const Data& data, runtime::Stream&) override {
    row_sums_.assign(p_.d.rows, 0.0f);
    for (int64_t batch = 0; batch < p_.d.batch; ++batch) {
      for (int64_t column = 0; column < p_.d.columns; ++column) {
        for (int64_t row = 0; row < p_.d.rows; ++row) {
          const float d = Element(data, batch, row, column);
          row_sums_[row] += d;
          Write(p_.d.dtype, data.d,
                batch * p_.d.batch_stride + column * p_.d.pitch + row, d);
        }
      }
    }
    if (data.sums != nullptr) WriteSums(data);
    return absl::OkStatus();
  }

 private:
  float Element(const Data& data, int64_t batch, int64_t row, int64_t column) {
    float p = 0;
    for (int64_t k = 0; k < p_.depth; ++k) {
      p += ReadOp(p_.a, data.a, batch, row, k) *
           ReadOp(p_.b, data.b, batch, k, column);
    }
    const bool adds = p_.epilogue == Epilogue::kBias ||
                      p_.epilogue == Epilogue::kGelu ||
                      p_.epilogue == Epilogue::kGeluAux;
    if (adds && data.bias != nullptr) p += Read(p_.bias, data.bias, row);
    const int64_t aux = (batch * p_.d.columns + column) * p_.aux_pitch() + row;
    switch (p_.epilogue) {
      case Epilogue::kGeluAux:
        Write(p_.d.dtype, data.aux, aux, p);
        return functors::TanhGeluOp()(p);
      case Epilogue::kGelu:
        return functors::TanhGeluOp()(p);
      case Epilogue::kGeluGrad:
        return functors::TanhGeluGradOp()(Read(p_.d.dtype, data.aux, aux), p);
      case Epilogue::kReluGrad: {
        const uint8_t byte = static_cast<const uint8_t*>(data.aux)[aux / 8];
        return (byte >> (aux % 8)) & 1 ? p : 0.0f;
      }
      default:
        return p;
    }
  }

  void WriteSums(const Data& data) {
    const bool of_a = p_.epilogue == Epilogue::kSumA;
    if (!of_a && p_.epilogue != Epilogue::kSumB) {
      for (int64_t i = 0; i < p_.d.rows; ++i) {
        Write(p_.d.dtype, data.sums, i, row_sums_[i]);
      }
      return;
    }
    for (int64_t i = 0; i < (of_a ? p_.d.rows : p_.d.columns); ++i) {
      float sum = 0;
      for (int64_t k = 0; k < p_.depth; ++k) {
        sum += of_a ? ReadOp(p_.a, data.a, 0, i, k)
                    : ReadOp(p_.b, data.b, 0, k, i);
      }
      Write(p_.d.dtype, data.sums, i, sum);
    }
  }

  BoundProduct p_;
  std::vector<float> row_sums_;
};

}  // namespace

void RegisterEmulatedProducts(KernelRegistry& registry) {
  ProductLibrary library;
  library.name = "loops";
  library.prepare =
      [](const BoundProduct& product, absl::string_view,
         runtime::Device&) -> absl::StatusOr<std::unique_ptr<ProductCall>> {
    return std::unique_ptr<ProductCall>(new EmulatedCall(product));
  };
  RegisterProducts(library, registry);
  RegisterRecurrent(library, registry);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
