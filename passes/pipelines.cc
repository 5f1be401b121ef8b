#include "passes/pipelines.h"

#include <utility>

#include "passes/differentiate/append_backward.h"
#include "passes/differentiate/freeze.h"
#include "passes/differentiate/keep_argmax.h"
#include "passes/differentiate/scale_loss.h"
#include "passes/differentiate/share_counts.h"
#include "passes/differentiate/sync_batch_norm.h"
#include "passes/lower/compress.h"
#include "passes/lower/convert_regions.h"
#include "passes/lower/drop_dead.h"
#include "passes/lower/fold_casts.h"
#include "passes/lower/fold_transposes.h"
#include "passes/lower/fold_updates.h"
#include "passes/lower/fuse.h"
#include "passes/lower/generate_startup.h"
#include "passes/lower/keep_relu_bits.h"
#include "passes/lower/keep_taps.h"
#include "passes/lower/lay_out_filters.h"
#include "passes/lower/legality.h"
#include "passes/lower/mask_pooled.h"
#include "passes/lower/pad_channels.h"
#include "passes/lower/recompute.h"
#include "passes/lower/share_equal.h"
#include "passes/lower/split_batch_norm.h"
#include "passes/parallel/bucket_allreduce.h"
#include "passes/parallel/compress_gradients.h"
#include "passes/parallel/insert_allreduce.h"
#include "passes/parallel/local_sgd.h"
#include "passes/parallel/shard_optimizer.h"
#include "passes/precision/assign_precision.h"
#include "passes/precision/derive_eval.h"
#include "passes/precision/insert_casts.h"
#include "passes/precision/keep_outputs.h"
#include "passes/update/append_optimizer.h"
#include "passes/update/average_parameters.h"
#include "passes/update/check_and_unscale.h"
#include "passes/update/clip.h"
#include "passes/update/gradient_merge.h"
#include "passes/update/master_weights.h"
#include "passes/update/virtual_shards.h"

