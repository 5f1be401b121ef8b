// What a strategy may say: each field what its entry in proto/strategy.proto
// says, and here what fields have to do with each other.
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "graph/strategy/optimizer_method.h"
#include "passes/options/byte_text.h"
#include "passes/options/check_dist.h"
#include "passes/options/options.h"
#include "passes/options/resolver.h"
#include "passes/options/strategy_checker.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// apex/amp/frontend.py, Properties.__setattr__: with O1 neither the model's
// type, nor master_weights, nor keep_batchnorm_fp32 may be changed. What only
// says again what O1 does is taken, so that a resolved strategy can be used
// again.
constexpr LevelRule kLevelRules[] = {
    {"O1", "amp.master_weights", false,
     "parameters stay FP32 at O1, which casts what ops read; take O2 or O3 for "
     "low parameters"},
    {"O1", "amp.keep_batchnorm_fp32", false,
     "batch norms keep scale, bias and statistics in FP32 at O1; take O2 or O3 "
     "for low ones"},
};

void CheckEachField(const proto::Strategy& strategy, Checker& check) {
  VisitValues(strategy, "",
              [&check](const Message& message, const FieldDescriptor& field,
                       int index, const std::string& path, int member) {
                const proto::FieldFacts& facts = FactsOf(field);
                const std::string value = ValueText(message, field, index);
                if (value.empty() && facts.required()) {
                  check.Refuse(path,
                               absl::StrCat(field.name(),
                                            " is missing: ", TakesText(field)),
                               member);
                }
                // Text that may be unset is unset by "".
                if (value.empty()) return;
                const std::string refusal = Refusal(field, value);
                if (refusal.empty()) return;
                if (member >= 0 && index < 0) {
                  check.RefuseIn(path, member, field.name(), refusal);
                } else {
                  check.Refuse(path, refusal, member);
                }
              });
}

void CheckScaling(const Resolver& resolver, Checker& check) {
  const proto::LossScaling& s = resolver.strategy().amp().loss_scaling();
  const std::string at = "amp.loss_scaling.";
  const double init = s.init_loss_scaling(), most = s.max_loss_scaling();
  // What is no scale, or no bound, was refused above.
  if (!s.use_dynamic_loss_scaling() ||
      !Refusal(*FindStrategyField(at + "init_loss_scaling")->descriptor,
               ExactDouble(init))
           .empty()) {
    return;
  }
  // Paddle starts wherever it is told to; its floor holds from the first
  // decrease on.
  const bool from_preset =
      absl::StartsWith(resolver.Origin(at + "min_loss_scaling"), "scaler ");
  if (most > 0 && s.min_loss_scaling() > most) {
    return check.Number(
        at + "min_loss_scaling", s.min_loss_scaling(), false,
        absl::StrCat("at most max_loss_scaling, ", ExactDouble(most)));
  }
  check.Number(at + "init_loss_scaling", init,
               from_preset || !std::isfinite(s.min_loss_scaling()) ||
                   init >= s.min_loss_scaling(),
               absl::StrCat("at least min_loss_scaling, ",
                            ExactDouble(s.min_loss_scaling())));
  check.Number(at + "init_loss_scaling", init, !(most > 0) || init <= most,
               absl::StrCat("at most max_loss_scaling, ", ExactDouble(most)));
}

void CheckLevel(const proto::Amp& amp, Checker& check) {
  for (const LevelRule& rule : kLevelRules) {
    const std::string refused = rule.refused ? "true" : "false";
    absl::string_view field = rule.path;
    absl::ConsumePrefix(&field, "amp.");
    if (amp.level() != rule.level || ValueAt(amp, field) != refused) continue;
    check.Refuse(rule.path,
                 absl::StrCat(refused, " does not go with amp.level ",
                              rule.level, ": ", rule.why));
  }
}

void CheckPiecewise(const proto::Piecewise& p, Checker& check) {
  if (p.factor_size() != p.boundary_size() + 1) {
    check.Refuse(
        p.factor_size() > 0 ? "lr.piecewise.factor" : "lr.piecewise.boundary",
        absl::StrCat("expected one factor more than boundaries, found ",
                     p.factor_size(), " factors and ", p.boundary_size(),
                     " boundaries"));
  }
  for (int i = 1; i < p.boundary_size(); ++i) {
    check.Number("lr.piecewise.boundary", p.boundary(i),
                 p.boundary(i) > p.boundary(i - 1),
                 TakesText(*proto::Piecewise::descriptor()->FindFieldByNumber(
                     proto::Piecewise::kBoundaryFieldNumber)),
                 i);
  }
}

