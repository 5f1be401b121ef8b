#include "passes/update/update_groups.h"

#include <map>
#include <memory>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_replace.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/strategy/optimizer_method.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

UpdateMethod Sgd(const proto::Sgd& sgd) {
  UpdateMethod method;
  method.op = "sgd";
  method.weight_decay = sgd.weight_decay();
  return method;
}

UpdateMethod Momentum(const proto::Momentum& momentum) {
  UpdateMethod method;
  method.op = "momentum";
  method.slots = {{"Velocity", "velocity"}};
  method.attrs = {{"mu", momentum.momentum()},
                  {"use_nesterov", momentum.use_nesterov()}};
  method.weight_decay = momentum.weight_decay();
  return method;
}

UpdateMethod Adam(const proto::Adam& adam, absl::string_view op) {
  UpdateMethod method;
  method.op = std::string(op);
  method.slots = {{"Moment1", "moment1"}, {"Moment2", "moment2"}};
  method.attrs = {{"beta1", adam.beta1()},
                  {"beta2", adam.beta2()},
                  {"epsilon", adam.epsilon()}};
  method.weight_decay = adam.weight_decay();
  method.reads_applied = true;
  return method;
}

UpdateMethod Adagrad(const proto::Adagrad& adagrad) {
  UpdateMethod method;
  method.op = "adagrad";
  method.slots = {
      {"SquareSum", "square_sum", adagrad.initial_accumulator_value()}};
  method.attrs = {{"lr_decay", adagrad.lr_decay()},
                  {"epsilon", adagrad.epsilon()}};
  method.weight_decay = adagrad.weight_decay();
  method.reads_applied = true;
  return method;
}

UpdateMethod Rmsprop(const proto::Rmsprop& rmsprop) {
  UpdateMethod method;
  method.op = "rmsprop";
  method.slots = {{"MeanSquare", "mean_square"}};
  if (rmsprop.centered()) method.slots.push_back({"MeanGrad", "mean_grad"});
  if (rmsprop.momentum() > 0) method.slots.push_back({"Momentum", "momentum"});
  method.attrs = {{"alpha", rmsprop.alpha()}, {"epsilon", rmsprop.epsilon()}};
  if (rmsprop.momentum() > 0) {
    method.attrs.emplace_back("momentum", rmsprop.momentum());
  }
  method.weight_decay = rmsprop.weight_decay();
  return method;
}

UpdateMethod Adadelta(const proto::Adadelta& adadelta) {
  UpdateMethod method;
  method.op = "adadelta";
  method.slots = {{"MeanSquare", "mean_square"}, {"MeanDelta", "mean_delta"}};
  method.attrs = {{"rho", adadelta.rho()}, {"epsilon", adadelta.epsilon()}};
  method.weight_decay = adadelta.weight_decay();
  return method;
}

UpdateMethod Adamax(const proto::Adamax& adamax) {
  UpdateMethod method;
  method.op = "adamax";
  method.slots = {{"Moment", "moment"}, {"InfNorm", "inf_norm"}};
  method.attrs = {{"beta1", adamax.beta1()},
                  {"beta2", adamax.beta2()},
                  {"epsilon", adamax.epsilon()}};
  method.weight_decay = adamax.weight_decay();
  method.reads_applied = true;
  return method;
}

UpdateMethod Lars(const proto::Lars& lars) {
  UpdateMethod method;
  method.op = "lars";
  method.slots = {{"Velocity", "velocity"}};
  method.attrs = {{"mu", lars.momentum()},
                  {"lars_coeff", lars.lars_coeff()},
                  {"epsilon", lars.epsilon()},
                  {"trust_ratio", lars.trust_ratio()}};
  method.weight_decay = lars.lars_weight_decay();
  return method;
}

