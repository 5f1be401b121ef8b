#include "runtime/compare/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "kernels/cpu/convert.h"
#include "runtime/checkpoint/cell_tensor.h"
#include "runtime/compare/watch_values.h"
#include "runtime/train/non_finite.h"
#include "runtime/train/peers.h"

namespace halftone {
namespace runtime {
namespace {

constexpr float kLargestF16 = 65504;

ValueRange RangeOf(absl::string_view name, DType dtype, const void* data,
                   int64_t elements) {
  ValueRange range;
  range.name = std::string(name);
  range.dtype = dtype;
  range.elements = elements;
  std::vector<float> values(elements);
  kernels::ToFloat(dtype, data, values.data(), elements);
  range.min = std::numeric_limits<double>::infinity();
  range.max = -range.min;
  for (const float x : values) {
    if (!std::isfinite(x)) {
      ++range.non_finite;
      continue;
    }
    range.min = std::min<double>(range.min, x);
    range.max = std::max<double>(range.max, x);
    range.above_f16 += std::fabs(x) > kLargestF16;
  }
  if (range.non_finite == elements) range.min = range.max = NAN;
  return range;
}

// Of which the step makes or has a copy in f16.
std::vector<bool> CellsWithF16(const Program& program) {
  std::vector<bool> has(program.num_cells(), false);
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind == CellKind::kDerived && cell.type.dtype == DType::kF16) {
      has[cell.of.index()] = true;
    }
  }
  return has;
}

std::vector<ValueRange> RuinedParameters(const Capsule& capsule,
                                         const Program& program) {
  const std::vector<bool> has_f16 = CellsWithF16(program);
  std::vector<ValueRange> ruined;
  for (const Tensor& tensor : capsule.cells) {
    const OfRank of = ParseNameOfRank(tensor.name);
    const CellId id = program.FindCell(of.rank == 0 ? tensor.name : of.cell);
    if (!id.valid() || program.cell(id).kind != CellKind::kParameter ||
        tensor.dtype != DType::kF32) {
      continue;
    }
    const ValueRange range =
        RangeOf(tensor.name, tensor.dtype, tensor.bytes.data(),
                static_cast<int64_t>(tensor.bytes.size() / sizeof(float)));
    const bool beyond = has_f16[id.index()] && range.above_f16 > 0;
    if (range.non_finite > 0 || beyond) ruined.push_back(range);
  }
  return ruined;
}

// Notes the ranges of what one op, of a fusion's body too, reads and makes.
class RangeWatcher : public ValueWatcher {
 public:
  RangeWatcher(const Program& program, const std::string& entry,
               const std::string& op) {
    const Block& block = program.FindEntry(entry)->block();
    if (Find(block, op)) return;
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& fusion = block.op(id);
      if (fusion.body != nullptr && Find(*fusion.body, op)) break;
    }
    if (block_ == nullptr || block_ == &block) return;
    FindOutside(block);
  }

  std::vector<ValueRange> Inputs() const { return Of(inputs_); }
  std::vector<ValueRange> Outputs() const { return Of(outputs_); }

 protected:
  bool Wants(const ValueKey& key) const override { return IsOfOp(key); }
  absl::Status OnInput(const Tap& tap) override { return Note(tap); }
  absl::Status OnOutput(const Tap& tap) override { return Note(tap); }

 private:
  bool Find(const Block& block, const std::string& op) {
    const OpId id = block.FindOp(op);
    if (!id.valid()) return false;
    block_ = &block;
    for (const ValueId value : block.op(id).inputs.all()) {
      inputs_.push_back(value.index());
    }
    for (const ValueId value : block.op(id).outputs.all()) {
      outputs_.push_back(value.index());
    }
    return true;
  }
  // What goes into the fusion and comes out is seen there.
  void FindOutside(const Block& block) {
    for (OpId id = block.first(); id.valid(); id = block.next(id)) {
      const Op& fusion = block.op(id);
      if (fusion.body.get() != block_) continue;
      const std::vector<ValueId> feeds = block_->Feeds();
      for (size_t i = 0; i < feeds.size(); ++i) {
        inside_[{&block, fusion.inputs.all()[i].index()}] = feeds[i].index();
      }
      for (size_t i = 0; i < block_->body_results().size(); ++i) {
        inside_[{&block, fusion.outputs.all()[i].index()}] =
            block_->body_results()[i].index();
      }
    }
  }
  int IdOf(const ValueKey& key) const {
    if (key.first == block_) return key.second;
    const auto found = inside_.find(key);
    return found == inside_.end() ? -1 : found->second;
  }
  bool IsOfOp(const ValueKey& key) const {
    const int id = IdOf(key);
    return id >= 0 &&
           (std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end() ||
            std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end());
  }
  absl::Status Note(const Tap& tap);
  std::vector<ValueRange> Of(const std::vector<int>& ids) const {
    std::vector<ValueRange> ranges;
    for (const int id : ids) {
      const auto found = ranges_.find(id);
      if (found != ranges_.end()) ranges.push_back(found->second);
    }
    return ranges;
  }

