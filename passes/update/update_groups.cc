#include "passes/update/update_groups.h"

#include <map>
#include <memory>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

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

// Index of the last group whose glob matches; -1 for none.
int StrategyGroupOf(absl::string_view parameter,
                    const proto::Optimizer& optimizer) {
  for (int i = optimizer.group_size() - 1; i >= 0; --i) {
    if (GlobMatch(optimizer.group(i).match(), parameter)) return i;
  }
  return -1;
}

// Parameters that some entry casts to a low dtype: they get a low cell, whose
// new value is an output of the update.
absl::flat_hash_set<CellId> ReadLow(const Program& program) {
  absl::flat_hash_set<CellId> cells;
  for (const auto& entry : program.entries()) {
    const Block& block = entry->block();
    for (OpId cast : LowCastsOfCells(block)) {
      cells.insert(block.value(block.op(cast).in(0)).cell());
    }
  }
  return cells;
}

}  // namespace

absl::StatusOr<UpdateMethod> MethodOf(const proto::Optimizer& optimizer) {
  UpdateMethod method;
  switch (optimizer.method_case()) {
    case proto::Optimizer::kSgd:
      method.op = "sgd";
      method.weight_decay = optimizer.sgd().weight_decay();
      return method;
    case proto::Optimizer::kMomentum:
      method.op = "momentum";
      method.slots = {{"Velocity", "velocity"}};
      method.attrs = {{"mu", optimizer.momentum().momentum()},
                      {"use_nesterov", optimizer.momentum().use_nesterov()}};
      method.weight_decay = optimizer.momentum().weight_decay();
      return method;
    case proto::Optimizer::kAdam:
      return Adam(optimizer.adam(), "adam");
    case proto::Optimizer::kAdamw:
      return Adam(optimizer.adamw(), "adamw");
    case proto::Optimizer::METHOD_NOT_SET:
      break;
  }
  return ModelError(
      "the strategy's optimizer has no method; write one of sgd {} momentum {} "
      "adam {} adamw {} in it");
}

std::vector<UpdateGroup> GroupUpdates(
    const Program& program, const Block& train,
    const proto::Optimizer& optimizer, const UpdateMethod& method,
    absl::Span<const ParameterGradient> gradients) {
  const absl::flat_hash_set<CellId> read_low = ReadLow(program);
  std::vector<UpdateGroup> groups;
  std::map<std::tuple<int, DType, DType, bool>, int> group_of;
  for (const ParameterGradient& gradient : gradients) {
    const Cell& cell = program.cell(gradient.parameter);
    const int strategy_group = StrategyGroupOf(cell.name, optimizer);
    const auto [it, fresh] = group_of.try_emplace(
        {strategy_group, cell.type.dtype, train.dtype(gradient.reduced),
         read_low.contains(cell.id)},
        static_cast<int>(groups.size()));
    if (fresh) {
      UpdateGroup group;
      group.weight_decay = method.weight_decay;
      if (strategy_group >= 0) {
        const proto::Group& g = optimizer.group(strategy_group);
        if (g.has_weight_decay()) group.weight_decay = g.weight_decay();
        if (g.has_lr_scale()) group.lr_scale = g.lr_scale();
      }
      groups.push_back(std::move(group));
    }
    groups[it->second].members.push_back(gradient);
  }
  return groups;
}

}  // namespace passes
}  // namespace halftone
