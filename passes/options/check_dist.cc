#include "passes/options/check_dist.h"

#include "absl/strings/str_cat.h"
#include "graph/strategy/fields.h"
#include "graph/strategy/optimizer_method.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {
namespace {

using google::protobuf::FieldDescriptor;

// Each part of a step's batch has a sample.
void CheckParts(const proto::Strategy& strategy, Checker& check) {
  const proto::Train& train = strategy.train();
  if (!train.has_batch_size() || train.batch_size() <= 0) return;
  const auto expect = [&](absl::string_view path, int64_t parts,
                          absl::string_view part) {
    if (train.batch_size() >= parts) return;
    check.Refuse(path, absl::StrCat("expected at most train.batch_size, ",
                                    train.batch_size(), ", found ", parts,
                                    ": each ", part, " has a sample"));
  };
  const proto::Dist& dist = strategy.dist();
  expect("dist.gradient_merge.k_steps", MergedSteps(dist), "micro-batch");
  expect("dist.virtual_shards", dist.virtual_shards(), "shard");
}

// What makes a step's bits depend on the ranks there are, or wants all shards
// at once.
void CheckVirtualShards(const proto::Strategy& strategy, Checker& check) {
  const proto::Dist& dist = strategy.dist();
  if (!HasVirtualShards(dist)) return;
  const char* const path = "dist.virtual_shards";
  const int64_t shards = dist.virtual_shards();
  if (shards > 0 && (shards & (shards - 1)) != 0) {
    check.Refuse(path, absl::StrCat("expected a power of two, found ", shards));
  }
  const auto refuse = [&](bool set, absl::string_view other,
                          absl::string_view rule) {
    if (!set) return;
    check.Refuse(path,
                 absl::StrCat(other, " is set, too: ", rule, "; choose one"));
  };
  refuse(MergedSteps(dist) > 1, "dist.gradient_merge.k_steps",
         "shards are the micro-batches of a step");
  refuse(dist.sync_batch_norm(), "dist.sync_batch_norm",
         "each shard is run alone, by its own statistics");
  refuse(dist.batch_norm_statistics() == "rank0", "dist.batch_norm_statistics",
         "running statistics take those of all shards");
  refuse(MeansOverRanks(dist), "dist.gradient_mean",
         "such means change with the number of ranks");
  refuse(dist.reduce() == "exact_order", "dist.reduce",
         "shards are summed in a tree, not in the order of the ranks");
  refuse(dist.fp16_allreduce(), "dist.fp16_allreduce",
         "shards are summed in FP32");
  refuse(dist.has_gradient_predivide_factor(), "dist.gradient_predivide_factor",
         "sums of shards are FP32 and not scaled");
  refuse(dist.use_hierarchical_allreduce(), "dist.use_hierarchical_allreduce",
         "the tree is over shards, not nodes");
  refuse(AveragesParameters(dist),
         dist.has_localsgd() ? "dist.localsgd" : "dist.adaptive_localsgd",
         "there ranks update by their own gradients");
  refuse(CompressesGradients(dist), "dist.dgc",
         "there ranks send parts of their gradients");
  refuse(strategy.train().has_batch_size_per_rank(),
         "train.batch_size_per_rank",
         "a step's batch would change with the number of ranks");
}

void CheckReductions(const Resolver& resolver, Checker& check) {
  const proto::Dist& dist = resolver.strategy().dist();
  const auto given = [&resolver](absl::string_view path) {
    return resolver.Origin(path) != kDefaultOrigin;
  };
  const auto both = [&check](absl::string_view path, absl::string_view other,
                             absl::string_view rule) {
    check.Refuse(path, absl::StrCat(other, " is set, too: ", rule));
  };
  if (dist.has_gradient_predivide_factor() && dist.gradient_scale() == "post") {
    both("dist.gradient_predivide_factor", "dist.gradient_scale: \"post\"",
         "one divides before the sum, the other after; choose one");
  }
  if (dist.allreduce_always_fp32() && dist.fp16_allreduce()) {
    both("dist.fp16_allreduce", "dist.allreduce_always_fp32",
         "gradients are reduced in one dtype; choose one");
  }
  if (dist.fp16_allreduce() &&
      resolver.strategy().amp().loss_scaling().per_loss()) {
    both("dist.fp16_allreduce", "amp.loss_scaling.per_loss",
         "gradients of several losses are added unscaled, which 16 bits may "
         "not hold; choose one");
  }
  const char* const merge = "dist.gradient_merge.k_steps";
  const bool merges = MergedSteps(dist) > 1;
  if (merges && MeansOverRanks(dist)) {
    both("dist.gradient_mean", merge,
         "micro-batches are weighed by their samples; choose one");
  }
  const bool of_rank0 = dist.batch_norm_statistics() == "rank0";
  if (of_rank0 && dist.sync_batch_norm()) {
    both("dist.batch_norm_statistics", "dist.sync_batch_norm",
         "synchronised norms have all ranks' statistics; choose one");
  }
  if (of_rank0 && merges) {
    both("dist.batch_norm_statistics", merge,
         "rank 0 may have no sample of a micro-batch; choose one");
  }
  if (!dist.has_message_size()) return;
  for (const char* path :
       {"dist.fuse_grad_size_in_MB", "dist.first_bucket_size_in_MB"}) {
    if (given(path)) {
      both("dist.message_size", path,
           "buckets are measured in elements or in MiB; choose one");
    }
  }
  if (!dist.fuse_all_reduce_ops()) {
    both("dist.message_size", "dist.fuse_all_reduce_ops: false",
         "then there are no buckets; choose one");
  }
}

// Which ranks work together.
void CheckGroups(const proto::Dist& dist, Checker& check) {
  if (dist.sync_batch_norm_group_size() > 0 && !dist.sync_batch_norm()) {
    check.Refuse("dist.sync_batch_norm_group_size",
                 "dist.sync_batch_norm is not true: norms share nothing then; "
                 "set it, too, or neither of them");
  }
  const std::string hierarchy = "dist.use_hierarchical_allreduce";
  if (dist.use_hierarchical_allreduce() && dist.reduce() == "exact_order") {
    check.Refuse(hierarchy,
                 "dist.reduce: \"exact_order\" is set, too: there every rank "
                 "adds all ranks' gradients itself, in their order; choose "
                 "one");
  }
  if (dist.hierarchical_allreduce_inter_nranks() > 0 &&
      !dist.use_hierarchical_allreduce()) {
    check.Refuse("dist.hierarchical_allreduce_inter_nranks",
                 absl::StrCat(hierarchy,
                              " is not true: ranks add at once then; set it, "
                              "too, or neither of them"));
  }
}

// Where ranks update by their own gradients, no gradient is reduced, and a
// rank's parameters are its own.
void CheckLocalSgd(const proto::Strategy& strategy, Checker& check) {
  const proto::Dist& dist = strategy.dist();
  if (!AveragesParameters(dist)) return;
  const char* const at =
      dist.has_localsgd() ? "dist.localsgd" : "dist.adaptive_localsgd";
  const auto refuse = [&](absl::string_view other, absl::string_view why) {
    check.Refuse(at, absl::StrCat(other, " is set, too: ", why));
  };
  if (dist.has_localsgd() && dist.has_adaptive_localsgd()) {
    refuse("dist.adaptive_localsgd",
           "the steps between two averages are fixed or follow from the loss; "
           "choose one");
  }
  constexpr absl::string_view kNoneReduced =
      "no gradients are reduced then; choose one";
  if (MergedSteps(dist) > 1) {
    refuse("dist.gradient_merge.k_steps",
           "both make a reduction rare; choose one");
  }
  if (ShardsOptimizer(dist)) {
    refuse("dist.sharding", "ranks that share state update alike; choose one");
  }
  if (dist.reduce() == "exact_order") {
    refuse("dist.reduce: \"exact_order\"", kNoneReduced);
  }
  if (MeansOverRanks(dist)) {
    refuse("dist.gradient_mean: \"ranks\"", kNoneReduced);
  }
  if (dist.allreduce_always_fp32()) {
    refuse("dist.allreduce_always_fp32", kNoneReduced);
  }
  if (dist.fp16_allreduce()) refuse("dist.fp16_allreduce", kNoneReduced);
  if (dist.delay_allreduce()) refuse("dist.delay_allreduce", kNoneReduced);
  if (dist.has_gradient_predivide_factor()) {
    refuse("dist.gradient_predivide_factor", kNoneReduced);
  }
  if (dist.sync_batch_norm()) {
    refuse("dist.sync_batch_norm",
           "its gradients are those of one model on all ranks; choose one");
  }
  if (dist.batch_norm_statistics() == "rank0") {
    refuse("dist.batch_norm_statistics: \"rank0\"",
           "running statistics are averaged like parameters; choose one");
  }
  const FieldDescriptor* const method = MethodFieldOf(strategy.optimizer());
  if (method != nullptr && method->name() != "sgd" &&
      method->name() != "momentum") {
    refuse(absl::StrCat("optimizer.", method->name()),
           "Fleet averages after sgd and momentum alone; choose one of these");
  }
}

// What a rank sends of a gradient is for one update, momentum, alone.
void CheckDgc(const proto::Strategy& strategy, Checker& check) {
  const proto::Dist& dist = strategy.dist();
  if (!CompressesGradients(dist)) return;
  const auto refuse = [&](absl::string_view other, absl::string_view why) {
    check.Refuse("dist.dgc", absl::StrCat(other, " is set, too: ", why));
  };
  const FieldDescriptor* const method = MethodFieldOf(strategy.optimizer());
  if (method != nullptr && method->name() != "momentum") {
    refuse(absl::StrCat("optimizer.", method->name()),
           "what is not sent is kept as optimizer.momentum would apply it; "
           "choose that, or leave dist.dgc out");
  }
  if (strategy.optimizer().has_clip()) {
    refuse("optimizer.clip",
           "no rank has a gradient to clip; set "
           "dist.dgc.local_grad_clip_norm instead");
  }
  if (AveragesParameters(dist)) {
    refuse(dist.has_localsgd() ? "dist.localsgd" : "dist.adaptive_localsgd",
           "there no gradients are exchanged; choose one");
  }
  if (ShardsOptimizer(dist)) {
    refuse("dist.sharding",
           "what is not sent is of whole parameters; choose one");
  }
  if (MergedSteps(dist) > 1) {
    refuse("dist.gradient_merge.k_steps",
           "both make what is exchanged rare; choose one");
  }
}

// What needs a whole parameter on one rank.
void CheckSharding(const proto::Strategy& strategy, Checker& check) {
  if (!ShardsOptimizer(strategy.dist())) return;
  const proto::Optimizer& optimizer = strategy.optimizer();
  if (!optimizer.has_lars() && !optimizer.has_lamb()) return;
  check.Refuse(
      "dist.sharding",
      absl::StrCat("optimizer.", optimizer.has_lars() ? "lars" : "lamb",
                   " is set, too: it takes norms of whole parameters, "
                   "of which each rank would have a shard; leave "
                   "dist.sharding out or choose another method"));
}

}  // namespace

void CheckDist(const Resolver& resolver, Checker& check) {
  const proto::Strategy& strategy = resolver.strategy();
  CheckParts(strategy, check);
  CheckReductions(resolver, check);
  CheckGroups(strategy.dist(), check);
  CheckSharding(strategy, check);
  CheckLocalSgd(strategy, check);
  CheckDgc(strategy, check);
  CheckVirtualShards(strategy, check);
}

}  // namespace passes
}  // namespace halftone
