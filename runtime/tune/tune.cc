#include "runtime/tune/tune.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/schema/op_schema.h"
#include "runtime/plan/plan.h"
#include "runtime/tune/bench.h"
#include "runtime/tune/rates.h"

namespace halftone {
namespace runtime {
namespace {

using Candidates = std::vector<const kernels::Candidate*>;

constexpr double kNoticeable = 0.97;

int64_t WorkspaceOf(const kernels::Candidate& candidate,
                    const kernels::BoundOp& op) {
  return candidate.workspace_bytes ? candidate.workspace_bytes(op) : 0;
}

// It stays where there is nothing else.
void DropReference(Candidates& candidates) {
  const auto slow = std::remove_if(
      candidates.begin() + 1, candidates.end(),
      [](const kernels::Candidate* c) { return c->name == kReference; });
  candidates.erase(slow, candidates.end());
}

class Tuner {
 public:
  Tuner(const Program& program, const kernels::KernelRegistry& kernels,
        const TuneOptions& options, Device& device)
      : program_(program),
        kernels_(kernels),
        options_(options),
        device_(device),
        state_(LayOutState(program)) {}

  absl::StatusOr<Tuned> Run(absl::Span<const TuneBinding> bindings) {
    HT_ASSIGN_OR_RETURN(bench_, Bench::Create(device_, options_.flush_bytes));
    tuned_.table.device_description = device_.Description();
    std::vector<Plan> plans;
    for (const TuneBinding& binding : bindings) {
      HT_ASSIGN_OR_RETURN(plans.emplace_back(), PlanOf(binding));
      of_ += static_cast<int64_t>(plans.back().steps.size());
    }
    for (const Plan& plan : plans) HT_RETURN_IF_ERROR(TuneSteps(plan));
    HT_ASSIGN_OR_RETURN(
        tuned_.table.rates,
        MeasureRates(kernels_, Bind(), RateSizesOf(device_),
                     LowProductsOf(program_), options_.runs, *bench_, device_));
    return std::move(tuned_);
  }

 private:
  kernels::BindContext Bind() const {
    kernels::BindContext bind;
    bind.world_size = options_.world_size;
    bind.threads = bench_->threads();
    bind.deterministic = options_.deterministic;
    bind.target = device_.target();
    return bind;
  }

  // A plan says which ops there are: fusions without a kernel are inlined,
  // what is empty is dropped.
  absl::StatusOr<Plan> PlanOf(const TuneBinding& binding) {
    PlanRequest request;
    request.program = &program_;
    request.entry = binding.entry;
    request.symbols = binding.symbols;
    request.bind = Bind();
    return MakePlan(request, kernels_, state_, TuningTable());
  }

  absl::Status TuneSteps(const Plan& plan) {
    for (const Step& step : plan.steps) {
      if (options_.on_progress) options_.on_progress(done_++, of_);
      if (step.kind != Step::Kind::kKernel) continue;
      const kernels::BoundOp op(*step.block, step.block->op(step.op),
                                plan.symbols, Bind());
      HT_ASSIGN_OR_RETURN(Candidates candidates, kernels_.Find(op));
      DropReference(candidates);
      if (candidates.size() < 2) continue;
      HT_RETURN_IF_ERROR(TuneOp(step.name, op, candidates));
    }
    return absl::OkStatus();
  }

  absl::Status TuneOp(const std::string& name, const kernels::BoundOp& op,
                      const Candidates& candidates) {
    std::string key = TuningTable::KeyOf(op);
    const auto [known, fresh] = known_.emplace(key, tuned_.ops.size());
    if (!fresh) {
      ++tuned_.ops[known->second].uses;
      return absl::OkStatus();
    }
    TunedOp tuned;
    tuned.key = std::move(key);
    tuned.first = name;
    tuned.type =
        op.schema().name() == "fusion" ? op.Str("pattern") : op.schema().name();
    tuned.uses = 1;
    int64_t workspace = 0;
    for (const kernels::Candidate* candidate : candidates) {
      workspace = std::max(workspace, WorkspaceOf(*candidate, op));
    }
    absl::Status status = bench_->Take(op, workspace);
    if (!status.ok()) return Annotate(status, name);
    for (const kernels::Candidate* candidate : candidates) {
      HT_ASSIGN_OR_RETURN(TimedCandidate timed, Time(name, op, *candidate));
      tuned.candidates.push_back(std::move(timed));
    }
    HT_RETURN_IF_ERROR(Choose(tuned));
    const kernels::Candidate& chosen = *candidates[tuned.chosen];
    tuned_.table.Set(tuned.key, {chosen.name, WorkspaceOf(chosen, op),
                                 chosen.deterministic});
    tuned_.ops.push_back(std::move(tuned));
    return absl::OkStatus();
  }

  absl::StatusOr<TimedCandidate> Time(const std::string& name,
                                      const kernels::BoundOp& op,
                                      const kernels::Candidate& candidate) {
    TimedCandidate timed;
    timed.name = candidate.name;
    auto kernel = candidate.prepare(op, device_);
    if (!kernel.ok()) {
      timed.failure = std::string(kernel.status().message());
      return timed;
    }
    const auto times = bench_->Times(**kernel, options_.runs);
    if (!times.ok()) {
      return Annotate(times.status(),
                      absl::StrCat(name, " (", candidate.name, " kernel)"));
    }
    timed.microseconds = (*times)[options_.runs / 2];  // the median
    return timed;
  }

  absl::Status Choose(TunedOp& tuned) {
    int best = -1;
    for (size_t i = 0; i < tuned.candidates.size(); ++i) {
      const TimedCandidate& timed = tuned.candidates[i];
      if (!timed.failure.empty()) continue;
      if (best < 0 || timed.microseconds <
                          kNoticeable * tuned.candidates[best].microseconds) {
        best = static_cast<int>(i);
      }
    }
    if (best < 0) {
      return DeviceError(tuned.first,
                         ": none of its kernels can be made here: ",
                         tuned.candidates[0].failure);
    }
    tuned.chosen = best;
    return absl::OkStatus();
  }

  const Program& program_;
  const kernels::KernelRegistry& kernels_;
  const TuneOptions& options_;
  Device& device_;
  const StateLayout state_;
  std::unique_ptr<Bench> bench_;
  std::map<std::string, size_t> known_;  // places in tuned_.ops, by key
  int64_t done_ = 0, of_ = 0;            // steps of all bindings
  Tuned tuned_;
};

}  // namespace

absl::StatusOr<Tuned> Tune(const Program& program,
                           const kernels::KernelRegistry& kernels,
                           absl::Span<const TuneBinding> bindings,
                           const TuneOptions& options, Device& device) {
  return Tuner(program, kernels, options, device).Run(bindings);
}

std::string TuningPathOf(const std::string& model) {
  return absl::StrCat(absl::StripSuffix(model, ".htc"), ".tuning.json");
}

absl::StatusOr<TuningTable> ReadTuningBeside(const std::string& model) {
  const std::string path = TuningPathOf(model);
  if (access(path.c_str(), F_OK) != 0) return TuningTable();
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return TuningTable::Parse(content, path);
}

}  // namespace runtime
}  // namespace halftone
