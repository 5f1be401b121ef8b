#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"
#include "passes/options/options.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

constexpr double kMegabyte = 1 << 20;

std::vector<std::string> NamesAndAliases() {
  std::vector<std::string> names = Ops().Names();
  for (const auto& [alias, name] : Ops().Aliases()) names.push_back(alias);
  return names;
}

// The members of a user list as op names of ours.
template <typename Names>
std::vector<std::string> OpTypes(const Resolver& resolver,
                                 absl::string_view path, const Names& names,
                                 ErrorList* errors) {
  std::vector<std::string> types;
  for (int i = 0; i < names.size(); ++i) {
    const OpSchema* schema = Ops().Find(names[i]);
    if (schema != nullptr) {
      types.push_back(schema->name());
      continue;
    }
    errors->Add(
        resolver.Error(path,
                       absl::StrCat("no op is called \"", names[i], "\"",
                                    NearestHint(names[i], NamesAndAliases()),
                                    " (all: halftone ops)"),
                       i));
  }
  return types;
}

absl::Status CheckDisjoint(const Resolver& resolver, const AmpOptions& amp) {
  constexpr absl::string_view kWhite = "amp.custom_white_list";
  constexpr absl::string_view kBlack = "amp.custom_black_list";
  absl::flat_hash_map<std::string, int> white;
  for (size_t i = 0; i < amp.white_ops.size(); ++i) {
    white.try_emplace(amp.white_ops[i], i);
  }
  for (size_t i = 0; i < amp.black_ops.size(); ++i) {
    const auto it = white.find(amp.black_ops[i]);
    if (it == white.end()) continue;
    return resolver.Error(
        kBlack,
        absl::StrCat(amp.black_ops[i], " is in custom_white_list, too (",
                     resolver.Origin(kWhite, it->second),
                     "); take it out of one"),
        static_cast<int>(i));
  }
  return absl::OkStatus();
}

template <typename Names>
std::vector<std::string> ToVector(const Names& names) {
  return std::vector<std::string>(names.begin(), names.end());
}

void Convert(const Resolver& resolver, AmpOptions* options,
             proto::OpLists* op_lists, ErrorList* errors) {
  const proto::Amp& amp = resolver.strategy().amp();
  options->level = *LevelFromName(amp.level());
  options->low = *LowDTypeFromName(amp.dtype());
  options->rule = amp.precision_rule() == "any_low" ? PrecisionRule::kAnyLow
                                                    : PrecisionRule::kAllLow;
  options->white_ops = OpTypes(resolver, "amp.custom_white_list",
                               amp.custom_white_list(), errors);
  options->black_ops = OpTypes(resolver, "amp.custom_black_list",
                               amp.custom_black_list(), errors);
  errors->Add(CheckDisjoint(resolver, *options));
  options->black_vars = ToVector(amp.custom_black_varnames());
  options->white_names = ToVector(amp.custom_white_opnames());
  options->black_names = ToVector(amp.custom_black_opnames());
  absl::StatusOr<OpLists> lists = LoadOpLists(resolver, op_lists);
  if (errors->Add(lists.status())) options->op_lists = *std::move(lists);
  options->keep_batchnorm_fp32 = amp.keep_batchnorm_fp32();
  options->master_weights = amp.master_weights();
  options->strict_f32_slots = amp.strict_f32_slots();
}

int64_t Bytes(double megabytes) {
  return std::max<int64_t>(1, std::llround(megabytes * kMegabyte));
}

// The members of the lists whose patterns are matched later.
void KeepMemberOrigins(const Resolver& resolver, Options* options) {
  const proto::Amp& amp = resolver.strategy().amp();
  const std::pair<const char*, int> lists[] = {
      {"amp.custom_white_list", amp.custom_white_list_size()},
      {"amp.custom_black_list", amp.custom_black_list_size()},
      {"amp.custom_black_varnames", amp.custom_black_varnames_size()},
      {"amp.custom_white_opnames", amp.custom_white_opnames_size()},
      {"amp.custom_black_opnames", amp.custom_black_opnames_size()},
      {"optimizer.group", resolver.strategy().optimizer().group_size()}};
  for (const auto& [path, size] : lists) {
    for (int i = 0; i < size; ++i) {
      options->member_origins[absl::StrCat(path, "[", i, "]")] =
          resolver.Origin(path, i);
    }
  }
}

// Where a field, or a member of a list, was set; "" if it is not known.
std::string Place(const Options& options, absl::string_view path, int member) {
  const auto own =
      options.member_origins.find(absl::StrCat(path, "[", member, "]"));
  if (own != options.member_origins.end()) return own->second;
  const auto origin = options.origins.find(std::string(path));
  return origin == options.origins.end() ? "" : origin->second;
}

}  // namespace

absl::StatusOr<Options> ResolveOptions(const StrategyFile& strategy,
                                       absl::Span<const Override> overrides) {
  Resolver resolver(strategy);
  ErrorList errors;
  resolver.ApplyOverrides(overrides, &errors);
  ApplyDefaults(resolver, &errors);
  CheckStrategy(resolver, &errors);

  Options options;
  const proto::Strategy& resolved = resolver.strategy();
  Convert(resolver, &options.amp, &options.resolved_op_lists, &errors);
  HT_RETURN_IF_ERROR(errors.ToStatus());
  options.scaling = ScalingOf(resolved.amp());
  options.has_optimizer = resolved.has_optimizer();
  options.optimizer = resolved.optimizer();
  options.lr = resolved.lr();
  const proto::Dist& dist = resolved.dist();
  options.sync_batch_norm = dist.sync_batch_norm();
  options.fuse_all_reduce = dist.fuse_all_reduce_ops();
  options.bucket_bytes = Bytes(dist.fuse_grad_size_in_mb());
  options.first_bucket_bytes = Bytes(dist.first_bucket_size_in_mb());
  options.scale_gradients_before = dist.gradient_scale() == "pre";
  options.resolved = resolved;
  options.origins = resolver.origins();
  KeepMemberOrigins(resolver, &options);
  return options;
}

std::string OriginOf(const Options& options, absl::string_view path,
                     int member) {
  const std::string origin = Place(options, path, member);
  return origin.empty() ? std::string(path) : absl::StrCat(origin, ": ", path);
}

absl::Status FieldError(const Options& options, absl::string_view path,
                        absl::string_view message, int member) {
  return OriginError(Place(options, path, member), path, message);
}

}  // namespace passes
}  // namespace halftone
