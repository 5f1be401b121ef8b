#include "graph/import/paddle_sizes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/import/paddle_parts.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;
using MaybeSize = std::optional<PaddleSize>;

// Ops in each other that compute a dim; what goes deeper is not known.
constexpr int kMostNested = 16;
// Longer vectors are no shapes.
constexpr int64_t kMostSizes = 64;

MaybeSize Known(double number) {
  const bool fits = std::abs(number) <= kMostPaddleSize;  // a NaN does not
  if (!fits || number != std::trunc(number)) return std::nullopt;
  return PaddleSize{static_cast<int64_t>(number), ""};
}

class SizeReader {
 public:
  explicit SizeReader(PaddleScope* scope) : scope_(*scope) {}

  std::optional<PaddleSizes> Read(const std::string& name, int depth) {
    const OpDesc* const op = scope_.Writer(name);
    if (op == nullptr || depth > kMostNested) return std::nullopt;
    const std::string& type = op->type();
    if (type == "shape") return Shape(*op);
    if (type == "fill_constant") return Filled(*op);
    if (type == "assign_value") return Assigned(*op);
    if (type == "slice") return Sliced(*op, depth);
    if (type == "concat" || type == "stack") return Joined(*op, depth);
    if (type == "scale") return Scaled(*op, depth);
    for (const char* const same : {"assign", "cast", "reshape2", "share_data",
                                   "squeeze2", "unsqueeze2"}) {
      if (type == same) return In(*op, "X", depth);
    }
    if (absl::StartsWith(type, "elementwise_")) return Binary(*op, depth);
    return std::nullopt;
  }

 private:
  std::optional<PaddleSizes> In(const OpDesc& op, const char* slot, int depth) {
    const auto& names = InputsOf(op, slot);
    if (names.size() != 1) return std::nullopt;
    return Read(names[0], depth + 1);
  }

  std::optional<PaddleSizes> Shape(const OpDesc& op) {
    const auto& names = InputsOf(op, "Input");
    if (names.size() != 1) return std::nullopt;
    const TensorType* const type = scope_.TypeOf(names[0]);
    if (type == nullptr) return Declared(names[0]);
    const std::string feed = scope_.FeedOfBatch();
    const TensorType* const whole =
        feed.empty() ? nullptr : scope_.TypeOf(feed);
    PaddleSizes sizes;
    for (const Dim& dim : type->dims) {
      Dim times;
      if (dim.is_constant()) {
        sizes.push_back(Whole(dim.coefficient()));
      } else if (whole != nullptr && dim.DivideBy(whole->dims[0], &times) &&
                 times.is_constant()) {
        sizes.push_back(PaddleSize{times.coefficient(), feed});
      } else {
        sizes.push_back(std::nullopt);
      }
    }
    return sizes;
  }

  // By the program, where the first dim that it leaves open is a batch.
  std::optional<PaddleSizes> Declared(const std::string& name) {
    const VarType::TensorDesc* const tensor = TensorOf(name, scope_);
    if (tensor == nullptr) return std::nullopt;
    PaddleSizes sizes;
    for (const int64_t dim : tensor->dims()) {
      if (dim > 0) {
        sizes.push_back(Whole(dim));
      } else if (sizes.empty()) {
        sizes.push_back(PaddleSize{1, name});
      } else {
        sizes.push_back(std::nullopt);
      }
    }
    return sizes;
  }

  std::optional<PaddleSizes> Filled(const OpDesc& op) {
    int64_t count = 1;
    for (const int64_t dim : IntsAttr(op, "shape")) {
      count = dim < 1 || dim > kMostSizes ? kMostSizes + 1 : count * dim;
      if (count > kMostSizes) return std::nullopt;
    }
    for (const char* const slot :
         {"ValueTensor", "ShapeTensor", "ShapeTensorList"}) {
      if (!InputsOf(op, slot).empty()) return std::nullopt;
    }
    return PaddleSizes(count, Known(ConstantOf(op)));
  }

  std::optional<PaddleSizes> Assigned(const OpDesc& op) {
    PaddleSizes sizes;
    for (const char* const name : {"int32_values", "int64_values", "values"}) {
      const OpDesc::Attr* const attr = FindAttr(op, name);
      if (attr == nullptr) continue;
      for (const int64_t one : attr->ints()) sizes.push_back(Whole(one));
      for (const int64_t one : attr->longs()) sizes.push_back(Whole(one));
      for (const OpDesc::Scalar& one : attr->scalars()) {
        sizes.push_back(one.has_i() ? Whole(one.i()) : std::nullopt);
      }
    }
    if (sizes.empty() || sizes.size() > kMostSizes) return std::nullopt;
    return sizes;
  }
  static MaybeSize Whole(int64_t number) {
    return Known(static_cast<double>(number));
  }

  std::optional<PaddleSizes> Sliced(const OpDesc& op, int depth) {
    const IntList starts = IntsAttr(op, "starts"), ends = IntsAttr(op, "ends");
    for (const OpDesc::Var& slot : op.inputs()) {
      if (slot.parameter() != "Input" && !slot.arguments().empty()) {
        return std::nullopt;
      }
    }
    auto all = In(op, "Input", depth);
    if (!all.has_value() || starts.size() != 1 || ends.size() != 1) {
      return std::nullopt;
    }
    const auto count = static_cast<int64_t>(all->size());
    const auto place = [count](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
    };
    if (place(starts[0]) >= place(ends[0])) return std::nullopt;
    return PaddleSizes(all->begin() + place(starts[0]),
                       all->begin() + place(ends[0]));
  }

