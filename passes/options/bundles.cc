// What levels and scaler presets stand for: bundles of defaults, each of them
// overridable alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

constexpr absl::string_view kScaling = "amp.loss_scaling.";

struct Scaler {
  absl::string_view name;
  absl::string_view init, incr_every, incr_ratio, decr_every, decr_ratio;
  absl::string_view floor, ceiling;
  // How the original computes: its ratios are f32; beyond its ceiling (an
  // initial scale too) it goes on at the ceiling.
  bool f32_ratios = false, clamp = false;
};

// Ours first. Of the others: Paddle 2.6's decorate() as its users set it and
// its op update_loss_scaling, apex.amp's LossScaler, torch.amp's GradScaler and
// its _amp_update_scale_.
constexpr std::array<Scaler, 4> kScalers = {{
    {"", "32768", "1000", "2", "2", "0.5", "1", "16777216"},
    {"paddle", "32768", "1000", "2", "2", "0.8", "1", "inf", true},
    {"apex", "65536", "2000", "2", "1", "0.5", "0", "16777216", false, true},
    {"torch", "65536", "2000", "2", "1", "0.5", "0", "inf"},
}};

// Ours for a name that is none.
Scaler FindScaler(const Resolver& resolver, ErrorList* errors) {
  const std::string& name = resolver.strategy().amp().scaler();
  std::vector<std::string> names;
  for (const Scaler& scaler : kScalers) {
    if (scaler.name == name) return scaler;
    if (!scaler.name.empty()) names.emplace_back(scaler.name);
  }
  errors->Add(resolver.Error(
      "amp.scaler", absl::StrCat("expected paddle, apex or torch, found \"",
                                 name, "\"", NearestHint(name, names))));
  return kScalers[0];
}

// Where the scale itself is given but not its bounds, they make room for it.
void WidenBounds(Resolver& resolver) {
  const double init =
      resolver.strategy().amp().loss_scaling().init_loss_scaling();
  if (!resolver.IsSet("amp.loss_scaling.init_loss_scaling") || !(init > 0) ||
      !std::isfinite(init)) {
    return;  // the check names it
  }
  if (init < 1) {
    resolver.SetIfUnset("amp.loss_scaling.min_loss_scaling", ExactDouble(init),
                        "default");
  }
  if (init > 16777216) {
    resolver.SetIfUnset("amp.loss_scaling.max_loss_scaling", ExactDouble(init),
                        "default");
  }
}

void ApplyScaling(Resolver& resolver, const std::string& level_origin,
                  bool constant_by_level, ErrorList* errors) {
  const Scaler scaler = FindScaler(resolver, errors);
  const bool preset = !scaler.name.empty();
  const std::string origin =
      preset ? absl::StrCat("scaler ", scaler.name) : "default";
  const auto set = [&](absl::string_view field, absl::string_view value,
                       absl::string_view from) {
    resolver.SetIfUnset(absl::StrCat(kScaling, field), value, from);
  };
  const bool constant = constant_by_level && !preset;
  set("use_dynamic_loss_scaling", constant ? "false" : "true",
      preset ? origin : level_origin);
  const bool dynamic =
      resolver.strategy().amp().loss_scaling().use_dynamic_loss_scaling();
  if (constant && !dynamic) set("init_loss_scaling", "1", level_origin);
  set("init_loss_scaling", scaler.init, origin);
  if (!preset) WidenBounds(resolver);
  set("incr_every_n_steps", scaler.incr_every, origin);
  set("incr_ratio", scaler.incr_ratio, origin);
  set("decr_every_n_nan_or_inf", scaler.decr_every, origin);
  set("decr_ratio", scaler.decr_ratio, origin);
  set("min_loss_scaling", scaler.floor, origin);
  set("max_loss_scaling", scaler.ceiling, origin);
  proto::LossScaling* scaling =
      resolver.strategy().mutable_amp()->mutable_loss_scaling();
  const double ceiling = scaling->max_loss_scaling();
  if (dynamic && scaler.clamp && ceiling > 0 &&
      scaling->init_loss_scaling() > ceiling) {
    scaling->set_init_loss_scaling(ceiling);
  }
}

