#include "kernels/common/row_norm.h"

#include "kernels/common/shapes.h"

namespace halftone {
namespace kernels {
namespace {

// Statistics go by the names that Paddle's ops have.
constexpr const char* kMeans[] = {"Mean", "SavedMean"};
constexpr const char* kVariances[] = {"Variance", "SavedVariance",
                                      "MeanSquare"};

// The place of the first of these slots; -1: none.
template <typename Find, typename Names>
int PlaceOf(const Names& names, const Find& find) {
  for (const char* name : names) {
    const int place = find(name);
    if (place >= 0) return place;
  }
  return -1;
}

}  // namespace

RowNormShape RowNormShape::Of(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const auto product = [&x](int begin, int end) {
    int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= x.dims[i];
    return n;
  };
  RowNormShape shape;
  if (op.KnowsAttr("begin_norm_axis")) {
    const int64_t axis = op.Int("begin_norm_axis");
    const int begin = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
    shape.rows = product(0, begin);
    shape.channels = product(begin, x.rank());
    return shape;
  }
  shape.period = op.KnowsAttr("groups") ? op.Int("groups") : x.dims[1];
  shape.rows = x.dims[0] * shape.period;
  shape.channels = shape.period == 0 ? 0 : x.dims[1] / shape.period;
  shape.inner = product(2, x.rank());
  return shape;
}

RowNormOp RowNormOp::Forward(const BoundOp& op) {
  const auto output = [&op](const char* slot) { return OutputOf(op, slot); };
  const int mean = PlaceOf(kMeans, output);
  return {RowNormShape::Of(op),
          static_cast<float>(op.Float("epsilon")),
          mean >= 0,
          InputOf(op, "Scale"),
          InputOf(op, "Bias"),
          mean,
          PlaceOf(kVariances, output),
          -1,
          -1};
}

RowNormOp RowNormOp::Backward(const BoundOp& op) {
  const auto input = [&op](const char* slot) { return InputOf(op, slot); };
  const int mean = PlaceOf(kMeans, input);
  return {RowNormShape::Of(op),
          static_cast<float>(op.Float("epsilon")),
          mean >= 0,
          InputOf(op, "Scale"),
          -1,
          mean,
          PlaceOf(kVariances, input),
          OutputOf(op, "ScaleGrad"),
          OutputOf(op, "BiasGrad")};
}

}  // namespace kernels
}  // namespace halftone
