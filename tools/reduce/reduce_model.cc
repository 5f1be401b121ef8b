#include "tools/reduce/reduce_model.h"

#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "graph/subset/model_subset.h"
#include "tools/search/smallest_set.h"

namespace halftone {
namespace tools {
namespace {

class Reducer {
 public:
  Reducer(const ModelFile& source, Fails fails)
      : model_(source), fails_(fails) {}

  absl::StatusOr<Reduced> Run();

 private:
  absl::StatusOr<bool> Ask(const ModelFile& model) {
    if (model.model->op_size() == 0) return false;
    ++asked_;
    return fails_(model);
  }
  absl::Status TakeOpsOut();
  absl::StatusOr<bool> MoveLoss();

  ModelFile model_;
  Fails fails_;
  int asked_ = 0;
};

absl::Status Reducer::TakeOpsOut() {
  const auto holds = [this](const std::vector<int>& ops) {
    return Ask(WithOps(model_, ops));
  };
  HT_ASSIGN_OR_RETURN(const std::vector<int> needed,
                      SmallestSet(model_.model->op_size(), holds));
  model_ = WithOps(model_, needed);
  return absl::OkStatus();
}

// Whether there are fewer ops by it.
absl::StatusOr<bool> Reducer::MoveLoss() {
  if (!model_.model->has_loss()) return false;
  for (int i = 0; i + 2 < model_.model->op_size(); ++i) {
    ModelFile cut = WithLossBehind(model_, i);
    if (cut.model->op_size() >= model_.model->op_size()) continue;
    HT_ASSIGN_OR_RETURN(const bool fails, Ask(cut));
    if (!fails) continue;
    model_ = std::move(cut);
    return true;
  }
  return false;
}

absl::StatusOr<Reduced> Reducer::Run() {
  const int before = model_.model->op_size();
  HT_ASSIGN_OR_RETURN(const bool fails, Ask(model_));
  if (!fails) {
    return UsageError(model_.file,
                      ": the whole model does not fail: there is "
                      "nothing to look for");
  }
  HT_RETURN_IF_ERROR(TakeOpsOut());
  HT_ASSIGN_OR_RETURN(const bool moved, MoveLoss());
  if (moved) HT_RETURN_IF_ERROR(TakeOpsOut());
  return Reduced{model_, before, asked_};
}

}  // namespace

absl::StatusOr<Reduced> ReduceModel(const ModelFile& source, Fails fails) {
  return Reducer(source, fails).Run();
}

}  // namespace tools
}  // namespace halftone