namespace halftone {
namespace passes {
namespace {

using Made = std::unique_ptr<Pass>;

template <typename P>
Made Plain(const PassInputs&) {
  return std::make_unique<P>();
}
template <typename P>
Made FromKernels(const PassInputs& in) {
  return std::make_unique<P>(in.kernels);
}
Made MakeAssign(const PassInputs& in) {
  return std::make_unique<AssignPrecision>(in.options, in.kernels);
}
Made MakeCasts(const PassInputs& in) {
  return std::make_unique<InsertCasts>(in.options.strategy.amp());
}
Made MakeOutputs(const PassInputs& in) {
  return std::make_unique<KeepOutputs>(in.outputs);
}
Made MakeEval(const PassInputs& in) {
  return std::make_unique<DeriveEval>(
      /*keep_train=*/in.options.strategy.has_optimizer());
}
Made MakeFreeze(const PassInputs& in) {
  return std::make_unique<Freeze>(in.options);
}
Made MakeSync(const PassInputs& in) {
  return std::make_unique<SyncBatchNorm>(
      in.options.strategy.dist().sync_batch_norm_group_size());
}
Made MakeScale(const PassInputs& in) {
  const proto::LossScaling& scaling = in.options.strategy.amp().loss_scaling();
  return std::make_unique<ScaleLoss>(
      scaling.init_loss_scaling(), scaling.per_loss(),
      MeansOverRanks(in.options.strategy.dist()));
}
Made MakeBackward(const PassInputs& in) {
  return std::make_unique<AppendBackward>(
      /*refuse_unused=*/!in.options.strategy.dist().find_unused_parameters());
}
Made MakeReduce(const PassInputs& in) {
  return std::make_unique<InsertAllreduce>(in.options.strategy.dist(),
                                           LowOf(in.options.strategy.amp()));
}
Made MakeBuckets(const PassInputs& in) {
  return std::make_unique<BucketAllreduce>(in.options.strategy.dist());
}
Made MakeMerge(const PassInputs& in) {
  return std::make_unique<GradientMerge>(
      MergedSteps(in.options.strategy.dist()));
}
Made MakeShards(const PassInputs& in) {
  return std::make_unique<VirtualShards>(
      in.options.strategy.dist().virtual_shards());
}
Made MakeCheck(const PassInputs& in) {
  return std::make_unique<CheckAndUnscale>(in.options.strategy);
}
Made MakeClip(const PassInputs& in) {
  return std::make_unique<Clip>(
      in.options.strategy.optimizer().clip().global_norm());
}
Made MakeOptimizer(const PassInputs& in) {
  return std::make_unique<AppendOptimizer>(in.options.strategy.optimizer(),
                                           in.options.strategy.lr());
}
Made MakeAverages(const PassInputs& in) {
  return std::make_unique<AverageParameters>(
      in.options.strategy.optimizer().ema());
}
Made MakeCompressGradients(const PassInputs& in) {
  return std::make_unique<CompressGradients>(in.options.strategy.dist());
}
Made MakeLocal(const PassInputs& in) {
  return std::make_unique<LocalSgd>(in.options.strategy.dist());
}
Made MakeTaps(const PassInputs& in) {
  return std::make_unique<KeepTaps>(in.taps);
}
Made MakeSplit(const PassInputs& in) {
  return std::make_unique<SplitBatchNorm>(
      in.kernels, in.options.strategy.amp().strict_f32_slots(),
      in.options.strategy.memory().compress());
}
Made MakeFuse(const PassInputs& in) {
  return std::make_unique<Fuse>(in.kernels,
                                in.options.strategy.amp().strict_f32_slots());
}
Made MakeCompress(const PassInputs& in) {
  return std::make_unique<Compress>(in.options.strategy, in.kernels.target());
}
Made MakeRecompute(const PassInputs& in) {
  return std::make_unique<Recompute>(in.options.strategy, in.kernels.target());
}

bool Always(const PassInputs&) { return true; }
bool Training(const PassInputs& in) {
  return in.options.strategy.has_optimizer();
}
bool HasShards(const PassInputs& in) {
  return Training(in) && HasVirtualShards(in.options.strategy.dist());
}
bool Freezes(const PassInputs& in) {
  return Training(in) && in.options.strategy.optimizer().freeze_size() > 0;
}
bool SyncsNorms(const PassInputs& in) {
  return Training(in) && in.options.strategy.dist().sync_batch_norm();
}
bool Clips(const PassInputs& in) {
  return Training(in) &&
         in.options.strategy.optimizer().clip().has_global_norm();
}
bool Averages(const PassInputs& in) {
  return Training(in) && in.options.strategy.optimizer().has_ema();
}
bool Recomputes(const PassInputs& in) {
  const proto::Recompute& recompute = in.options.strategy.memory().recompute();
  return Training(in) &&
         (recompute.checkpoints_size() > 0 || !recompute.within().empty());
}
bool Compresses(const PassInputs& in) {
  return Training(in) && in.options.strategy.memory().compress().bits() > 0;
}
bool Merges(const PassInputs& in) {
  return Training(in) && MergedSteps(in.options.strategy.dist()) > 1;
}
bool Shards(const PassInputs& in) {
  return Training(in) && ShardsOptimizer(in.options.strategy.dist());
}
bool CompressesSent(const PassInputs& in) {
  return Training(in) && CompressesGradients(in.options.strategy.dist());
}
bool IsLocal(const PassInputs& in) {
  return Training(in) && AveragesParameters(in.options.strategy.dist());
}
bool Taps(const PassInputs& in) { return !in.taps.empty(); }
bool WantsOutputs(const PassInputs& in) { return !in.outputs.empty(); }

std::vector<PassStep>* MakeSteps() {
  constexpr Phase kPrecision = Phase::kPrecision, kBackward = Phase::kBackward,
                  kParallel = Phase::kParallel, kUpdate = Phase::kUpdate,
                  kLowered = Phase::kLowered;
  return new std::vector<PassStep>{
      // First: every later pass builds on the decisions, and none revises one.
      {kPrecision, "assign-precision",
       "decides in which precision each op runs", MakeAssign, Always},
      // Before backward, so that casts are differentiated like any other op.
      {kPrecision, "insert-casts",
       "a cast per value and dtype, where one is read", MakeCasts, Always},
      // Precisions are those of the whole model; what is not wanted need not
      // be cloned.
      {kPrecision, "keep-outputs", "nothing but what a few values need",
       MakeOutputs, WantsOutputs},
      // Eval is train's forward part in train's precision: cloned once casts
      // are in and before anything that is for training alone.
      {kPrecision, "derive-eval", "the entry eval, of train's forward part",
       MakeEval, Always},
      // Before backward, which follows trainable parameters alone.
      {kBackward, "freeze", "parameters that are not to be trained", MakeFreeze,
       Freezes},
      // Before backward, whose gradients divide by the shares, too; after
      // eval was derived, which has samples of its own.
      {kBackward, "share-counts",
       "denominators of a loss are shares of all ranks' counts",
       Plain<ShareCounts>, Always},
      // Before backward, which needs the synchronised norm's own gradient.
      {kBackward, "sync-batch-norm", "batch norms take all ranks' statistics",
       MakeSync, SyncsNorms},
      // Before backward, whose gradients of maxima then read where they lie.
      {kBackward, "keep-argmax", "where maxima of pooling lie",
       FromKernels<KeepArgmax>, Training},
      // The seed that backward starts from.
      {kBackward, "scale-loss", "the scaled gradient of the loss", MakeScale,
       Training},
      // Whatever follows reads gradients.
      {kBackward, "append-backward", "the gradients of all parameters",
       MakeBackward, Training},
      // On the scaled gradient in the dtype in which it was made, before the
      // finite check: half the bytes, and one verdict on all ranks. Eval's
      // totals are made here, too.
      {kParallel, "insert-allreduce",
       "sums each gradient, and what is counted, over the ranks", MakeReduce,
       Always},
      // Needs the order in which backward makes the gradients, which holds
      // until something moves ops.
      {kParallel, "bucket-allreduce", "joins reductions by dtype and bytes",
       MakeBuckets, Training},
      // On whole buckets, whose members it adds up before they are reduced;
      // before anything reads their sum.
      {kUpdate, "gradient-merge",
       "micro-batches that share a reduction, a verdict and an update",
       MakeMerge, Merges},
      // In the same place.
      {kUpdate, "virtual-shards",
       "shards of a batch, whose sums do not depend on the ranks", MakeShards,
       HasShards},
      // Reads what was reduced; everything after it is guarded by FoundInf.
      {kUpdate, "check-and-unscale",
       "the verdict on a step, unscaled gradients, the next loss scale",
       MakeCheck, Training},
      // The norm is that of true-scale gradients, which exist only now.
      {kUpdate, "clip", "clips gradients by their global norm", MakeClip,
       Clips},
      // Takes the gradients as check, unscale and clip left them.
      {kUpdate, "append-optimizer",
       "updates of parameters and running statistics, clocks, learning rate",
       MakeOptimizer, Training},
      // Of what updates make; before master-weights, which looks at what eval
      // reads.
      {kUpdate, "average-parameters",
       "means of the parameters, which eval reads", MakeAverages, Averages},
      // Needs the update that is to write the low cells.
      {kUpdate, "master-weights",
       "low cells beside the FP32 copies instead of casts",
       Plain<MasterWeights>, Always},
      // Every value is there, and none has gone yet.
      {kLowered, "keep-taps", "values that are to be fetched become results",
       MakeTaps, Taps},
      // Before fuse, which hides products in bodies, and choose-layout: all
      // lies in rows yet. After keep-taps: what is fetched stays. Not of
      // clean-up: a library may add up in another order where a factor lies in
      // another direction.
      {kLowered, "fold-transposes", "products read their factors as they lie",
       Plain<FoldTransposes>, Always},
      // Before split-batch-norm, which sees what stands before a norm.
      {kLowered, "mask-pooled", "relu's gradients of pooled images are pooled",
       Plain<MaskPooled>, Training},
      // Before anything that hides 4-d operands in parts or bodies. Images
      // first: what is padded and how filters lie follows from them.
      {kLowered, "choose-layout.convert-regions", "channels-last images",
       FromKernels<ConvertRegions>, Always},
      {kLowered, "choose-layout.pad-channels",
       "channels that tensor cores can take", FromKernels<PadChannels>, Always},
      {kLowered, "choose-layout.lay-out-filters",
       "filters that lie as their images", FromKernels<LayOutFilters>, Always},
      // Before fuse, which matches the parts.
      {kLowered, "split-batch-norm", "batch norms in parts, where that pays",
       MakeSplit, Always},
      // After backward, forward and backward together: no value that backward
      // reads is hidden in a body.
      {kLowered, "fuse", "patterns become one op with the body it replaces",
       MakeFuse, Always},
      // After fuse: by themselves bits would cost a pass over memory.
      {kLowered, "keep-relu-bits",
       "one bit per element for a relu's gradient, within fusions",
       FromKernels<KeepReluBits>, Training},
      // After fuse, which would rather match casts and clones as they were.
      // Updates first: what they no longer read need not be looked at.
      {kLowered, "clean-up.fold-updates",
       "updates take up-cast, unscale and clip of their gradients",
       FromKernels<FoldUpdates>, Always},
      {kLowered, "clean-up.drop-dead", "ops that nothing needs go",
       Plain<DropDead>, Always},
      {kLowered, "clean-up.share-equal", "equal ops become one",
       Plain<ShareEqual>, Always},
      {kLowered, "clean-up.fold-casts", "ops take the casts beside them",
       FromKernels<FoldCasts>, Always},
      // As recompute, and before it, which has its choice of the rest.
      {kLowered, "compress", "backward reads values in few bits", MakeCompress,
       Compresses},
      // After whatever changes ops: copies of what is run run alike, to the
      // bit, and what would share or fuse them is over.
      {kLowered, "recompute", "backward makes again what is not kept",
       MakeRecompute, Recomputes},
      // After whatever knows optimizers, layouts or folds: those look at whole
      // tensors. After recompute, which then chooses the same without it.
      {kLowered, "shard-optimizer",
       "each rank updates its shard of the parameters", Plain<ShardOptimizer>,
       Shards},
      // As shard-optimizer: passes before see the gradients of all ranks.
      {kLowered, "local-sgd",
       "ranks update by their own gradients and average parameters", MakeLocal,
       IsLocal},
      {kLowered, "compress-gradients",
       "ranks exchange the largest elements of large gradients",
       MakeCompressGradients, CompressesSent},
      // Nothing after it changes an op of train or eval.
      {kLowered, "legality", "refuses what the target has no kernel for",
       FromKernels<Legality>, Always},
      // Needs every cell that any pass made.
      {kLowered, "generate-startup", "the entries init and derive",
       Plain<GenerateStartup>, Always},
  };
}

}  // namespace

absl::string_view PassStep::group() const {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "" : absl::string_view(name).substr(0, dot);
}

const std::vector<PassStep>& AllSteps() {
  static const std::vector<PassStep>* const steps = MakeSteps();
  return *steps;
}

const std::vector<PassGroup>& AllGroups() {
  static const std::vector<PassGroup>* const groups =
      new std::vector<PassGroup>{
          {"choose-layout", "how 4-d tensors lie", PassPipeline::Repeat::kOnce},
          {"clean-up", "the same bits from fewer ops and fewer bytes",
           PassPipeline::Repeat::kUntilUnchanged},
      };
  return *groups;
}

const std::vector<PassPhase>& AllPhases() {
  static const std::vector<PassPhase>* const phases =
      new std::vector<PassPhase>{
          {Phase::kPrecision, "precision", "what runs in which precision"},
          {Phase::kBackward, "differentiate", "gradients"},
          {Phase::kParallel, "parallel", "sums over the ranks"},
          {Phase::kUpdate, "update", "what a step changes, guarded"},
          {Phase::kLowered, "lower", "what the target runs"},
      };
  return *phases;
}

void AddSteps(const std::vector<const PassStep*>& steps,
              const PassInputs& inputs, Phase phase, PassPipeline* pipeline) {
  std::vector<Made> passes;
  for (const PassStep* step : steps) passes.push_back(step->make(inputs));
  const absl::string_view name = steps[0]->group();
  for (const PassGroup& group : AllGroups()) {
    if (group.name != name) continue;
    pipeline->AddGroup(group.name, std::move(passes), group.repeat, phase);
    return;
  }
  pipeline->Add(std::move(passes[0]), phase);
}

void AddPhase(Phase phase, const PassInputs& inputs, Phase as,
              PassPipeline* pipeline,
              const std::function<bool(const PassStep&)>& taken) {
  std::vector<const PassStep*> together;
  const auto add = [&] {
    if (!together.empty()) AddSteps(together, inputs, as, pipeline);
    together.clear();
  };
  for (const PassStep& step : AllSteps()) {
    if (step.phase != phase || !step.wanted(inputs)) continue;
    if (taken && !taken(step)) continue;
    if (together.empty() || step.group().empty() ||
        step.group() != together[0]->group()) {
      add();
    }
    together.push_back(&step);
  }
  add();
}

PassPipeline MakePipeline(const PassInputs& inputs,
                          PassPipeline::Settings settings) {
  PassPipeline pipeline(std::move(settings));
  for (const PassPhase& phase : AllPhases()) {
    AddPhase(phase.phase, inputs, phase.phase, &pipeline);
  }
  return pipeline;
}

}  // namespace passes
}  // namespace halftone
