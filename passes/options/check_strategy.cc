// What a strategy may say: each field what its entry in proto/strategy.proto
// says, and here what fields have to do with each other.
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "passes/options/resolver.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

class Checker {
 public:
  Checker(const Resolver& resolver, ErrorList* errors)
      : resolver_(resolver), errors_(*errors) {}

  void Refuse(absl::string_view path, absl::string_view message,
              int member = -1) {
    errors_.Add(resolver_.Error(path, message, member));
  }
  // Written as what must hold: NaN fails every comparison.
  void Number(absl::string_view path, double value, bool holds,
              absl::string_view expected, int member = -1) {
    if (holds) return;
    Refuse(path,
           absl::StrCat("expected ", expected, ", found ", ExactDouble(value)),
           member);
  }

 private:
  const Resolver& resolver_;
  ErrorList& errors_;
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
                if (!refusal.empty()) check.Refuse(path, refusal, member);
              });
}

void CheckScaling(const Resolver& resolver, Checker& check) {
  const proto::LossScaling& s = resolver.strategy().amp().loss_scaling();
  const std::string at = "amp.loss_scaling.";
  const double init = s.init_loss_scaling();
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
  check.Number(at + "init_loss_scaling", init,
               from_preset || !std::isfinite(s.min_loss_scaling()) ||
                   init >= s.min_loss_scaling(),
               absl::StrCat("at least min_loss_scaling, ",
                            ExactDouble(s.min_loss_scaling())));
  check.Number(at + "init_loss_scaling", init,
               !(s.max_loss_scaling() > 0) || init <= s.max_loss_scaling(),
               absl::StrCat("at most max_loss_scaling, ",
                            ExactDouble(s.max_loss_scaling())));
}

void CheckPiecewise(const proto::Piecewise& p, Checker& check) {
  if (p.factor_size() != p.boundary_size() + 1) {
    check.Refuse(
        "lr.piecewise.factor",
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

void CheckCrop(const proto::RandomResizedCrop& crop, Checker& check) {
  const std::string at = "train.augment.random_resized_crop.";
  check.Number(
      at + "scale_max", crop.scale_max(), crop.scale_max() >= crop.scale_min(),
      absl::StrCat("at least scale_min, ", ExactDouble(crop.scale_min())));
  check.Number(
      at + "ratio_max", crop.ratio_max(), crop.ratio_max() >= crop.ratio_min(),
      absl::StrCat("at least ratio_min, ", ExactDouble(crop.ratio_min())));
}

}  // namespace

void CheckStrategy(const Resolver& resolver, ErrorList* errors) {
  Checker check(resolver, errors);
  const proto::Strategy& strategy = resolver.strategy();
  CheckEachField(strategy, check);
  CheckScaling(resolver, check);
  if (strategy.has_optimizer() &&
      strategy.optimizer().method_case() == proto::Optimizer::METHOD_NOT_SET) {
    check.Refuse("optimizer",
                 "names no method; one of: sgd momentum adam adamw");
  }
  const proto::LearningRate& lr = strategy.lr();
  if (lr.warmup_epochs() > 0 && lr.warmup_steps() > 0) {
    check.Refuse("lr.warmup_steps", "warmup_epochs is set, too: choose one");
  }
  if (lr.has_piecewise()) CheckPiecewise(lr.piecewise(), check);
  const proto::Train& train = strategy.train();
  if (train.has_batch_size() && train.has_batch_size_per_rank()) {
    check.Refuse("train.batch_size_per_rank",
                 "batch_size is set, too: choose one");
  }
  const int64_t merged = MergedSteps(strategy.dist());
  if (train.has_batch_size() && train.batch_size() > 0 &&
      train.batch_size() < merged) {
    check.Refuse(
        "dist.gradient_merge.k_steps",
        absl::StrCat("expected at most train.batch_size, ", train.batch_size(),
                     ", found ", merged, ": each micro-batch has a sample"));
  }
  if (train.augment().has_random_resized_crop()) {
    CheckCrop(train.augment().random_resized_crop(), check);
  }
}

}  // namespace passes
}  // namespace halftone