UpdateMethod Lamb(const proto::Lamb& lamb) {
  UpdateMethod method;
  method.op = "lamb";
  method.slots = {{"Moment1", "moment1"}, {"Moment2", "moment2"}};
  method.attrs = {{"beta1", lamb.beta1()},
                  {"beta2", lamb.beta2()},
                  {"epsilon", lamb.epsilon()},
                  {"trust_ratio", lamb.trust_ratio()}};
  method.weight_decay = lamb.weight_decay();
  method.reads_applied = true;
  return method;
}

UpdateMethod Lion(const proto::Lion& lion) {
  UpdateMethod method;
  method.op = "lion";
  method.slots = {{"Moment", "moment"}};
  method.attrs = {{"beta1", lion.beta1()}, {"beta2", lion.beta2()}};
  method.weight_decay = lion.weight_decay();
  return method;
}

// Index of the last group whose glob matches; -1 for none.
int StrategyGroupOf(absl::string_view parameter,
                    const proto::Optimizer& optimizer) {
  for (int i = optimizer.group_size() - 1; i >= 0; --i) {
    if (GlobMatch(optimizer.group(i).match(), parameter)) return i;
  }
  return -1;
}

// Whether some entry casts the parameter to a low dtype: it gets a low cell,
// whose new value is an output of the update.
bool IsReadLow(const Program& program, CellId parameter) {
  return absl::c_any_of(program.entries(), [&](const auto& entry) {
    return !LowCastsOf(entry->block(), parameter).empty();
  });
}

}  // namespace

absl::StatusOr<UpdateMethod> MethodOf(const proto::Optimizer& optimizer) {
  switch (optimizer.method_case()) {
    case proto::Optimizer::kSgd:
      return Sgd(optimizer.sgd());
    case proto::Optimizer::kMomentum:
      return Momentum(optimizer.momentum());
    case proto::Optimizer::kAdam:
      return Adam(optimizer.adam(), "adam");
    case proto::Optimizer::kAdamw:
      return Adam(optimizer.adamw(), "adamw");
    case proto::Optimizer::kAdagrad:
      return Adagrad(optimizer.adagrad());
    case proto::Optimizer::kRmsprop:
      return Rmsprop(optimizer.rmsprop());
    case proto::Optimizer::kAdadelta:
      return Adadelta(optimizer.adadelta());
    case proto::Optimizer::kAdamax:
      return Adamax(optimizer.adamax());
    case proto::Optimizer::kLars:
      return Lars(optimizer.lars());
    case proto::Optimizer::kLamb:
      return Lamb(optimizer.lamb());
    case proto::Optimizer::kLion:
      return Lion(optimizer.lion());
    case proto::Optimizer::METHOD_NOT_SET:
      break;
  }
  return ModelError("the strategy's optimizer has no method; write one of ",
                    absl::StrReplaceAll(MethodNames(), {{" ", " {} "}}),
                    " {} in it");
}

absl::StatusOr<std::vector<UpdateGroup>> GroupUpdates(
    const Program& program, const Block& train,
    const proto::Optimizer& optimizer,
    absl::Span<const ParameterGradient> gradients) {
  std::vector<UpdateGroup> groups;
  std::map<std::tuple<int, DType, DType, bool>, int> group_of;
  for (const ParameterGradient& gradient : gradients) {
    const Cell& cell = program.cell(gradient.parameter);
    const int strategy_group = StrategyGroupOf(cell.name, optimizer);
    const auto [it, fresh] = group_of.try_emplace(
        {strategy_group, cell.type.dtype, train.dtype(gradient.reduced),
         IsReadLow(program, cell.id)},
        static_cast<int>(groups.size()));
    if (fresh) {
      const proto::Group g =
          strategy_group < 0 ? proto::Group() : optimizer.group(strategy_group);
      UpdateGroup group;
      HT_ASSIGN_OR_RETURN(group.method, MethodOf(WithGroup(optimizer, g)));
      if (g.has_lr_scale()) group.lr_scale = g.lr_scale();
      groups.push_back(std::move(group));
    }
    groups[it->second].members.push_back(gradient);
  }
  return groups;
}

}  // namespace passes
}  // namespace halftone
