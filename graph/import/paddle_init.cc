#include "graph/import/paddle_init.h"

#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

using paddle::OpDesc;

std::optional<proto::Init> InitOf(const OpDesc& op) {
  proto::Init init;
  if (op.type() == "fill_constant") {
    init.set_constant(ConstantOf(op));
  } else if (op.type() == "uniform_random") {
    const double low = FloatAttr(op, "min", -1), high = FloatAttr(op, "max", 1);
    if (low == -high) {
      init.mutable_uniform()->set_bound(high);
    } else {
      init.mutable_uniform()->set_low(low);
      init.mutable_uniform()->set_high(high);
    }
  } else if (op.type() == "gaussian_random" ||
             op.type() == "truncated_gaussian_random") {
    proto::Normal& normal = op.type() == "gaussian_random"
                                ? *init.mutable_normal()
                                : *init.mutable_truncated_normal();
    normal.set_mean(FloatAttr(op, "mean", 0));
    normal.set_std(FloatAttr(op, "std", 1));
  } else {
    return std::nullopt;
  }
  return init;
}

proto::Init AsConstant(double value) {
  proto::Init init;
  init.set_constant(value);
  return init;
}

}  // namespace

std::map<std::string, proto::Init> StartupInits(
    const paddle::ProgramDesc& startup) {
  std::map<std::string, proto::Init> inits;
  for (const OpDesc& op : startup.blocks(0).ops()) {
    const std::optional<proto::Init> init = InitOf(op);
    for (const OpDesc::Var& out : op.outputs()) {
      for (const std::string& name : out.arguments()) {
        if (init.has_value()) {
          inits[name] = *init;
        } else {
          inits.erase(name);
        }
      }
    }
  }
  return inits;
}

proto::Init DefaultInit(const proto::Parameter& parameter, const OpDesc* op,
                        absl::string_view slot) {
  const bool real = parameter.dtype() == proto::F32;
  if (!real) return AsConstant(0);  // what a table holds is in the .pdiparams
  if (slot == "Variance" || slot == "Scale") return AsConstant(1);
  if (slot == "Mean" || slot == "Bias") return AsConstant(0);
  if (slot == "Alpha") return AsConstant(0.25);  // of prelu
  // Paddle calls weights x.w_0 and biases x.b_0.
  if (parameter.dims_size() < 2 || absl::StrContains(parameter.name(), ".b_")) {
    return AsConstant(0);
  }
  proto::Init init;
  const bool transposed =
      op != nullptr && absl::StrContains(op->type(), "transpose");
  if (slot != "Filter" || transposed) {
    init.mutable_xavier_uniform();
    return init;
  }
  // [O, C / groups, kernel...]: Paddle counts all input channels.
  double fan_in = static_cast<double>(IntAttr(*op, "groups", 1));
  for (int i = 1; i < parameter.dims_size(); ++i) {
    fan_in *= static_cast<double>(parameter.dims(i));
  }
  init.mutable_normal()->set_std(
      Shortest(static_cast<float>(std::sqrt(2 / std::max(1.0, fan_in)))));
  return init;
}

std::string KindOf(const proto::Init& init) {
  switch (init.kind_case()) {
    case proto::Init::kConstant:
      return ExactDouble(init.constant());
    case proto::Init::kUniform:
      return "uniform";
    case proto::Init::kNormal:
      return "normal";
    case proto::Init::kTruncatedNormal:
      return "truncated normal";
    case proto::Init::kXavierUniform:
      return "Xavier uniform";
    default:
      return "other";
  }
}

}  // namespace halftone