  std::optional<PaddleSizes> Joined(const OpDesc& op, int depth) {
    PaddleSizes all;
    for (const std::string& name : InputsOf(op, "X")) {
      const auto one = Read(name, depth + 1);
      if (!one.has_value()) return std::nullopt;
      all.insert(all.end(), one->begin(), one->end());
    }
    if (IntAttr(op, "axis", 0) != 0 || all.size() > kMostSizes) {
      return std::nullopt;
    }
    return all;
  }

  std::optional<PaddleSizes> Scaled(const OpDesc& op, int depth) {
    auto sizes = In(op, "X", depth);
    if (!sizes.has_value() || !InputsOf(op, "ScaleTensor").empty()) {
      return std::nullopt;
    }
    const double scale = FloatAttr(op, "scale", 1);
    double bias = FloatAttr(op, "bias", 0);
    if (!BoolAttr(op, "bias_after_scale", true)) bias *= scale;
    for (MaybeSize& size : *sizes) {
      if (!size.has_value()) continue;
      const std::string of = size->of;
      size = of.empty() || bias == 0
                 ? Known(static_cast<double>(size->number) * scale + bias)
                 : std::nullopt;
      if (size.has_value()) size->of = of;
    }
    return sizes;
  }

  std::optional<PaddleSizes> Binary(const OpDesc& op, int depth) {
    const auto x = In(op, "X", depth), y = In(op, "Y", depth);
    if (!x.has_value() || !y.has_value()) return std::nullopt;
    const size_t count = std::max(x->size(), y->size());
    if (std::min(x->size(), y->size()) != count &&
        std::min(x->size(), y->size()) != 1) {
      return std::nullopt;
    }
    PaddleSizes sizes;
    for (size_t i = 0; i < count; ++i) {
      sizes.push_back(Made(op.type(), (*x)[x->size() == 1 ? 0 : i],
                           (*y)[y->size() == 1 ? 0 : i]));
    }
    return sizes;
  }

  static MaybeSize Made(const std::string& type, const MaybeSize& x,
                        const MaybeSize& y) {
    if (!x.has_value() || !y.has_value()) return std::nullopt;
    const double a = static_cast<double>(x->number);
    const double b = static_cast<double>(y->number);
    if (type == "elementwise_mul" && (x->is_number() || y->is_number())) {
      MaybeSize product = Known(a * b);
      if (product.has_value()) product->of = absl::StrCat(x->of, y->of);
      return product;
    }
    const bool divides =
        type == "elementwise_floordiv" || type == "elementwise_div";
    if (divides && y->number != 0) {
      const bool exact = x->number % y->number == 0;
      MaybeSize quotient = Known(std::floor(a / b));
      if (!y->is_number() || (!x->is_number() && !exact)) return std::nullopt;
      if (type == "elementwise_div" && !exact) return std::nullopt;
      if (quotient.has_value()) quotient->of = x->of;
      return quotient;
    }
    if (!x->is_number() || !y->is_number()) return std::nullopt;
    if (type == "elementwise_add") return Known(a + b);
    if (type == "elementwise_sub") return Known(a - b);
    if (type == "elementwise_max") return Known(std::max(a, b));
    if (type == "elementwise_min") return Known(std::min(a, b));
    return std::nullopt;
  }

  PaddleScope& scope_;
};

}  // namespace

std::optional<PaddleSizes> SizesOf(const std::string& variable,
                                   PaddleScope& scope) {
  return SizeReader(&scope).Read(variable, 0);
}

std::optional<PaddleSize> SizeOf(const std::string& variable,
                                 PaddleScope& scope) {
  const auto sizes = SizesOf(variable, scope);
  if (!sizes.has_value() || sizes->size() != 1) return std::nullopt;
  return (*sizes)[0];
}

std::optional<std::vector<PaddleSize>> SizesIn(const OpDesc& op,
                                               const char* whole,
                                               const char* list,
                                               PaddleScope& scope,
                                               ImportedOp* result) {
  std::vector<PaddleSize> sizes;
  const auto refuse = [&](const char* slot, const std::string& name) {
    result->refusals.push_back(
        {absl::StrCat("input ", slot,
                      ": expected constants and dims of values"),
         absl::StrCat(", found ", name)});
    return std::nullopt;
  };
  for (const std::string& name : InputsOf(op, whole)) {
    const auto all = SizesOf(name, scope);
    if (!all.has_value()) return refuse(whole, name);
    for (const MaybeSize& size : *all) {
      if (!size.has_value()) return refuse(whole, name);
      sizes.push_back(*size);
    }
  }
  if (!sizes.empty()) return sizes;
  for (const std::string& name : InputsOf(op, list)) {
    const MaybeSize size = SizeOf(name, scope);
    if (!size.has_value()) return refuse(list, name);
    sizes.push_back(*size);
  }
  return sizes;
}

}  // namespace halftone