  const Block* block_ = nullptr;
  std::vector<int> inputs_, outputs_;
  absl::flat_hash_map<ValueKey, int> inside_;
  absl::flat_hash_map<int, ValueRange> ranges_;
};

absl::Status RangeWatcher::Note(const Tap& tap) {
  if (!IsOfOp(tap.key) || !IsFloat(tap.desc.dtype)) return absl::OkStatus();
  const int id = IdOf(tap.key);
  if (ranges_.count(id) > 0) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const void* const data, OnHost(tap));
  ranges_[id] = RangeOf(block_->name(ValueId(id)), tap.desc.dtype, data,
                        tap.desc.elements());
  return absl::OkStatus();
}

// By the scalers' number.
std::vector<float> ScalesOf(const Capsule& capsule) {
  std::map<std::string, float> by_name;
  for (const Tensor& tensor : capsule.cells) {
    if (absl::StartsWith(tensor.name, kLossScaling)) {
      std::memcpy(&by_name[tensor.name], tensor.bytes.data(), sizeof(float));
    }
  }
  std::vector<float> scales;
  for (int i = 0;; ++i) {
    const auto found =
        by_name.find(absl::StrCat(kLossScaling, ScalerSuffix(i)));
    if (found == by_name.end()) break;
    scales.push_back(found->second);
  }
  if (scales.empty()) scales.push_back(1);
  return scales;
}

std::vector<ReplayedPart> ScaledParts(const Program& program,
                                      const std::vector<float>& scales,
                                      const std::vector<bool>& not_finite) {
  std::vector<ReplayedPart> parts;
  for (size_t i = 0; i < not_finite.size(); ++i) {
    if (i >= scales.size() || i >= program.loss.parts.size()) break;
    parts.push_back({program.loss.parts[i].name, scales[i], not_finite[i]});
  }
  return parts;
}

// One of the capsule's ranks.
class Replayer {
 public:
  Replayer(const Capsule& capsule, const Program& program,
           const kernels::KernelRegistry& kernels, const RankResources& rank)
      : capsule_(capsule), program_(program), kernels_(kernels), rank_(rank) {}

  absl::Status Run(Replayed* replayed);

 private:
  // By the step's micro-batches.
  const std::vector<Capsule::Fed>& fed() const {
    return capsule_.ranks[rank_.communicator->rank()];
  }
  std::string EntryOf(size_t micro_batch) const {
    return micro_batch + 1 == fed().size() ? capsule_.facts.entry
                                           : kAccumulateEntry;
  }
  // On all ranks: they prepare together what any of them needs.
  bool IsAsBefore(size_t micro_batch) const;
  std::vector<FeedData> Feeds(size_t micro_batch) const {
    return FeedsOf(*program_.FindEntry(EntryOf(micro_batch)),
                   fed()[micro_batch]);
  }
  // The cell that the tensor is of, that of `rank` there.
  absl::StatusOr<CellId> CellOf(const Tensor& tensor, int* rank) const;
  // What the step has found, so that what ran before leaves nothing behind;
  // `scale`, if there is one, in place of its loss scale or those of its parts.
  absl::Status Load(std::optional<float> scale);
  struct Outcome {
    bool rejected = false;
    std::vector<bool> not_finite;  // by the loss's parts that have a scaler
  };
  // `ranges`, if not null, watches this micro-batch.
  absl::StatusOr<Outcome> Execute(StepWatcher* ranges, int64_t watched);
  bool IsOfUpdate(const NonFinite& found) const;
  absl::Status Name(Replayed* replayed);
  absl::Status FindScale(Replayed* replayed);

  const Capsule& capsule_;
  const Program& program_;
  const kernels::KernelRegistry& kernels_;
  const RankResources& rank_;
  std::unique_ptr<Executor> executor_;
  std::vector<int> bindings_;  // by the step's micro-batches
};

bool Replayer::IsAsBefore(size_t micro_batch) const {
  if (micro_batch == 0 || EntryOf(micro_batch) != EntryOf(micro_batch - 1)) {
    return false;
  }
  return std::all_of(capsule_.ranks.begin(), capsule_.ranks.end(),
                     [micro_batch](const std::vector<Capsule::Fed>& fed) {
                       return SymbolsOf(fed[micro_batch]) ==
                              SymbolsOf(fed[micro_batch - 1]);
                     });
}

