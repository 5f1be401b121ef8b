// The range of every field of a strategy. NaN fails every comparison, so that
// each check is written as what must hold.
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Every check adds its error and returns whether there is none.
class Checker {
 public:
  Checker(const Resolver& resolver, ErrorList* errors)
      : resolver_(resolver), errors_(*errors) {}

  bool Refuse(absl::string_view path, absl::string_view message,
              int member = -1) {
    return errors_.Add(resolver_.Error(path, message, member));
  }
  bool Number(absl::string_view path, double value, bool holds,
              absl::string_view expected, int member = -1) {
    return holds || Refuse(path,
                           absl::StrCat("expected ", expected, ", found ",
                                        ExactDouble(value)),
                           member);
  }
  bool Positive(absl::string_view path, double value) {
    return Number(path, value, value > 0 && value < kInf,
                  "a finite number above 0");
  }
  bool NotNegative(absl::string_view path, double value) {
    return Number(path, value, value >= 0 && value < kInf,
                  "a finite number, 0 or above");
  }
  bool Below1(absl::string_view path, double value) {
    return Number(path, value, value >= 0 && value < 1,
                  "a number from 0 to below 1");
  }
  bool Count(absl::string_view path, int64_t value) {
    return value >= 1 ||
           Refuse(path, absl::StrCat("expected a whole number above 0, found ",
                                     value));
  }
  bool Word(absl::string_view path, const std::string& word,
            const std::vector<std::string>& words) {
    for (const std::string& w : words) {
      if (w == word) return true;
    }
    return Refuse(
        path, absl::StrCat("expected ", absl::StrJoin(words, " or "),
                           ", found \"", word, "\"", NearestHint(word, words)));
  }

 private:
  const Resolver& resolver_;
  ErrorList& errors_;
};

void CheckScaling(const Resolver& resolver, Checker& check) {
  const proto::LossScaling& s = resolver.strategy().amp().loss_scaling();
  const std::string at = "amp.loss_scaling.";
  // The scale is an f32 in the program.
  const double init = s.init_loss_scaling();
  const bool sound = check.Number(at + "init_loss_scaling", init,
                                  init >= std::numeric_limits<float>::min() &&
                                      init <= std::numeric_limits<float>::max(),
                                  "a finite number above 0");
  check.Count(at + "incr_every_n_steps", s.incr_every_n_steps());
  check.Count(at + "decr_every_n_nan_or_inf", s.decr_every_n_nan_or_inf());
  check.Number(at + "incr_ratio", s.incr_ratio(),
               s.incr_ratio() >= 1 && s.incr_ratio() < kInf,
               "a finite number, 1 or above");
  check.Number(at + "decr_ratio", s.decr_ratio(),
               s.decr_ratio() > 0 && s.decr_ratio() <= 1,
               "a number above 0 and at most 1");
  check.NotNegative(at + "min_loss_scaling", s.min_loss_scaling());
  check.Number(at + "max_loss_scaling", s.max_loss_scaling(),
               s.max_loss_scaling() >= 0,
               "a number, 0 or above (0 and inf: none)");
  if (!s.use_dynamic_loss_scaling() || !sound) return;
  // What is no bound was refused above.
  // Paddle starts wherever it is told to; its floor holds from the first
  // decrease on.
  const bool from_preset =
      absl::StartsWith(resolver.Origin(at + "min_loss_scaling"), "scaler ");
  check.Number(at + "init_loss_scaling", init,
               from_preset || !(s.min_loss_scaling() < kInf) ||
                   init >= s.min_loss_scaling(),
               absl::StrCat("at least min_loss_scaling, ",
                            ExactDouble(s.min_loss_scaling())));
  check.Number(at + "init_loss_scaling", init,
               !(s.max_loss_scaling() > 0) || init <= s.max_loss_scaling(),
               absl::StrCat("at most max_loss_scaling, ",
                            ExactDouble(s.max_loss_scaling())));
}

void CheckAdam(Checker& check, const std::string& at, const proto::Adam& adam) {
  check.Below1(at + ".beta1", adam.beta1());
  check.Below1(at + ".beta2", adam.beta2());
  check.Positive(at + ".epsilon", adam.epsilon());
  check.NotNegative(at + ".weight_decay", adam.weight_decay());
}

void CheckMethod(const Resolver& resolver, Checker& check) {
  const proto::Optimizer& o = resolver.strategy().optimizer();
  switch (o.method_case()) {
    case proto::Optimizer::kSgd:
      check.NotNegative("optimizer.sgd.weight_decay", o.sgd().weight_decay());
      return;
    case proto::Optimizer::kMomentum:
      check.Below1("optimizer.momentum.momentum", o.momentum().momentum());
      check.NotNegative("optimizer.momentum.weight_decay",
                        o.momentum().weight_decay());
      return;
    case proto::Optimizer::kAdam:
      CheckAdam(check, "optimizer.adam", o.adam());
      return;
    case proto::Optimizer::kAdamw:
      CheckAdam(check, "optimizer.adamw", o.adamw());
      return;
    case proto::Optimizer::METHOD_NOT_SET:
      break;
  }
  check.Refuse("optimizer", "names no method; one of: sgd momentum adam adamw");
}

