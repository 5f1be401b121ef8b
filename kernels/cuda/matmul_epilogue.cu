#include "kernels/cuda/map.h"
#include "kernels/cuda/matmul_epilogue.h"
#include "kernels/cuda/sums.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/gelu.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

// Byte i of a mask: 8 elements of one column, in vectors of W.
template <int W>
struct MaskBody {
  DType dtype;
  const void* data;
  uint8_t* mask;
  Divider column_bytes;
  int64_t rows;

  template <int V>
  struct Loaded {
    Raw x[8 / W];
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    const int64_t column = column_bytes.Divide(i);
    const int64_t row = (i - column * column_bytes.divisor()) * 8;
#pragma unroll
    for (int u = 0; u < 8 / W; ++u) {
      if (row + u * W >= rows) continue;
      loaded.x[u] = LoadRaw<W>(dtype, data, column * rows + row + u * W);
    }
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    const int64_t row = column_bytes.Remainder(i) * 8;
    uint32_t bits = 0;
#pragma unroll
    for (int u = 0; u < 8 / W; ++u) {
      if (row + u * W >= rows) continue;
      float x[W];
      Unpack(dtype, loaded.x[u], x);
#pragma unroll
      for (int k = 0; k < W; ++k) {
        const bool passes = functors::ReluGradOp()(x[k], 1.0f) != 0.0f;
        bits |= static_cast<uint32_t>(passes) << (u * W + k);
      }
    }
    mask[i] = static_cast<uint8_t>(bits);
  }
};

bool SumsOperand(const BoundProduct& product) {
  return product.epilogue == Epilogue::kSumA ||
         product.epilogue == Epilogue::kSumB;
}

SumShape ShapeOfSums(const BoundProduct& product) {
  const ColumnMatrix& m = SumsOperand(product) ? product.summed() : product.d;
  return SumShape::OfChannels(m.columns, m.rows, 1, m.dtype);
}

}  // namespace

void PackMask(Launcher& launch, const BoundProduct& product, const void* aux,
              void* mask) {
  const ColumnMatrix& d = product.d;
  const int64_t bytes = product.mask_bytes();
  const int vector = VectorOf({d.dtype});
  const auto pack = [&](const auto& body) {
    LaunchMap<1>(launch, body, bytes);
  };
  const Divider column_bytes(product.aux_pitch() / 8);
  uint8_t* to = static_cast<uint8_t*>(mask);
  if (!Aligned({aux}) || d.rows % vector != 0) {
    pack(MaskBody<1>{d.dtype, aux, to, column_bytes, d.rows});
  } else if (vector == 8) {
    pack(MaskBody<8>{d.dtype, aux, to, column_bytes, d.rows});
  } else {
    pack(MaskBody<4>{d.dtype, aux, to, column_bytes, d.rows});
  }
}

int64_t FinishBytes(const BoundProduct& product) {
  if (!product.sums_at.there()) return 0;
  return ShapeOfSums(product).workspace_floats(PlainSum::kSums) *
         SizeOf(DType::kF32);
}

void FinishProduct(Launcher& launch, const BoundProduct& product,
                   const ProductData& data) {
  const DType dtype = product.d.dtype;
  const int64_t n = product.elements();
  const auto gradient = [&](const auto& f) {
    MapBinary(launch, dtype, data.aux, dtype, data.d, dtype, data.d, n, f);
  };
  switch (product.epilogue) {
    case Epilogue::kGelu:
      MapUnary(launch, dtype, data.d, dtype, data.d, n, functors::TanhGeluOp());
      break;
    case Epilogue::kGeluAux:
      MapUnary(launch, dtype, data.aux, dtype, data.d, n,
               functors::TanhGeluOp());
      break;
    case Epilogue::kGeluGrad:
      gradient(functors::TanhGeluGradOp());
      break;
    case Epilogue::kReluGrad:
      gradient(functors::ReluGradOp());
      break;
    default:
      break;
  }
  if (!product.sums_at.there()) return;
  const void* summed = SumsOperand(product) ? data.summed : data.d;
  Sum<PlainSum>(launch, ShapeOfSums(product), {dtype, summed}, data.workspace,
                StoreSum{dtype, data.sums});
}

void AddBias(Launcher& launch, const BoundProduct& product, void* d,
             const void* bias) {
  const ColumnMatrix& m = product.d;
  TensorDesc out, vector;
  out.dtype = m.dtype;
  out.dims = {m.batch * m.columns, m.rows};
  vector.dtype = product.bias;
  vector.dims = {m.rows};
  MapBinary(launch, Operand(m.dtype, out, StridesOf(out)), d,
            Operand(product.bias, out, BroadcastStrides(vector, out, 1)), bias,
            m.dtype, d, out.elements(), functors::AddOp());
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
