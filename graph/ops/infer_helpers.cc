#include "graph/ops/infer_helpers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"

namespace halftone {
namespace ops {
namespace {

std::string WithAdvice(absl::string_view advice) {
  return advice.empty() ? "" : absl::StrCat("; ", advice);
}

struct PrintAttr {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(double v) const { return ExactDouble(v); }
  std::string operator()(const std::string& v) const {
    return absl::StrCat("\"", v, "\"");
  }
  std::string operator()(DType v) const { return std::string(Name(v)); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> parts;
    for (const T& v : values) parts.push_back((*this)(v));
    return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
  }
};

}  // namespace

// ---- Errors.

absl::Status SlotMismatch(const InferContext& c, absl::string_view slot,
                          absl::string_view expected,
                          absl::string_view advice) {
  const absl::Status status = c.SlotError(slot, expected);
  return ModelError(status.message(), WithAdvice(advice));
}

absl::Status MemberMismatch(const InferContext& c, absl::string_view slot,
                            int i, absl::string_view expected,
                            absl::string_view advice) {
  return c.Error("slot ", slot, "[", i, "]: expected ", expected, ", found ",
                 c.Print(c.InputList(slot)[i]), WithAdvice(advice));
}

absl::Status AttrMismatch(const InferContext& c, absl::string_view attr,
                          absl::string_view expected,
                          absl::string_view advice) {
  return c.Error("attribute ", attr, ": expected ", expected, ", found ",
                 std::visit(PrintAttr(), c.Attr(attr)), WithAdvice(advice));
}

std::string PrintDims(const InferContext& c, absl::Span<const Dim> dims) {
  TensorType type;
  type.dtype = DType::kF32;
  type.dims.assign(dims.begin(), dims.end());
  // "f32[B,128]" without the dtype.
  return c.Print(type).substr(Name(type.dtype).size());
}

// ---- Simple rules.

absl::Status ExpectRank(const InferContext& c, absl::string_view slot, int low,
                        int high, absl::string_view shape) {
  const int rank = c.Input(slot).rank();
  if (rank >= low && rank <= high) return absl::OkStatus();
  const std::string ranks = low == high
                                ? absl::StrCat(low)
                                : (high == std::numeric_limits<int>::max()
                                       ? absl::StrCat("at least ", low)
                                       : absl::StrCat(low, " to ", high));
  return SlotMismatch(c, slot, absl::StrCat(shape, " (rank ", ranks, ")"),
                      "reshape or flatten it first");
}

absl::Status ExpectRank(const InferContext& c, absl::string_view slot, int rank,
                        absl::string_view shape) {
  return ExpectRank(c, slot, rank, rank, shape);
}

absl::Status ExpectDims(const InferContext& c, absl::string_view slot,
                        absl::Span<const Dim> dims, absl::string_view why) {
  if (!c.HasInput(slot)) return absl::OkStatus();
  if (absl::MakeConstSpan(c.Input(slot).dims) == dims) return absl::OkStatus();
  return SlotMismatch(c, slot,
                      absl::StrCat("dims ", PrintDims(c, dims), " (", why, ")"),
                      "change its dims or those of the slots named");
}

absl::Status ExpectScalars(const InferContext& c,
                           std::initializer_list<absl::string_view> slots) {
  for (const absl::string_view slot : slots) {
    if (!c.HasInput(slot) || c.Input(slot).rank() == 0) continue;
    return SlotMismatch(c, slot, "a scalar, dims []",
                        "reshape a value of one element to shape []");
  }
  return absl::OkStatus();
}

absl::Status ExpectWord(const InferContext& c, absl::string_view attr,
                        std::initializer_list<absl::string_view> words) {
  const std::string& word = c.Str(attr);
  const std::vector<std::string> all(words.begin(), words.end());
  if (std::find(all.begin(), all.end(), word) != all.end()) {
    return absl::OkStatus();
  }
  const std::string nearest = Nearest(word, all);
  return AttrMismatch(
      c, attr, absl::StrCat("one of \"", absl::StrJoin(all, "\", \""), "\""),
      nearest.empty() ? "" : absl::StrCat("nearest: ", nearest));
}

absl::Status ExpectRange(const InferContext& c, absl::string_view attr,
                         double low, double high) {
  const double value = c.Float(attr);
  if (std::isfinite(value) && value >= low && value <= high) {
    return absl::OkStatus();
  }
  if (high == std::numeric_limits<double>::max()) {
    return AttrMismatch(c, attr,
                        absl::StrCat("a finite number >= ", ExactDouble(low)));
  }
  return AttrMismatch(c, attr,
                      absl::StrCat("a number from ", ExactDouble(low), " to ",
                                   ExactDouble(high)));
}

InferFunction SameDims(std::vector<std::string> inputs, std::string output) {
  return [inputs, output](InferContext& c) -> absl::Status {
    const Dims& dims = c.Input(inputs[0]).dims;
    for (const std::string& input : inputs) {
      HT_RETURN_IF_ERROR(
          ExpectDims(c, input, dims, absl::StrCat("those of ", inputs[0])));
    }
    c.SetOutput(output, dims);
    return absl::OkStatus();
  };
}

InferFunction ScalarOut(std::string output) {
  return [output](InferContext& c) -> absl::Status {
    c.SetOutput(output, {});
    return absl::OkStatus();
  };
}

// ---- Axes.

absl::StatusOr<int> Axis(const InferContext& c, absl::string_view attr,
                         int rank) {
  const int64_t axis = c.Int(attr);
  if (axis >= -rank && axis < rank) {
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  if (rank == 0) {
    return AttrMismatch(c, attr, "an operand of rank 1 or more",
                        "a scalar has no axis");
  }
  return AttrMismatch(c, attr,
                      absl::StrCat("an axis from ", -rank, " to ", rank - 1));
}

std::optional<std::vector<bool>> ReducedAxes(absl::Span<const int64_t> dim,
                                             bool reduce_all, int rank) {
  if (reduce_all || dim.empty()) return std::vector<bool>(rank, true);
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : dim) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    if (axis < 0) axis += rank;
    if (reduced[axis]) return std::nullopt;
    reduced[axis] = true;
  }
  return reduced;
}

Dims ReduceDims(absl::Span<const Dim> dims, const std::vector<bool>& reduced,
                bool keep_dim) {
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i]) {
      result.push_back(dims[i]);
    } else if (keep_dim) {
      result.push_back(Dim(1));
    }
  }
  return result;
}