void CheckOptimizer(const Resolver& resolver, Checker& check) {
  if (!resolver.strategy().has_optimizer()) return;
  const proto::Optimizer& o = resolver.strategy().optimizer();
  CheckMethod(resolver, check);
  for (int i = 0; i < o.group_size(); ++i) {
    const proto::Group& group = o.group(i);
    if (group.match().empty()) {
      check.Refuse("optimizer.group",
                   "match is missing: a glob over parameter names", i);
      continue;
    }
    const double decay = group.weight_decay();
    check.Number("optimizer.group", decay, decay >= 0 && decay < kInf,
                 "weight_decay 0 or above", i);
    const double scale = group.lr_scale();
    check.Number("optimizer.group", scale, scale >= 0 && scale < kInf,
                 "lr_scale 0 or above", i);
  }
  if (!o.has_clip()) return;
  check.Positive("optimizer.clip.global_norm", o.clip().global_norm());
}

void CheckPiecewise(const Resolver& resolver, Checker& check) {
  const proto::Piecewise& p = resolver.strategy().lr().piecewise();
  if (p.factor_size() != p.boundary_size() + 1) {
    check.Refuse(
        "lr.piecewise.factor",
        absl::StrCat("expected one factor more than boundaries, found ",
                     p.factor_size(), " factors and ", p.boundary_size(),
                     " boundaries"));
    return;
  }
  double last = 0;
  for (int i = 0; i < p.boundary_size(); ++i) {
    check.Number("lr.piecewise.boundary", p.boundary(i),
                 p.boundary(i) > last && p.boundary(i) < 1,
                 "rising fractions of the run between 0 and 1", i);
    last = p.boundary(i);
  }
  for (int i = 0; i < p.factor_size(); ++i) {
    check.Number("lr.piecewise.factor", p.factor(i),
                 p.factor(i) >= 0 && p.factor(i) < kInf,
                 "a finite number, 0 or above", i);
  }
  return;
}

void CheckLearningRate(const Resolver& resolver, Checker& check) {
  const proto::LearningRate& lr = resolver.strategy().lr();
  check.NotNegative("lr.base", lr.base());
  if (lr.has_base_batch()) {
    check.Count("lr.base_batch", lr.base_batch());
  }
  check.NotNegative("lr.warmup_epochs", lr.warmup_epochs());
  check.NotNegative("lr.warmup_steps", lr.warmup_steps());
  if (lr.warmup_epochs() > 0 && lr.warmup_steps() > 0) {
    check.Refuse("lr.warmup_steps", "warmup_epochs is set, too: choose one");
  }
  if (lr.has_cosine()) {
    const double ratio = lr.cosine().min_ratio();
    check.Number("lr.cosine.min_ratio", ratio, ratio >= 0 && ratio <= 1,
                 "a number from 0 to 1");
  }
  if (lr.has_linear()) {
    const double ratio = lr.linear().min_ratio();
    check.Number("lr.linear.min_ratio", ratio, ratio >= 0 && ratio <= 1,
                 "a number from 0 to 1");
  }
  if (lr.has_piecewise()) CheckPiecewise(resolver, check);
}

void CheckTrain(const Resolver& resolver, Checker& check) {
  const proto::Train& t = resolver.strategy().train();
  if (t.has_batch_size() && t.has_batch_size_per_rank()) {
    check.Refuse("train.batch_size_per_rank",
                 "batch_size is set, too: choose one");
  }
  if (t.has_batch_size()) {
    check.Count("train.batch_size", t.batch_size());
  }
  if (t.has_batch_size_per_rank()) {
    check.Count("train.batch_size_per_rank", t.batch_size_per_rank());
  }
  check.Count("train.epochs", t.epochs());
  check.NotNegative("train.seed", t.seed());
  check.Word("train.tail", t.tail(), {"exact", "pad", "drop"});
  const proto::StopRule& stop = t.stop_rule();
  check.Count("train.stop_rule.skipped_in_a_row", stop.skipped_in_a_row());
  check.Count("train.stop_rule.skipped_at_floor", stop.skipped_at_floor());
  check.Count("train.stop_rule.loss_not_finite", stop.loss_not_finite());
}

void CheckDist(const Resolver& resolver, Checker& check) {
  const proto::Dist& d = resolver.strategy().dist();
  // Below 2^63 bytes.
  const double most = 8e12;
  check.Number(
      "dist.fuse_grad_size_in_MB", d.fuse_grad_size_in_mb(),
      d.fuse_grad_size_in_mb() > 0 && d.fuse_grad_size_in_mb() < most,
      "a number above 0 (fuse_all_reduce_ops: false switches fusing off)");
  check.Number(
      "dist.first_bucket_size_in_MB", d.first_bucket_size_in_mb(),
      d.first_bucket_size_in_mb() > 0 && d.first_bucket_size_in_mb() < most,
      "a number above 0");
  check.Word("dist.gradient_scale", d.gradient_scale(), {"pre", "post"});
}

}  // namespace

void CheckStrategy(const Resolver& resolver, ErrorList* errors) {
  Checker check(resolver, errors);
  check.Word("amp.precision_rule", resolver.strategy().amp().precision_rule(),
             {"all_low", "any_low"});
  CheckScaling(resolver, check);
  CheckOptimizer(resolver, check);
  CheckLearningRate(resolver, check);
  CheckDist(resolver, check);
  CheckTrain(resolver, check);
}

}  // namespace passes
}  // namespace halftone
