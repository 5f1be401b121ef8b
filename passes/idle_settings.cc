#include "passes/idle_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "graph/strategy/first_rate.h"
#include "passes/parallel/compress_gradients.h"

namespace halftone {
namespace passes {
namespace {

// What a row of the table asks.
struct Asked {
  const proto::Strategy& strategy;
  const std::vector<const Cell*>& trained;
};

bool PeakIsSaid(const Asked& in) {
  return in.strategy.lr().has_one_cycle() &&
         OwnFirstRate(in.strategy.lr()).has_value();
}
bool LowIsSaid(const Asked& in) {
  return in.strategy.lr().has_cyclic() &&
         OwnFirstRate(in.strategy.lr()).has_value();
}
bool ScaleIsConstant(const Asked& in) {
  return !in.strategy.amp().loss_scaling().use_dynamic_loss_scaling();
}
bool HasNoBuckets(const Asked& in) {
  return !in.strategy.dist().fuse_all_reduce_ops();
}
bool CompressesNothing(const Asked& in) {
  return in.strategy.memory().compress().bits() == 0;
}
bool HasNoneForDgc(const Asked& in) {
  return CompressesGradients(in.strategy.dist()) &&
         std::none_of(
             in.trained.begin(), in.trained.end(),
             [](const Cell* cell) { return IsCompressedByDgc(cell->type); });
}
bool HasNoRatio(const Asked& in) {
  const proto::Optimizer& optimizer = in.strategy.optimizer();
  return optimizer.has_lars() && !optimizer.lars().trust_ratio() &&
         std::none_of(optimizer.group().begin(), optimizer.group().end(),
                      [](const auto& group) { return group.trust_ratio(); });
}

struct Idle {
  absl::string_view path;  // a field, or a part
  bool (*holds)(const Asked& in);
  absl::string_view why;
};

constexpr char kPeak[] = "lr.one_cycle.max_lr says the rates";
constexpr char kLow[] = "lr.cyclic.base_lr and max_lr say the rates";
constexpr char kConstant[] = "the loss scale is constant";
constexpr char kNoBuckets[] = "dist.fuse_all_reduce_ops is false";
constexpr char kNoRatio[] = "optimizer.lars.trust_ratio is false";

constexpr Idle kIdle[] = {
    {"lr.base", PeakIsSaid, kPeak},
    {"lr.base_batch", PeakIsSaid, kPeak},
    {"lr.base", LowIsSaid, kLow},
    {"lr.base_batch", LowIsSaid, kLow},
    {"amp.loss_scaling.incr_every_n_steps", ScaleIsConstant, kConstant},
    {"amp.loss_scaling.decr_every_n_nan_or_inf", ScaleIsConstant, kConstant},
    {"amp.loss_scaling.incr_ratio", ScaleIsConstant, kConstant},
    {"amp.loss_scaling.decr_ratio", ScaleIsConstant, kConstant},
    {"amp.loss_scaling.min_loss_scaling", ScaleIsConstant, kConstant},
    {"amp.loss_scaling.max_loss_scaling", ScaleIsConstant, kConstant},
    {"dist.fuse_grad_size_in_MB", HasNoBuckets, kNoBuckets},
    {"dist.first_bucket_size_in_MB", HasNoBuckets, kNoBuckets},
    {"dist.dgc", HasNoneForDgc,
     "no parameter that is trained is large enough to be compressed"},
    {"memory.compress.group_size", CompressesNothing,
     "memory.compress.bits is 0"},
    {"optimizer.lars.lars_coeff", HasNoRatio, kNoRatio},
    {"optimizer.lars.epsilon", HasNoRatio, kNoRatio},
};

// Whether a file or a flag says it; a part without defaults is there for no
// other reason.
bool IsGiven(const Options& options, absl::string_view path) {
  if (FindStrategyField(path)->kind == StrategyField::Kind::kPart) return true;
  const auto origin = options.origins.find(std::string(path));
  return origin != options.origins.end() && !IsDerivedOrigin(origin->second);
}

std::vector<const Cell*> TrainedCells(const Program& source,
                                      const proto::Optimizer& optimizer) {
  std::vector<const Cell*> trained;
  for (int i = 0; i < source.num_cells(); ++i) {
    const Cell& cell = source.cell(CellId(i));
    if (cell.kind != CellKind::kParameter || !cell.trainable) continue;
    if (std::none_of(optimizer.freeze().begin(), optimizer.freeze().end(),
                     [&cell](const std::string& glob) {
                       return GlobMatch(glob, cell.name);
                     })) {
      trained.push_back(&cell);
    }
  }
  return trained;
}

// Why the i-th group is that of no parameter; "": it is of some.
std::string IdleGroup(const proto::Optimizer& optimizer, int i,
                      const std::vector<const Cell*>& trained) {
  bool matched = false;
  for (const Cell* cell : trained) {
    if (!GlobMatch(optimizer.group(i).match(), cell->name)) continue;
    matched = true;
    bool taken = false;
    for (int later = i + 1; later < optimizer.group_size(); ++later) {
      taken |= GlobMatch(optimizer.group(later).match(), cell->name);
    }
    if (!taken) return "";
  }
  return matched ? "later groups match all of its parameters"
                 : "it matches frozen parameters alone";
}

}  // namespace

std::vector<std::string> IdleSettings(const Program& source,
                                      const Options& options) {
  const proto::Optimizer& optimizer = options.strategy.optimizer();
  if (source.loss.var.empty() || !options.strategy.has_optimizer()) return {};
  const std::vector<const Cell*> trained = TrainedCells(source, optimizer);
  const Asked asked{options.strategy, trained};
  // Neighbours of one reason are told together.
  std::vector<std::pair<std::string, absl::string_view>> told;
  for (const Idle& row : kIdle) {
    if (!row.holds(asked) || !IsGiven(options, row.path)) continue;
    const std::string origin = OriginOf(options, row.path);
    if (!told.empty() && told.back().second == row.why) {
      absl::StrAppend(&told.back().first, ", ", origin);
    } else {
      told.emplace_back(origin, row.why);
    }
  }
  std::vector<std::string> idle;
  for (const auto& [settings, why] : told) {
    idle.push_back(absl::StrCat(settings, " (", why, ")"));
  }
  for (int i = 0; i < optimizer.group_size(); ++i) {
    const std::string why = IdleGroup(optimizer, i, trained);
    if (why.empty()) continue;
    idle.push_back(absl::StrCat(OriginOf(options, "optimizer.group", i), " \"",
                                optimizer.group(i).match(), "\" (", why, ")"));
  }
  return idle;
}

}  // namespace passes
}  // namespace halftone
