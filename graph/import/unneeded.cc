#include "graph/import/unneeded.h"

#include <utility>
#include <vector>

namespace halftone {

absl::flat_hash_set<std::string> WantedValues(const proto::Model& model) {
  absl::flat_hash_set<std::string> wanted(model.output().begin(),
                                          model.output().end());
  wanted.insert(
      {model.loss().var(), model.loss().mean_over(), model.loss().mask()});
  wanted.insert(model.loss().denominator().begin(),
                model.loss().denominator().end());
  for (const proto::LossPart& part : model.loss().part()) {
    wanted.insert(part.var());
  }
  for (const proto::Metric& metric : model.metric()) {
    wanted.insert({metric.var(), metric.over()});
  }
  return wanted;
}

void DropUnneeded(proto::Model* const model) {
  absl::flat_hash_set<std::string> needed = WantedValues(*model);
  std::vector<proto::OpNode> kept;
  for (int i = model->op_size() - 1; i >= 0; --i) {
    proto::OpNode& op = *model->mutable_op(i);
    bool need = false;
    for (const proto::SlotVars& out : op.out()) {
      for (const std::string& name : out.var()) {
        need = need || needed.contains(name);
      }
    }
    if (!need) continue;
    for (const proto::SlotVars& in : op.in()) {
      needed.insert(in.var().begin(), in.var().end());
    }
    kept.push_back(std::move(op));
  }
  model->clear_op();
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) {
    *model->add_op() = std::move(*op);
  }
  const auto keep = [&needed](auto* all) {
    auto copy = *all;
    all->Clear();
    for (auto& one : copy) {
      if (needed.contains(one.name())) *all->Add() = std::move(one);
    }
  };
  keep(model->mutable_feed());
  keep(model->mutable_param());
  keep(model->mutable_stat());
}

}  // namespace halftone
