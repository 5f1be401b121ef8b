// Which bundles of defaults are in force: levels, dtypes and scaler presets.
// What they stand for is said by the fields (proto/strategy.proto), each of
// which may be overridden alone.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

// Beyond its ceiling (an initial scale too) Apex goes on at the ceiling.
constexpr absl::string_view kClamps = "scaler apex";

// Where the scale itself is given but not its bounds, they make room for it.
void WidenBounds(Resolver& resolver) {
  const double init =
      resolver.strategy().amp().loss_scaling().init_loss_scaling();
  if (!(init > 0) || !std::isfinite(init)) return;  // the check names it
  const proto::LossScaling& ours = proto::LossScaling::default_instance();
  if (init < ours.min_loss_scaling()) {
    resolver.SetIfUnset("amp.loss_scaling.min_loss_scaling", ExactDouble(init),
                        kDefaultOrigin);
  }
  if (init > ours.max_loss_scaling()) {
    resolver.SetIfUnset("amp.loss_scaling.max_loss_scaling", ExactDouble(init),
                        kDefaultOrigin);
  }
}

void ApplyScaling(Resolver& resolver, const std::string& preset,
                  const std::vector<std::string>& bundles) {
  resolver.FillDefault("amp.loss_scaling.use_dynamic_loss_scaling", bundles);
  proto::LossScaling& scaling =
      *resolver.strategy().mutable_amp()->mutable_loss_scaling();
  // The scale of a level or a dtype is one that stays.
  const bool dynamic = scaling.use_dynamic_loss_scaling();
  resolver.FillDefault("amp.loss_scaling.init_loss_scaling",
                       dynamic ? std::vector<std::string>{preset} : bundles);
  if (preset.empty()) WidenBounds(resolver);
  resolver.FillDefaults(bundles);
  const double ceiling = scaling.max_loss_scaling();
  if (dynamic && preset == kClamps && ceiling > 0 &&
      scaling.init_loss_scaling() > ceiling) {
    scaling.set_init_loss_scaling(ceiling);
  }
}

// The word in its own spelling, so that a resolved strategy has one; that of
// the default where it is wrong (`spelled` empty).
void Canonical(Resolver& resolver, absl::string_view path, std::string* field,
               absl::string_view spelled, absl::string_view hint,
               ErrorList* errors) {
  const google::protobuf::FieldDescriptor& of =
      *FindStrategyField(path)->descriptor;
  if (spelled.empty()) {
    errors->Add(
        resolver.Error(path, absl::StrCat("expected ", TakesText(of),
                                          ", found \"", *field, "\"", hint)));
  }
  *field = spelled.empty() ? of.default_value_string() : std::string(spelled);
}

// What a wrong amp.dtype may have meant.
std::string LowDTypeHint(absl::string_view word) {
  if (DTypeFromName(word) == DType::kF32) return "; all in FP32 is level O0";
  return NearestHint(word, {"fp16", "bf16"});
}

}  // namespace

absl::string_view Name(Level level) {
  return FindStrategyField("amp.level")->facts->word(static_cast<int>(level));
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

Level LevelOf(const proto::Amp& amp) { return *LevelFromName(amp.level()); }

DType LowOf(const proto::Amp& amp) { return *LowDTypeFromName(amp.dtype()); }

PrecisionRule RuleOf(const proto::Amp& amp) {
  const std::string& rule = amp.precision_rule();
  return rule == "any_low"    ? PrecisionRule::kAnyLow
         : rule == "min_cost" ? PrecisionRule::kMinCost
                              : PrecisionRule::kAllLow;
}

void ApplyDefaults(Resolver& resolver, ErrorList* errors) {
  resolver.FillDefault("amp.level", {});
  resolver.FillDefault("amp.dtype", {});
  proto::Amp& amp = *resolver.strategy().mutable_amp();
  const std::optional<Level> named = LevelFromName(amp.level());
  Canonical(resolver, "amp.level", amp.mutable_level(),
            named.has_value() ? Name(*named) : "", "", errors);
  const std::optional<DType> low = LowDTypeFromName(amp.dtype());
  Canonical(resolver, "amp.dtype", amp.mutable_dtype(),
            !low.has_value()      ? ""
            : *low == DType::kF16 ? "fp16"
                                  : "bf16",
            LowDTypeHint(amp.dtype()), errors);

  std::string preset;
  std::vector<std::string> bundles;
  if (!amp.scaler().empty() &&
      Refusal(*FindStrategyField("amp.scaler")->descriptor, amp.scaler())
          .empty()) {
    preset = absl::StrCat("scaler ", amp.scaler());
    bundles.push_back(preset);
  }
  bundles.push_back(absl::StrCat("dtype ", amp.dtype()));
  bundles.push_back(absl::StrCat("level ", amp.level()));
  ApplyScaling(resolver, preset, bundles);
}

// Sums of virtual shards are f32, and their bits the same on any number of
// ranks: none of them scales.
bool ScalesBefore(const proto::Dist& dist) {
  return dist.gradient_scale() == "pre" && !HasVirtualShards(dist);
}

bool MeansOverRanks(const proto::Dist& dist) {
  return dist.gradient_mean() == "ranks";
}

int64_t MergedSteps(const proto::Dist& dist) {
  return dist.gradient_merge().k_steps();
}

bool HasVirtualShards(const proto::Dist& dist) {
  return dist.has_virtual_shards();
}

int64_t SamplesOfRank(const proto::Train& train) {
  return train.batch_size() > 0 ? train.batch_size()
                                : train.batch_size_per_rank();
}

int64_t SamplesAtOnce(const proto::Strategy& strategy) {
  const proto::Dist& dist = strategy.dist();
  const int64_t samples = SamplesOfRank(strategy.train());
  const int64_t parts = HasVirtualShards(dist)
                            ? dist.virtual_shards()
                            : std::min(MergedSteps(dist), samples);
  return parts > 1 ? (samples + parts - 1) / parts : samples;
}

bool ShardsOptimizer(const proto::Dist& dist) {
  return dist.has_sharding() && dist.sharding().stage() > 0;
}

bool CompressesGradients(const proto::Dist& dist) { return dist.has_dgc(); }

bool AveragesParameters(const proto::Dist& dist) {
  return dist.has_localsgd() || dist.has_adaptive_localsgd();
}

}  // namespace passes
}  // namespace halftone