absl::StatusOr<std::vector<bool>> ReducedAxes(const InferContext& c, int rank) {
  const bool all =
      c.schema().FindAttr("reduce_all") >= 0 && c.Bool("reduce_all");
  auto reduced = ReducedAxes(c.Ints("dim"), all, rank);
  if (reduced.has_value()) return *std::move(reduced);
  return AttrMismatch(c, "dim",
                      rank == 0 ? "[] for a scalar"
                                : absl::StrCat("different axes from ", -rank,
                                               " to ", rank - 1));
}

absl::Status InferReduce(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(c, x.size()));
  c.SetOutput("Out", ReduceDims(x, reduced, c.Bool("keep_dim")));
  // Without the samples it is no image, and lies as parameters do.
  if (!reduced.empty() && reduced[0]) {
    c.SetOutputLayout("Out", Layout::kRowMajor);
  }
  return absl::OkStatus();
}

Dim Product(absl::Span<const Dim> dims) {
  Dim product(1);
  for (const Dim& dim : dims) product = product * dim;
  return product;
}

std::optional<Dim> Sum(const Dim& a, const Dim& b) {
  if (a == Dim(0)) return b;
  if (b == Dim(0)) return a;
  int64_t coefficient = 0;
  if (__builtin_add_overflow(a.coefficient(), b.coefficient(), &coefficient)) {
    return std::nullopt;
  }
  Dim sum(coefficient);
  for (int s = 0; s < kMaxSymbols; ++s) {
    if (a.power(s) != b.power(s)) return std::nullopt;
    sum.set_power(s, a.power(s));
  }
  return sum;
}

// ---- Broadcasting.

std::optional<Dims> AlignDims(absl::Span<const Dim> dims, int rank,
                              int64_t axis) {
  const int64_t at =
      axis == -1 ? rank - static_cast<int64_t>(dims.size()) : axis;
  if (at < 0 || at > rank) return std::nullopt;
  while (at + static_cast<int64_t>(dims.size()) > rank &&
         dims.back() == Dim(1)) {
    dims.remove_suffix(1);
  }
  if (at + static_cast<int64_t>(dims.size()) > rank) return std::nullopt;
  Dims aligned(rank, Dim(1));
  std::copy(dims.begin(), dims.end(), aligned.begin() + at);
  return aligned;
}

std::optional<Dims> BroadcastDims(absl::Span<const Dim> x,
                                  absl::Span<const Dim> y, int64_t axis) {
  const int rank = axis == -1 ? std::max(x.size(), y.size()) : x.size();
  const auto left = AlignDims(x, rank, -1);
  const auto right = AlignDims(y, rank, axis);
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  Dims out = *left;
  for (int i = 0; i < rank; ++i) {
    if (out[i] == Dim(1)) {
      out[i] = (*right)[i];
    } else if ((*right)[i] != Dim(1) && (*right)[i] != out[i]) {
      return std::nullopt;
    }
  }
  return out;
}

absl::Status InferBinary(InferContext& c) {
  const TensorType& x = c.Input("X");
  const TensorType& y = c.Input("Y");
  const int64_t axis = c.Int("axis");
  if (axis < -1 || axis > x.rank()) {
    return AttrMismatch(c, "axis",
                        absl::StrCat("-1 (align the last dims) or a dim of X, ",
                                     "0 to ", x.rank()));
  }
  auto out = BroadcastDims(x.dims, y.dims, axis);
  if (!out.has_value()) {
    return SlotMismatch(
        c, "Y",
        absl::StrCat("dims that are 1 or equal those of X, ", c.Print(x),
                     axis == -1 ? ", from the last backwards"
                                : absl::StrCat(", from dim ", axis, " on")),
        axis == -1 ? "set axis to the dim of X where Y's first belongs, or "
                     "reshape one of them"
                   : "axis = -1 aligns the last dims");
  }
  c.SetOutput("Out", *std::move(out));
  return absl::OkStatus();
}

int64_t AlphaAxis(absl::string_view mode, int alpha_rank) {
  return mode == "channel" && alpha_rank == 1 ? 1 : -1;
}

}  // namespace ops
}  // namespace halftone