// The word in its own spelling, so that a resolved strategy has one; that of
// the default where it is wrong.
void Canonical(Resolver& resolver, absl::string_view path, std::string* field,
               absl::string_view spelled, absl::string_view or_default,
               const std::string& message, ErrorList* errors) {
  if (spelled.empty()) errors->Add(resolver.Error(path, message));
  *field = std::string(spelled.empty() ? or_default : spelled);
}

// What a wrong amp.dtype may have meant.
std::string LowDTypeHint(absl::string_view word) {
  if (DTypeFromName(word) == DType::kF32) return "; all in FP32 is level O0";
  return NearestHint(word, {"fp16", "bf16"});
}

}  // namespace

absl::string_view Name(Level level) {
  constexpr std::array<absl::string_view, 4> kNames = {"O0", "O1", "O2", "O3"};
  return kNames[static_cast<int>(level)];
}

std::optional<Level> LevelFromName(absl::string_view name) {
  std::string word = absl::AsciiStrToUpper(name);
  if (word.size() == 2 && word[0] == '0') word[0] = 'O';
  for (const Level level : {Level::kO0, Level::kO1, Level::kO2, Level::kO3}) {
    if (word == Name(level)) return level;
  }
  return std::nullopt;
}

std::optional<DType> LowDTypeFromName(absl::string_view name) {
  const std::optional<DType> dtype = DTypeFromName(name);
  return dtype.has_value() && IsLow(*dtype) ? dtype : std::nullopt;
}

LossScalingOptions ScalingOf(const proto::Amp& amp) {
  const proto::LossScaling& from = amp.loss_scaling();
  LossScalingOptions scaling;
  scaling.dynamic = from.use_dynamic_loss_scaling();
  scaling.init = from.init_loss_scaling();
  scaling.incr_every = from.incr_every_n_steps();
  scaling.decr_every = from.decr_every_n_nan_or_inf();
  scaling.incr_ratio = from.incr_ratio();
  scaling.decr_ratio = from.decr_ratio();
  scaling.floor = from.min_loss_scaling();
  scaling.ceiling = from.max_loss_scaling();
  for (const Scaler& scaler : kScalers) {
    if (scaler.name != amp.scaler()) continue;
    scaling.clamp = scaler.clamp;
    if (scaler.f32_ratios) {
      scaling.incr_ratio = static_cast<float>(scaling.incr_ratio);
      scaling.decr_ratio = static_cast<float>(scaling.decr_ratio);
    }
  }
  return scaling;
}

void ApplyBundles(Resolver& resolver, ErrorList* errors) {
  resolver.SetIfUnset("amp.level", "O0", "default");
  resolver.SetIfUnset("amp.dtype", "fp16", "default");
  resolver.SetIfUnset("amp.precision_rule", "all_low", "default");
  proto::Amp& amp = *resolver.strategy().mutable_amp();
  const std::optional<Level> named = LevelFromName(amp.level());
  Canonical(
      resolver, "amp.level", amp.mutable_level(),
      named.has_value() ? Name(*named) : "", "O0",
      absl::StrCat("expected O0, O1, O2 or O3, found \"", amp.level(), "\""),
      errors);
  const std::optional<DType> low = LowDTypeFromName(amp.dtype());
  Canonical(resolver, "amp.dtype", amp.mutable_dtype(),
            !low.has_value()      ? ""
            : *low == DType::kF16 ? "fp16"
                                  : "bf16",
            "fp16",
            absl::StrCat("expected fp16 or bf16, found \"", amp.dtype(), "\"",
                         LowDTypeHint(amp.dtype())),
            errors);

  const Level level = named.value_or(Level::kO0);
  const std::string origin = absl::StrCat("level ", Name(level));
  const bool o3 = level == Level::kO3;
  resolver.SetIfUnset("amp.master_weights", o3 ? "false" : "true", origin);
  resolver.SetIfUnset("amp.keep_batchnorm_fp32", o3 ? "false" : "true", origin);
  const bool constant = level == Level::kO0 || o3 || low == DType::kBF16;
  ApplyScaling(resolver, origin, constant, errors);
}

}  // namespace passes
}  // namespace halftone
