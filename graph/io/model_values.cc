#include "graph/io/model_values.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/verify/limits.h"

namespace halftone {
namespace {

using Kind = Initializer::Kind;

// `low` and `high`, or the symmetric `bound`.
absl::StatusOr<Initializer> UniformInit(const proto::Uniform& uniform) {
  if (uniform.has_bound() && (uniform.has_low() || uniform.has_high())) {
    return ModelError("init: uniform: expected bound, or low and high, found ",
                      "both; remove one");
  }
  if (!uniform.has_bound() && !(uniform.has_low() && uniform.has_high())) {
    return ModelError("init: uniform: expected bound, or low and high, found ",
                      "neither; add bound: 0.1");
  }
  const double high = uniform.has_bound() ? uniform.bound() : uniform.high();
  const double low = uniform.has_bound() ? -uniform.bound() : uniform.low();
  if (!(low <= high)) {
    return ModelError("init: uniform: expected low <= high, found ", low,
                      " and ", high);
  }
  return Initializer{Kind::kUniform, low, high};
}

absl::StatusOr<Initializer> NormalInit(const proto::Normal& normal, Kind kind) {
  if (!(normal.std() >= 0)) {
    return ModelError("init: expected std of 0 or more, found ", normal.std());
  }
  return Initializer{kind, normal.mean(), normal.std()};
}

absl::StatusOr<Initializer> FromProto(const proto::Init& init) {
  switch (init.kind_case()) {
    case proto::Init::kConstant:
      return Initializer{Kind::kConstant, init.constant(), 0};
    case proto::Init::kUniform:
      return UniformInit(init.uniform());
    case proto::Init::kNormal:
      return NormalInit(init.normal(), Kind::kNormal);
    case proto::Init::kTruncatedNormal:
      return NormalInit(init.truncated_normal(), Kind::kTruncatedNormal);
    case proto::Init::kXavierUniform:
      return Initializer{Kind::kXavierUniform, init.xavier_uniform().gain(), 0};
    case proto::Init::kXavierNormal:
      return Initializer{Kind::kXavierNormal, init.xavier_normal().gain(), 0};
    case proto::Init::kKaimingUniform:
      return Initializer{Kind::kKaimingUniform, init.kaiming_uniform().a(), 0};
    case proto::Init::kKaimingNormal:
      return Initializer{Kind::kKaimingNormal, init.kaiming_normal().a(), 0};
    case proto::Init::KIND_NOT_SET:
      break;
  }
  return ModelError("expected an initialiser, found none; add init { ... }, ",
                    "for example init { constant: 0 }");
}

bool NeedsFan(Kind kind) {
  return kind == Kind::kXavierUniform || kind == Kind::kXavierNormal ||
         kind == Kind::kKaimingUniform || kind == Kind::kKaimingNormal;
}

}  // namespace

DType FromProto(proto::DataType dtype) {
  switch (dtype) {
    case proto::INVALID:
      return DType::kInvalid;
    case proto::F32:
      return DType::kF32;
    case proto::F16:
      return DType::kF16;
    case proto::BF16:
      return DType::kBF16;
    case proto::F64:
      return DType::kF64;
    case proto::I32:
      return DType::kI32;
    case proto::I64:
      return DType::kI64;
    case proto::U8:
      return DType::kU8;
    case proto::BOOL:
      return DType::kBool;
  }
  return DType::kInvalid;
}

absl::StatusOr<AttrValue> FromProto(const proto::Attribute& attr) {
  const int set = attr.has_i() + attr.has_b() + attr.has_f() + attr.has_s() +
                  (attr.ints_size() > 0) + (attr.floats_size() > 0) +
                  (attr.strings_size() > 0);
  if (set > 1) {
    return ModelError("attribute ", attr.name(), ": expected one of i b f s ",
                      "ints floats strings, found ", set);
  }
  if (attr.has_i()) return AttrValue(static_cast<int64_t>(attr.i()));
  if (attr.has_b()) return AttrValue(attr.b());
  if (attr.has_f()) {
    if (std::isnan(attr.f())) {
      return ModelError("attribute ", attr.name(), ": expected a number, ",
                        "found nan");
    }
    return AttrValue(attr.f());
  }
  if (attr.has_s()) return AttrValue(attr.s());
  if (attr.floats_size() > 0) {
    return AttrValue(
        std::vector<double>(attr.floats().begin(), attr.floats().end()));
  }
  if (attr.strings_size() > 0) {
    return AttrValue(
        std::vector<std::string>(attr.strings().begin(), attr.strings().end()));
  }
  return AttrValue(
      std::vector<int64_t>(attr.ints().begin(), attr.ints().end()));
}

absl::string_view AttrName(const OpSchema& schema, absl::string_view name) {
  struct Alias {
    absl::string_view op, alias, name;
  };
  static constexpr Alias kAliases[] = {
      {"dropout", "dropout_prob", "p"},
      {"dropout_nd", "dropout_prob", "p"},
      // As slices and their gradients were written before they had Paddle's
      // form.
      {"slice", "axis", "axes"},
      {"slice", "start", "starts"},
      {"slice", "end", "ends"},
      {"transpose", "perm", "axis"},
  };
  for (const Alias& alias : kAliases) {
    if (alias.op == schema.name() && alias.alias == name) return alias.name;
  }
  return name;
}

absl::string_view SlotName(const OpSchema& schema, absl::string_view name) {
  return schema.name() == "slice" && name == "X" ? "Input" : name;
}

absl::Status SetCellType(const proto::Parameter& param, bool statistic,
                         Cell* cell) {
  TensorType& type = cell->type;
  type.dtype = FromProto(param.dtype());
  if (type.dtype == DType::kInvalid) return ModelError("expected a dtype");
  if (type.dtype != DType::kF32 && (IsFloat(type.dtype) || statistic)) {
    return ModelError("expected F32, found ", Name(type.dtype),
                      "; the strategy's amp level says what is kept low");
  }
  if (cell->trainable && !IsFloat(type.dtype)) {
    return ModelError("expected a trainable parameter to be F32, found ",
                      Name(type.dtype), "; add trainable: false");
  }
  for (int64_t dim : param.dims()) {
    if (dim < 1) {
      return ModelError("dims: expected 1 or more, found ", dim,
                        dim == -1 ? "; only feeds have a batch" : "");
    }
    type.dims.emplace_back(dim);
  }
  const std::string wrong = BadDims(type);
  if (!wrong.empty()) return ModelError("dims: ", wrong);
  return absl::OkStatus();
}

absl::Status SetInitializer(const proto::Parameter& param, Cell* cell) {
  HT_ASSIGN_OR_RETURN(cell->init, FromProto(param.init()));
  for (const double number : {cell->init.a, cell->init.b}) {
    if (std::abs(number) <= std::numeric_limits<float>::max()) continue;
    return ModelError("init: expected finite numbers of f32, found ",
                      ExactDouble(number));
  }
  if (NeedsFan(cell->init.kind) && cell->type.rank() < 2) {
    return ModelError("init: expected two dims or more, from which a fan-in ",
                      "follows, found ", cell->type.rank(),
                      "; use uniform or normal");
  }
  return absl::OkStatus();
}

}  // namespace halftone