absl::StatusOr<CellId> Replayer::CellOf(const Tensor& tensor, int* rank) const {
  const OfRank of = ParseNameOfRank(tensor.name);
  const CellId cell = program_.FindCell(of.rank == 0 ? tensor.name : of.cell);
  const auto size = static_cast<int64_t>(tensor.bytes.size());
  TensorType type = cell.valid() ? program_.cell(cell).type : TensorType();
  type.sharded = false;
  if (!cell.valid() || kernels::Bind(type, {}).bytes() != size || of.rank < 0 ||
      of.rank >= capsule_.facts.world_size) {
    return CheckpointError("the capsule's cell ", tensor.name, " of ", size,
                           " bytes is none of its program");
  }
  *rank = of.rank;
  return cell;
}

absl::Status Replayer::Load(std::optional<float> scale) {
  std::vector<std::pair<CellId, const Tensor*>> copies, own;
  for (const Tensor& tensor : capsule_.cells) {
    int rank = 0;
    HT_ASSIGN_OR_RETURN(const CellId cell, CellOf(tensor, &rank));
    if (rank > 0) {
      if (rank == rank_.communicator->rank()) own.emplace_back(cell, &tensor);
      continue;
    }
    if (program_.cell(cell).IsMadeAgain()) {
      copies.emplace_back(cell, &tensor);
      continue;
    }
    std::string bytes = tensor.bytes;
    if (scale.has_value() && absl::StartsWith(tensor.name, kLossScaling)) {
      std::memcpy(&bytes[0], &*scale, sizeof(*scale));
    }
    HT_RETURN_IF_ERROR(executor_->WriteCell(cell, bytes));
  }
  HT_RETURN_IF_ERROR(executor_->BroadcastState());
  for (const auto& [cell, tensor] : own) {
    HT_RETURN_IF_ERROR(executor_->WriteCell(cell, tensor->bytes));
  }
  HT_RETURN_IF_ERROR(executor_->Derive());
  if (copies.empty()) return absl::OkStatus();
  // Of schema 1, which has them alone: not those of what it lacks.
  for (const auto& [cell, tensor] : copies) {
    HT_RETURN_IF_ERROR(executor_->WriteCell(cell, tensor->bytes));
  }
  return executor_->BroadcastState();
}

absl::StatusOr<Replayer::Outcome> Replayer::Execute(StepWatcher* ranges,
                                                    int64_t watched) {
  for (size_t i = 0;; ++i) {
    const std::vector<FeedData> feeds = Feeds(i);
    if (ranges != nullptr && static_cast<int64_t>(i) == watched) {
      HT_RETURN_IF_ERROR(executor_->Watch(bindings_[i], feeds, ranges));
    }
    if (i + 1 < bindings_.size()) {
      HT_RETURN_IF_ERROR(executor_->Accumulate(bindings_[i], feeds));
      continue;
    }
    HT_ASSIGN_OR_RETURN(const int64_t ticket,
                        executor_->Execute(bindings_[i], feeds));
    HT_ASSIGN_OR_RETURN(const StepView view, executor_->Read(ticket));
    Outcome outcome;
    outcome.rejected = view.Scalar(kFoundInf) != 0;
    for (int part = 0;; ++part) {
      const std::string name = absl::StrCat(kNotFinitePrefix, part);
      if (!view.Has(name)) return outcome;
      outcome.not_finite.push_back(view.Scalar(name) > 0);
    }
  }
}

bool Replayer::IsOfUpdate(const NonFinite& found) const {
  const Block& block = program_.FindEntry(EntryOf(found.micro_batch))->block();
  const OpId op = block.FindOp(found.op);
  return op.valid() && block.op(op).role == Role::kOptimize;
}

// The op that comes first on whatever rank, and its numbers there. Of the
// update's ops none: what those read besides is not in the capsule.
absl::Status Replayer::Name(Replayed* replayed) {
  Communicator& communicator = *rank_.communicator;
  HT_RETURN_IF_ERROR(Load(std::nullopt));
  HT_ASSIGN_OR_RETURN(const NonFinite mine, executor_->FirstNonFinite());
  HT_ASSIGN_OR_RETURN(const FirstOfRanks first,
                      FindFirst(mine, program_, communicator));
  if (first.rank < 0 || IsOfUpdate(first.found)) return absl::OkStatus();
  RangeWatcher ranges(program_, EntryOf(first.found.micro_batch),
                      first.found.op);
  HT_RETURN_IF_ERROR(Load(std::nullopt));
  HT_RETURN_IF_ERROR(Execute(&ranges, first.found.micro_batch).status());
  if (communicator.rank() != first.rank) return absl::OkStatus();
  replayed->rank = first.rank;
  replayed->found = first.found;
  replayed->inputs = ranges.Inputs();
  replayed->outputs = ranges.Outputs();
  return absl::OkStatus();
}

