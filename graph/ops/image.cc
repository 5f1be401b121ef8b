// Preparation of images.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

absl::Status InferNormalize(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 4, "[N, C, H, W]"));
  const Dims& x = c.Input("X").dims;
  for (const char* attr : {"mean", "std"}) {
    const auto& values = std::get<std::vector<double>>(c.Attr(attr));
    bool good =
        values.size() == 1 || Dim(static_cast<int64_t>(values.size())) == x[1];
    for (const double value : values) {
      good = good && std::isfinite(value);
      if (attr == absl::string_view("std")) good = good && value != 0;
    }
    if (!good) {
      return AttrMismatch(
          c, attr,
          absl::StrCat("1 or ", PrintDims(c, {x[1]}), " (C of X) ",
                       attr == absl::string_view("std") ? "finite numbers "
                                                          "other than 0"
                                                        : "finite numbers"));
    }
  }
  c.SetOutput("Out", x);
  return absl::OkStatus();
}

}  // namespace

void RegisterImage(OpRegistry& registry) {
  registry.Add(OpSchema("image_normalize")
                   .Doc("Out = (X - mean) / std per channel, computed in f32.")
                   .TypeVar("TIn", {DType::kU8, DType::kI32, DType::kF32})
                   .TypeVar("TOut", kFloatTypes, "f32")
                   .In("X", "TIn", "[N, C, H, W]")
                   .Out("Out", "TOut", "dims of X")
                   .Attr("mean", std::vector<double>{0.0}, "one number, or C")
                   .Attr("std", std::vector<double>{1.0}, "one number, or C")
                   .Infer(InferNormalize)
                   .NoGrad()
                   .Amp(AmpClass::kGray));
}

}  // namespace ops
}  // namespace halftone
