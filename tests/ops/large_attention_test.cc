// Attention in several tiles, of heads of one and of several slices, with
// dropout, masks and lengths that are no multiples of anything.
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/ops/large_op.h"

namespace halftone {
namespace {

struct Attention {
  DType dtype;
  int64_t rows, columns, width, value_width;
  double dropout;
  bool causal, masked;
};

// Of 2 samples with 2 heads that share one of K and V.
void AddInputs(const Attention& a, Large& op) {
  op.In("Q", a.dtype, {2, a.rows, 2, a.width})
      .In("K", a.dtype, {2, a.columns, 1, a.width})
      .In("V", a.dtype, {2, a.columns, 1, a.value_width});
  if (a.masked) op.In("Mask", kF32, {2, 1, 1, a.columns});
}

void AddDropout(const Attention& a, Large& op) {
  op.In("Seed", DType::kI64, {}, {12345})
      .In("Step", DType::kI64, {}, {7})
      .In("FirstSample", DType::kI64, {}, {1000})
      .Attr("dropout_prob", a.dropout)
      .Attr("stream", int64_t{3})
      .Attr("causal", a.causal);
}

void Check(const Attention& a) {
  // Sums of up to 130 products in another order, and of as many weights.
  constexpr Tolerance kProducts = {64, 2e-5};
  Large op("scaled_dot_product_attention");
  AddInputs(a, op);
  AddDropout(a, op);
  op.Out("Out").Out("LogSumExp").Expect(kProducts);

  Large grad("scaled_dot_product_attention_grad");
  AddInputs(a, grad);
  grad.In("Out", a.dtype, {2, a.rows, 2, a.value_width})
      .In("LogSumExp", kF32, {2, 2, a.rows})
      .In("OutGrad", a.dtype, {2, a.rows, 2, a.value_width});
  AddDropout(a, grad);
  grad.Out("QGrad").Out("KGrad").Out("VGrad").Expect({64, 1e-4});
}

TEST(LargeAttentionTest, Tiles) {
  for (DType dtype : Floats()) {
    Check({dtype, 70, 72, 64, 64, 0.1, false, true});
    Check({dtype, 37, 75, 64, 64, 0.1, false, false});
    Check({dtype, 68, 68, 64, 40, 0.3, true, false});
    Check({dtype, 33, 66, 40, 72, 0, false, true});
    Check({dtype, 34, 36, 130, 130, 0.1, true, false});
  }
}

}  // namespace
}  // namespace halftone