// What overflows at a scale does so at any larger one. A strategy has one scale
// for all parts of the loss, to begin with or as a bound.
absl::Status Replayer::FindScale(Replayed* replayed) {
  const std::vector<float> scales = ScalesOf(capsule_);
  const float largest =
      std::min(*std::max_element(scales.begin(), scales.end()),
               std::numeric_limits<float>::max());
  int clean = -1, rejected = static_cast<int>(std::ceil(std::log2(largest)));
  while (rejected - clean > 1) {
    const int exponent = clean < 0 ? 0 : (clean + rejected) / 2;
    HT_RETURN_IF_ERROR(Load(std::ldexp(1.0F, exponent)));
    HT_ASSIGN_OR_RETURN(const Outcome again, Execute(nullptr, -1));
    (again.rejected ? rejected : clean) = exponent;
  }
  if (rank_.communicator->rank() == 0 && clean >= 0) {
    replayed->clean_loss_scaling = std::ldexp(1.0, clean);
  }
  return absl::OkStatus();
}

absl::Status Replayer::Run(Replayed* replayed) {
  TuningTable tuning;
  if (!capsule_.tuning.empty()) {
    HT_ASSIGN_OR_RETURN(
        tuning, TuningTable::Parse(capsule_.tuning, "the capsule's tuning"));
  }
  ExecutorOptions options;
  options.deterministic = capsule_.facts.deterministic;
  options.use_graphs = false;
  HT_ASSIGN_OR_RETURN(executor_,
                      Executor::Create(&program_, &kernels_, rank_.device,
                                       rank_.communicator, tuning, options));
  for (size_t i = 0; i < fed().size(); ++i) {
    if (IsAsBefore(i)) {
      bindings_.push_back(bindings_.back());
      continue;
    }
    HT_ASSIGN_OR_RETURN(bindings_.emplace_back(),
                        executor_->Prepare(EntryOf(i), SymbolsOf(fed()[i])));
  }
  HT_RETURN_IF_ERROR(executor_->Initialize(/*seed=*/0));
  HT_RETURN_IF_ERROR(Load(std::nullopt));
  HT_ASSIGN_OR_RETURN(const Outcome outcome, Execute(nullptr, -1));
  if (rank_.communicator->rank() == 0) {
    const std::vector<float> scales = ScalesOf(capsule_);
    replayed->rejected = outcome.rejected;
    replayed->loss_scaling = *std::min_element(scales.begin(), scales.end());
    replayed->parts = ScaledParts(program_, scales, outcome.not_finite);
  }
  // Of a step that is applied what is not finite does no harm: a mask's -inf.
  if (!outcome.rejected) return absl::OkStatus();
  HT_RETURN_IF_ERROR(Name(replayed));
  return FindScale(replayed);
}

}  // namespace

double ValueRange::largest() const {
  return std::max(std::fabs(min), std::fabs(max));
}

absl::StatusOr<Replayed> Replay(const Capsule& capsule, const Program& program,
                                const kernels::KernelRegistry& kernels,
                                const std::vector<RankResources>& ranks) {
  if (program.FindEntry(capsule.facts.entry) == nullptr ||
      ranks.size() != capsule.ranks.size()) {
    return CheckpointError("the capsule's program has no entry ",
                           capsule.facts.entry, " for ", capsule.ranks.size(),
                           " ranks");
  }
  if (capsule.ranks[0].size() > 1 &&
      program.FindEntry(kAccumulateEntry) == nullptr) {
    return CheckpointError("the capsule has ", capsule.ranks[0].size(),
                           " micro-batches, its program has no entry ",
                           kAccumulateEntry);
  }
  Replayed replayed;
  std::vector<absl::Status> results(ranks.size());
  std::vector<Replayed> parts(ranks.size());
  const auto run = [&](size_t r) {
    results[r] = Replayer(capsule, program, kernels, ranks[r]).Run(&parts[r]);
    if (!results[r].ok()) ranks[r].communicator->Abort(results[r]);
  };
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ranks.size(); ++r) threads.emplace_back(run, r);
  run(0);
  for (std::thread& thread : threads) thread.join();
  HT_RETURN_IF_ERROR(Culprit(results));
  for (const Replayed& part : parts) {
    if (part.rank >= 0) replayed = part;
  }
  replayed.rejected = parts[0].rejected;
  replayed.loss_scaling = parts[0].loss_scaling;
  replayed.parts = parts[0].parts;
  replayed.clean_loss_scaling = parts[0].clean_loss_scaling;
  if (replayed.rejected) replayed.ruined = RuinedParameters(capsule, program);
  return replayed;
}

}  // namespace runtime
}  // namespace halftone