void CheckMilestones(const proto::MultiStep& s, Checker& check) {
  const std::string at = "lr.multi_step.milestones";
  if (s.milestones_size() == 0) {
    check.Refuse(at,
                 absl::StrCat("milestones are missing: ",
                              TakesText(*FindStrategyField(at)->descriptor)));
  }
  for (int i = 1; i < s.milestones_size(); ++i) {
    check.Number(at, static_cast<double>(s.milestones(i)),
                 s.milestones(i) > s.milestones(i - 1),
                 TakesText(*FindStrategyField(at)->descriptor), i);
  }
}

void CheckOneCycle(const proto::OneCycle& s, Checker& check) {
  if (s.has_max_lr() && s.has_factor()) {
    check.Refuse("lr.one_cycle.factor", "max_lr is set, too: choose one");
  }
  if (s.three_phase()) {
    check.Number("lr.one_cycle.pct_start", s.pct_start(), s.pct_start() <= 0.5,
                 "at most 0.5 with three_phase: the second phase is as long "
                 "as the first");
  }
}

void CheckCyclic(const proto::LearningRate& lr, Checker& check) {
  const proto::Cyclic& s = lr.cyclic();
  // What base_batch makes of base depends on the run's batch.
  if (s.has_base_lr() || lr.base_batch() <= 0) {
    const double low = s.has_base_lr() ? s.base_lr() : lr.base();
    check.Number(
        "lr.cyclic.max_lr", s.max_lr(), s.max_lr() >= low,
        absl::StrCat("at least ", s.has_base_lr() ? "base_lr, " : "lr.base, ",
                     ExactDouble(low)));
  }
  if (s.gamma() != 1 && s.mode() != "exp_range") {
    check.Refuse("lr.cyclic.gamma",
                 absl::StrCat("is of mode exp_range alone, and mode is ",
                              s.mode(), ": set one of them otherwise"));
  }
}

void CheckRate(const proto::LearningRate& lr, Checker& check) {
  if (lr.warmup_epochs() > 0 && lr.warmup_steps() > 0) {
    check.Refuse("lr.warmup_steps", "warmup_epochs is set, too: choose one");
  }
  if (lr.has_noam() && (lr.warmup_epochs() > 0 || lr.warmup_steps() > 0)) {
    check.Refuse(lr.warmup_steps() > 0 ? "lr.warmup_steps" : "lr.warmup_epochs",
                 "lr.noam warms up by itself: set lr.noam.warmup_steps alone");
  }
  if (lr.has_polynomial() && lr.polynomial().cycle() &&
      !lr.polynomial().has_decay_steps()) {
    check.Refuse("lr.polynomial.cycle",
                 "begins again after decay_steps, which is not set: the run "
                 "is over before");
  }
  // 0 is a factor, but not one that is meant by saying nothing.
  if (lr.has_exponential() && !lr.exponential().has_gamma()) {
    const char* const at = "lr.exponential.gamma";
    check.Refuse(at,
                 absl::StrCat("gamma is missing: ",
                              TakesText(*FindStrategyField(at)->descriptor)));
  }
  if (lr.has_piecewise()) CheckPiecewise(lr.piecewise(), check);
  if (lr.has_multi_step()) CheckMilestones(lr.multi_step(), check);
  if (lr.has_one_cycle()) CheckOneCycle(lr.one_cycle(), check);
  if (lr.has_cyclic()) CheckCyclic(lr, check);
}

void CheckCrop(const proto::RandomResizedCrop& crop, Checker& check) {
  const std::string at = "train.augment.random_resized_crop.";
  check.Number(
      at + "scale_max", crop.scale_max(), crop.scale_max() >= crop.scale_min(),
      absl::StrCat("at least scale_min, ", ExactDouble(crop.scale_min())));
  check.Number(
      at + "ratio_max", crop.ratio_max(), crop.ratio_max() >= crop.ratio_min(),
      absl::StrCat("at least ratio_min, ", ExactDouble(crop.ratio_min())));
}

// Values that are in few bits cannot give the bits that a copy promises.
void CheckCompress(const proto::Memory& memory, Checker& check) {
  const proto::Compress& compress = memory.compress();
  const int64_t bits = compress.bits();
  const auto takes = [](absl::string_view path) {
    return TakesText(*FindStrategyField(path)->descriptor);
  };
  const char* const at = "memory.compress.bits";
  check.Number(at, static_cast<double>(bits),
               bits == 0 || bits == 2 || bits == 4 || bits == 8, takes(at));
  const char* const size_at = "memory.compress.group_size";
  const int64_t size = compress.group_size();
  check.Number(size_at, static_cast<double>(size),
               size % 32 == 0 || size < 32 || size > 1024, takes(size_at));
  if (bits == 0) {
    if (compress.values_size() > 0) {
      check.Refuse("memory.compress.values",
                   "names what is compressed, and memory.compress.bits is 0: "
                   "set that to 8, 4 or 2");
    }
    return;
  }
  if (memory.recompute().checkpoints_size() > 0) {
    check.Refuse(at,
                 "memory.recompute.checkpoints is set, too: what is made again "
                 "has the bits of what it is made from. Set "
                 "memory.recompute.within, which chooses between both, or one "
                 "of them alone");
  }
}

