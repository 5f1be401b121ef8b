// The questions of `plan --timeline` answered; timeline_report.cc says them.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/targets/target.h"
#include "runtime/log/trace_file.h"
#include "tools/common/model_flags.h"
#include "tools/report/model_facts.h"
#include "tools/report/timeline_report.h"

namespace halftone {
namespace tools {
namespace {

constexpr double kMebibyte = 1 << 20;
// The smallest bucket that is tried is one so-many-th of all gradients, the
// smallest first one a quarter of that.
constexpr int kHalvings = 6, kHalvingsOfFirst = 8;

absl::StatusOr<runtime::Topology> TopologyOf(const TimelineQuestion& question,
                                             const Target& target) {
  runtime::Topology topology;
  topology.ranks = question.plan.ranks;
  topology.per_machine = std::min(question.ranks_per_node, topology.ranks);
  topology.inside = LinkInside(target);
  if (!question.link.empty()) {
    HT_ASSIGN_OR_RETURN(topology.inside,
                        runtime::FindLinkOrRead(question.link, "--link"));
  }
  HT_ASSIGN_OR_RETURN(topology.between,
                      runtime::FindLinkOrRead(question.between, "--between"));
  return topology;
}

absl::StatusOr<runtime::TimelineRequest> RequestFor(
    const CompiledModel& model, const TimelineQuestion& question,
    const runtime::TuningTable& tuning) {
  HT_ASSIGN_OR_RETURN(const Target* target,
                      TargetNamed(model.target, "--target "));
  // Less is no machine's, and a step of it has no length that prints.
  constexpr double kLeast = 1e-6;
  if (!(question.cores_per_rank >= kLeast)) {
    return UsageError(
        "--cores-per-rank ", question.cores_per_rank,
        ": expected a number from ", kLeast,
        ", such as 0.5 where 4 ranks of one thread share 2 cores");
  }
  runtime::TimelineRequest request;
  HT_ASSIGN_OR_RETURN(request.topology, TopologyOf(question, *target));
  request.topology.by_nodes =
      model.strategy.dist().use_hierarchical_allreduce();
  // A CPU's calls return when their work is done.
  request.overlap = target->is_gpu();
  request.slower = std::max(1.0, 1 / question.cores_per_rank);
  request.roofline = runtime::RooflineOf(*target, target->cudnn_device, tuning);
  if (!question.profile.empty()) {
    HT_ASSIGN_OR_RETURN(request.measured, runtime::ReadTrace(question.profile));
  } else if (!request.roofline.has_value()) {
    return UsageError("plan --timeline: what this machine's ", target->name,
                      " reaches is not known; measure it: halftone tune MODEL, "
                      "which writes it beside MODEL, or a step: halftone run "
                      "MODEL --profile=FILE, and add --profile FILE");
  }
  return request;
}

// A trace of another model has times for few steps, or for none.
absl::Status CheckProfile(const AskedTimeline& asked,
                          const TimelineQuestion& question) {
  if (question.profile.empty()) return absl::OkStatus();
  std::vector<std::string> missing;
  const std::vector<double> ms =
      runtime::SlowestOf(asked.request.topology.ranks, asked.asked.plan,
                         *asked.request.measured)
          .ms;
  for (size_t s = 0; s < ms.size(); ++s) {
    const runtime::Step& step = asked.asked.plan.steps[s];
    if (ms[s] < 0 && step.kind == runtime::Step::Kind::kKernel) {
      missing.push_back(step.name);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return ModelError(question.profile, ": no time of ", missing.size(), " of ",
                    ms.size(), " steps, ", missing[0],
                    " the first: expected a trace of this model, compiled as "
                    "it is, by halftone run --profile=FILE");
}

int64_t GradientBytes(const CompiledModel& model) {
  int64_t bytes = 0;
  for (const proto::BucketRow& bucket : model.report.bucket()) {
    bytes += bucket.bytes();
  }
  return bytes;
}

// What tells two sets of buckets apart.
std::string BucketsOf(const CompiledModel& model) {
  std::string text;
  for (const proto::BucketRow& bucket : model.report.bucket()) {
    absl::StrAppend(&text, bucket.dtype(), bucket.bytes(), " ");
  }
  return text;
}

// The larger sizes first.
std::vector<BucketSizes> Ladder(int64_t bytes) {
  double all = 1.0 / 1024;
  while (all * kMebibyte < static_cast<double>(bytes)) all *= 2;
  std::vector<BucketSizes> sizes;
  for (int f = 0; f <= kHalvings; ++f) {
    for (int g = f; g <= kHalvingsOfFirst; ++g) {
      sizes.push_back({std::ldexp(all, -f), std::ldexp(all, -g)});
    }
  }
  return sizes;
}

}  // namespace

absl::StatusOr<AskedTimeline> TimelineAsked(
    const CompiledModel& model, const TimelineQuestion& question,
    const runtime::TuningTable& tuning) {
  AskedTimeline asked;
  HT_ASSIGN_OR_RETURN(asked.request, RequestFor(model, question, tuning));
  HT_ASSIGN_OR_RETURN(asked.asked, PlanAsked(model, question.plan));
  HT_RETURN_IF_ERROR(CheckProfile(asked, question));
  asked.timeline = runtime::TimelineOf(asked.asked.plan, asked.request);
  return asked;
}

absl::StatusOr<BestBuckets> FindBestBuckets(
    const CompiledModel& model, const TimelineQuestion& question,
    const runtime::TuningTable& tuning) {
  const proto::Dist& dist = model.strategy.dist();
  if (!dist.fuse_all_reduce_ops()) {
    return UsageError(
        "--best-buckets: the strategy's dist.fuse_all_reduce_ops is false, so "
        "that gradients are not joined whatever dist.fuse_grad_size_in_MB "
        "says; add --set dist.fuse_all_reduce_ops=true");
  }
  BestBuckets found;
  HT_ASSIGN_OR_RETURN(const AskedTimeline now,
                      TimelineAsked(model, question, tuning));
  found.now = {dist.fuse_grad_size_in_mb(), dist.first_bucket_size_in_mb(),
               now.timeline.ms};
  found.best = found.now;
  found.tried = 1;
  std::set<std::string> tried = {BucketsOf(model)};
  int fewest = model.report.bucket_size();
  for (BucketSizes sizes : Ladder(GradientBytes(model))) {
    HT_ASSIGN_OR_RETURN(
        const CompiledModel other,
        RecompileWith(model, {{"dist.fuse_grad_size_in_MB",
                               ExactDouble(sizes.fuse), "--best-buckets"},
                              {"dist.first_bucket_size_in_MB",
                               ExactDouble(sizes.first), "--best-buckets"}}));
    if (!tried.insert(BucketsOf(other)).second) continue;
    HT_ASSIGN_OR_RETURN(const AskedTimeline asked,
                        TimelineAsked(other, question, tuning));
    sizes.ms = asked.timeline.ms;
    ++found.tried;
    const double gain = found.best.ms - sizes.ms;
    const double equal = 1e-9 * sizes.ms;
    const int buckets = other.report.bucket_size();
    if (gain < -equal || (gain <= equal && buckets >= fewest)) continue;
    found.best = sizes;
    fewest = buckets;
  }
  return found;
}

absl::Status WriteTimelineTrace(const CompiledModel& model,
                                const TimelineQuestion& question,
                                const runtime::TuningTable& tuning,
                                const std::string& file) {
  HT_ASSIGN_OR_RETURN(const AskedTimeline asked,
                      TimelineAsked(model, question, tuning));
  return runtime::WriteTrace(
      file, runtime::TraceOf(asked.asked.plan, asked.timeline), /*rank=*/0);
}

}  // namespace tools
}  // namespace halftone
