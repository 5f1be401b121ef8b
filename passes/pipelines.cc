#include "passes/pipelines.h"

#include <utility>

#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/differentiate/append_backward.h"
#include "passes/differentiate/scale_loss.h"
#include "passes/differentiate/sync_batch_norm.h"
#include "passes/lower/choose_layout.h"
#include "passes/lower/clean_up.h"
#include "passes/lower/fuse.h"
#include "passes/lower/generate_startup.h"
#include "passes/lower/keep_taps.h"
#include "passes/lower/legality.h"
#include "passes/lower/split_batch_norm.h"
#include "passes/parallel/bucket_allreduce.h"
#include "passes/parallel/insert_allreduce.h"
#include "passes/precision/assign_precision.h"
#include "passes/precision/derive_eval.h"
#include "passes/precision/insert_casts.h"
#include "passes/update/append_optimizer.h"
#include "passes/update/check_and_unscale.h"
#include "passes/update/clip.h"
#include "passes/update/master_weights.h"

namespace halftone {
namespace passes {
namespace {

using Factory =
    std::function<std::unique_ptr<Pass>(const Options&, const KernelSet&)>;

template <typename P>
Factory Plain() {
  return [](const Options&, const KernelSet&) { return std::make_unique<P>(); };
}
template <typename P>
Factory FromKernels() {
  return [](const Options&, const KernelSet& kernels) {
    return std::make_unique<P>(kernels);
  };
}

bool Always(const Options&) { return true; }
bool Training(const Options& o) { return o.has_optimizer; }

std::unique_ptr<Pass> MakeAssign(const Options& o, const KernelSet& kernels) {
  return std::make_unique<AssignPrecision>(o, kernels);
}
std::unique_ptr<Pass> MakeCasts(const Options& o, const KernelSet&) {
  return std::make_unique<InsertCasts>(o.amp);
}
std::unique_ptr<Pass> MakeEval(const Options& o, const KernelSet&) {
  return std::make_unique<DeriveEval>(/*keep_train=*/o.has_optimizer);
}
std::unique_ptr<Pass> MakeScale(const Options& o, const KernelSet&) {
  return std::make_unique<ScaleLoss>(o.scaling.init);
}
std::unique_ptr<Pass> MakeReduce(const Options& o, const KernelSet&) {
  return std::make_unique<InsertAllreduce>(o.scale_gradients_before);
}
std::unique_ptr<Pass> MakeBuckets(const Options& o, const KernelSet&) {
  BucketAllreduce::Settings settings;
  settings.fuse = o.fuse_all_reduce;
  settings.first_bytes = o.first_bucket_bytes;
  settings.bytes = o.bucket_bytes;
  return std::make_unique<BucketAllreduce>(settings);
}
std::unique_ptr<Pass> MakeCheck(const Options& o, const KernelSet&) {
  return std::make_unique<CheckAndUnscale>(o.scaling, o.scale_gradients_before);
}
std::unique_ptr<Pass> MakeClip(const Options& o, const KernelSet&) {
  return std::make_unique<Clip>(o.optimizer.clip().global_norm());
}
std::unique_ptr<Pass> MakeOptimizer(const Options& o, const KernelSet&) {
  return std::make_unique<AppendOptimizer>(o.optimizer, o.lr);
}
std::unique_ptr<Pass> MakeSplit(const Options& o, const KernelSet& kernels) {
  return std::make_unique<SplitBatchNorm>(kernels, o.amp.strict_f32_slots);
}
std::unique_ptr<Pass> MakeFuse(const Options& o, const KernelSet& kernels) {
  return std::make_unique<Fuse>(kernels, o.amp.strict_f32_slots);
}

std::vector<PassStep>* MakeSteps() {
  return new std::vector<PassStep>{
      // First: every later pass builds on the decisions, and none revises one.
      {Phase::kPrecision, "assign-precision", MakeAssign, Always},
      // Before backward, so that casts are differentiated like any other op.
      {Phase::kPrecision, "insert-casts", MakeCasts, Always},
      // Eval is train's forward part in train's precision: cloned once casts
      // are in and before anything that is for training alone.
      {Phase::kPrecision, "derive-eval", MakeEval, Always},
      // Before backward, which needs the synchronised norm's own gradient.
      {Phase::kBackward, "sync-batch-norm", Plain<SyncBatchNorm>(),
       [](const Options& o) { return Training(o) && o.sync_batch_norm; }},
      // The seed that backward starts from.
      {Phase::kBackward, "scale-loss", MakeScale, Training},
      // Whatever follows reads gradients.
      {Phase::kBackward, "append-backward", Plain<AppendBackward>(), Training},
      // On the scaled gradient in the dtype in which it was made, before the
      // finite check: half the bytes, and one verdict on all ranks. Eval's
      // totals are made here, too.
      {Phase::kParallel, "insert-allreduce", MakeReduce, Always},
      // Needs the order in which backward makes the gradients, which holds
      // until something moves ops.
      {Phase::kParallel, "bucket-allreduce", MakeBuckets, Training},
      // Reads what was reduced; everything after it is guarded by FoundInf.
      {Phase::kUpdate, "check-and-unscale", MakeCheck, Training},
      // The norm is that of true-scale gradients, which exist only now.
      {Phase::kUpdate, "clip", MakeClip,
       [](const Options& o) { return Training(o) && o.optimizer.has_clip(); }},
      // Takes the gradients as check, unscale and clip left them.
      {Phase::kUpdate, "append-optimizer", MakeOptimizer, Training},
      // Needs the update that is to write the low cells.
      {Phase::kUpdate, "master-weights", Plain<MasterWeights>(), Always},
      // Before anything that hides 4-d operands in parts or bodies.
      {Phase::kLowered, "choose-layout", FromKernels<ChooseLayout>(), Always},
      // Before fuse, which matches the parts.
      {Phase::kLowered, "split-batch-norm", MakeSplit, Always},
      // After backward, forward and backward together: no value that backward
      // reads is hidden in a body.
      {Phase::kLowered, "fuse", MakeFuse, Always},
      // After fuse, which would rather match casts and clones as they were.
      {Phase::kLowered, "clean-up", FromKernels<CleanUp>(), Always},
      // Nothing after it changes an op of train or eval.
      {Phase::kLowered, "legality", FromKernels<Legality>(), Always},
      // Needs every cell that any pass made.
      {Phase::kLowered, "generate-startup", Plain<GenerateStartup>(), Always},
  };
}

}  // namespace

const std::vector<PassStep>& AllSteps() {
  static const std::vector<PassStep>* const steps = MakeSteps();
  return *steps;
}

absl::StatusOr<std::unique_ptr<Pass>> MakePass(absl::string_view name,
                                               const Options& options,
                                               const KernelSet& kernels) {
  std::vector<std::string> names;
  for (const PassStep& step : AllSteps()) {
    if (step.name == name) return step.make(options, kernels);
    names.push_back(step.name);
  }
  return UsageError("no pass is called \"", name, "\"",
                    NearestHint(name, names));
}

PassPipeline MakePipeline(const Options& options, const KernelSet& kernels,
                          PassPipeline::Settings settings,
                          const std::vector<std::string>& taps) {
  PassPipeline pipeline(std::move(settings));
  bool tapped = taps.empty();
  for (const PassStep& step : AllSteps()) {
    if (!step.wanted(options)) continue;
    // Every value is there, and none has gone yet.
    if (step.phase == Phase::kLowered && !std::exchange(tapped, true)) {
      pipeline.Add(std::make_unique<KeepTaps>(taps), step.phase);
    }
    pipeline.Add(step.make(options, kernels), step.phase);
  }
  return pipeline;
}

}  // namespace passes
}  // namespace halftone