// What is to be made again is chosen in one way.
void CheckMemory(const proto::Strategy& strategy, Checker& check) {
  const proto::Recompute& recompute = strategy.memory().recompute();
  const std::string& budget = strategy.train().memory_budget();
  const auto bytes = [&](absl::string_view path, const std::string& text) {
    if (text.empty() || BytesFromText(text)) return;
    check.Refuse(path, absl::StrCat("expected bytes such as 8GiB or 512MB, "
                                    "found \"",
                                    text, "\""));
  };
  bytes("memory.recompute.within", recompute.within());
  bytes("train.memory_budget", budget);
  if (recompute.checkpoints_size() > 0 && !recompute.within().empty()) {
    check.Refuse("memory.recompute.within",
                 "memory.recompute.checkpoints is set, too: either names what "
                 "is kept; choose one");
  }
  if (budget.empty()) return;
  if (recompute.checkpoints_size() > 0 || !recompute.within().empty()) {
    check.Refuse(
        "train.memory_budget",
        absl::StrCat("memory.recompute.",
                     recompute.within().empty() ? "checkpoints" : "within",
                     " is set, too: the budget chooses what is kept; "
                     "choose one"));
  }
  if (strategy.train().batch_size() <= 0 &&
      strategy.train().batch_size_per_rank() <= 0) {
    check.Refuse("train.memory_budget",
                 "needs train.batch_size or train.batch_size_per_rank: what a "
                 "step needs grows with its samples");
  }
}

// A group may say in place of the method what the method has, and takes.
void CheckGroup(const proto::Group& group, const FieldDescriptor& method,
                int member, Checker& check) {
  std::vector<const FieldDescriptor*> set;
  group.GetReflection()->ListFields(group, &set);
  for (const FieldDescriptor* field : set) {
    if (!OverridesMethod(*field)) continue;
    const FieldDescriptor* const own =
        FieldOfMethod(*method.message_type(), field->name());
    if (own != nullptr) {
      const std::string value = ValueText(group, *field);
      const std::string refusal = Refusal(*own, value);
      if (!refusal.empty() && Refusal(*field, value).empty()) {
        check.RefuseIn("optimizer.group", member, field->name(), refusal);
      }
      continue;
    }
    check.Refuse(
        "optimizer.group",
        absl::StrCat("sets ", field->name(), ", and optimizer.", method.name(),
                     " has no such field; leave it "
                     "out or choose another method"),
        member);
  }
}

// One kind of clipping at a time: what two of them mean together depends on
// their order.
void CheckClip(const proto::Clip& clip, Checker& check) {
  std::vector<const FieldDescriptor*> set;
  clip.GetReflection()->ListFields(clip, &set);
  if (set.empty()) {
    check.Refuse("optimizer.clip",
                 "says nothing; expected one of global_norm, value and norm");
  }
  for (size_t i = 1; i < set.size(); ++i) {
    check.Refuse(absl::StrCat("optimizer.clip.", set[i]->name()),
                 absl::StrCat(set[0]->name(),
                              " is set, too: gradients are clipped in "
                              "one way; choose one"));
  }
}

void CheckOptimizer(const proto::Optimizer& optimizer, Checker& check) {
  const FieldDescriptor* method = MethodFieldOf(optimizer);
  if (method == nullptr) {
    check.Refuse("optimizer",
                 absl::StrCat("names no method; one of: ", MethodNames()));
    return;
  }
  if (optimizer.has_clip()) CheckClip(optimizer.clip(), check);
  for (int i = 0; i < optimizer.group_size(); ++i) {
    CheckGroup(optimizer.group(i), *method, i, check);
  }
}

}  // namespace

absl::Span<const LevelRule> LevelRules() { return kLevelRules; }

void CheckStrategy(const Resolver& resolver, ErrorList* errors) {
  Checker check(resolver, errors);
  const proto::Strategy& strategy = resolver.strategy();
  CheckEachField(strategy, check);
  CheckScaling(resolver, check);
  CheckLevel(strategy.amp(), check);
  if (strategy.has_optimizer()) CheckOptimizer(strategy.optimizer(), check);
  CheckRate(strategy.lr(), check);
  const proto::Train& train = strategy.train();
  if (train.has_batch_size() && train.has_batch_size_per_rank()) {
    check.Refuse("train.batch_size_per_rank",
                 "batch_size is set, too: choose one");
  }
  CheckMemory(strategy, check);
  CheckCompress(strategy.memory(), check);
  CheckDist(resolver, check);
  if (train.augment().has_random_resized_crop()) {
    CheckCrop(train.augment().random_resized_crop(), check);
  }
}

}  // namespace passes
}  // namespace halftone
