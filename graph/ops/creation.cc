// Ops that make values: initialisers of the startup program, and counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

absl::Status InferCreation(InferContext& c) {
  const std::vector<int64_t>& shape = c.Ints("shape");
  if (std::any_of(shape.begin(), shape.end(),
                  [](int64_t dim) { return dim < 0; })) {
    return AttrMismatch(c, "shape", "dims from 0 up",
                        "where the batch is wanted use dims of 1, which "
                        "element-wise ops repeat");
  }
  HT_RETURN_IF_ERROR(c.schema().FindInput("Seed") < 0
                         ? absl::OkStatus()
                         : ExpectScalars(c, {"Seed"}));
  c.SetOutput("Out", Dims(shape.begin(), shape.end()));
  return absl::OkStatus();
}

absl::Status InferFill(InferContext& c) {
  double value = 0;
  if (!c.Str("str_value").empty() &&
      !absl::SimpleAtod(c.Str("str_value"), &value)) {
    return AttrMismatch(c, "str_value", "a number in digits, or nothing");
  }
  return InferCreation(c);
}

OpSchema CreationSchema(absl::string_view name, absl::string_view doc,
                        const DTypeSet& dtypes) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("TOut", dtypes)
      .Out("Out", "TOut", "dims shape")
      .Attr("shape", std::vector<int64_t>(), "dims of Out; []: a scalar")
      .Attr("dtype", DType::kF32, "dtype of Out; Paddle's numbers are known")
      .Infer(InferCreation)
      .NoGrad()
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny)
      .NoMerge();
  return schema;
}

OpSchema RandomSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema = CreationSchema(name, doc, kFloatTypes);
  schema.ImplicitIn("Seed", "i64", kSeed)
      .StreamAttr("which stream of random numbers");
  return schema;
}

OpSchema NormalSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema = RandomSchema(name, doc);
  schema.Attr("mean", 0.0, "of the distribution")
      .Attr("std", 1.0, "standard deviation, before truncation");
  return schema;
}

// From start on, as many as lie before end.
absl::Status InferArange(InferContext& c) {
  const double start = c.Float("start"), end = c.Float("end");
  const double step = c.Float("step");
  const double count = std::ceil((end - start) / step);
  if (!(std::abs(count) <= std::numeric_limits<int32_t>::max())) {
    return AttrMismatch(c, "step",
                        "a number other than 0 with which start comes to end "
                        "in at most 2^31 steps");
  }
  c.SetOutput("Out", {Dim(std::max<int64_t>(0, static_cast<int64_t>(count)))});
  return absl::OkStatus();
}

absl::Status InferShape(InferContext& c) {
  c.SetOutput("Out", {Dim(c.Input("Input").rank())});
  return absl::OkStatus();
}

void RegisterNumbers(OpRegistry& registry) {
  registry.Add(
      OpSchema("arange")
          .Doc("Out = start, start + step and so on, before end.")
          .TypeVar("TOut", {DType::kI64, DType::kI32, DType::kF32, DType::kF16,
                            DType::kBF16})
          .Out("Out", "TOut", "[n]")
          .Attr("start", 0.0, "the first")
          .RequiredAttr("end", AttrKind::kFloat, "before which it ends")
          .Attr("step", 1.0, "from one to the next; negative: downwards")
          .Attr("dtype", DType::kI64,
                "dtype of Out; Paddle's numbers are known")
          .Infer(InferArange)
          .NoGrad()
          .Amp(AmpClass::kGray)
          .NoMerge());
  registry.Add(OpSchema("shape")
                   .Doc("Out = the dims of Input.")
                   .In("Input", "f32", "any dims, any dtype", kShapeOnly)
                   .Out("Out", "i32", "[rank of Input]")
                   .Infer(InferShape)
                   .NoGrad()
                   .Amp(AmpClass::kGray)
                   .Layout(LayoutRule::kAny)
                   .NoMerge());
}

absl::Status InferElementCount(InferContext& c) {
  const int64_t axis = c.Int("axis");
  const int rank = c.Input("X").rank();
  if (axis < -1 || axis >= rank) {
    return AttrMismatch(
        c, "axis",
        absl::StrCat("-1 (all elements) or a dim of X, below ", rank));
  }
  c.SetOutput("Out", {});
  return absl::OkStatus();
}

}  // namespace

void RegisterCreation(OpRegistry& registry) {
  registry.Add(
      CreationSchema("fill_constant", "Out = value everywhere.", kAnyTypes)
          .Attr("value", 0.0, "rounded to dtype")
          .Attr("str_value", std::string(),
                "value in digits, exact for large integers; wins over it")
          .Attr("force_cpu", false, "Paddle's; where it is made is ours")
          .Attr("place_type", int64_t{-1}, "Paddle's; likewise")
          .Infer(InferFill));
  registry.AddAlias("init_constant", "fill_constant");
  registry.Add(RandomSchema("init_uniform",
                            "Out = draws from [low, high), by logical "
                            "element: low + (high - low) * uniform.")
                   .Attr("low", 0.0, "lower bound")
                   .Attr("high", 1.0, "upper bound"));
  registry.Add(
      NormalSchema("init_normal", "Out = normal draws, by logical element."));
  registry.Add(NormalSchema("init_truncated_normal",
                            "init_normal, redrawn where it lies more than two "
                            "standard deviations from the mean."));
  RegisterNumbers(registry);
  registry.Add(OpSchema("element_count")
                   .Doc("Out = how many elements X has, all or along axis.")
                   .In("X", "f32", "any dims, any dtype", kShapeOnly)
                   .Out("Out", "f32", "[]")
                   .Attr("axis", int64_t{-1}, "-1: all dims; else this one")
                   .Infer(InferElementCount)
                   .NoGrad()
                   .Amp(AmpClass::kGray)
                   .Layout(LayoutRule::kAny)
                   .NoMerge());
}

}  // namespace ops
}  // namespace halftone
