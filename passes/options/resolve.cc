#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"
#include "graph/strategy/fields.h"
#include "passes/options/options.h"
#include "passes/options/resolver.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {
namespace {

std::vector<std::string> NamesAndAliases() {
  std::vector<std::string> names = Ops().Names();
  for (const auto& [alias, name] : Ops().Aliases()) names.push_back(alias);
  return names;
}

using Names = google::protobuf::RepeatedPtrField<std::string>;

void CheckOpTypes(const Resolver& resolver, absl::string_view path,
                  const Names& names, ErrorList* errors) {
  for (int i = 0; i < names.size(); ++i) {
    if (Ops().Find(names[i]) != nullptr) continue;
    errors->Add(
        resolver.Error(path,
                       absl::StrCat("no op is called \"", names[i], "\"",
                                    NearestHint(names[i], NamesAndAliases()),
                                    " (all: halftone ops)"),
                       i));
  }
}

// No op is in both lists of the user, by whatever name.
void CheckUserLists(const Resolver& resolver, ErrorList* errors) {
  constexpr absl::string_view kWhite = "amp.custom_white_list";
  constexpr absl::string_view kBlack = "amp.custom_black_list";
  const proto::Amp& amp = resolver.strategy().amp();
  CheckOpTypes(resolver, kWhite, amp.custom_white_list(), errors);
  CheckOpTypes(resolver, kBlack, amp.custom_black_list(), errors);
  absl::flat_hash_map<const OpSchema*, int> white;
  for (int i = 0; i < amp.custom_white_list_size(); ++i) {
    white.try_emplace(Ops().Find(amp.custom_white_list(i)), i);
  }
  for (int i = 0; i < amp.custom_black_list_size(); ++i) {
    const OpSchema* const op = Ops().Find(amp.custom_black_list(i));
    const auto it = white.find(op);
    if (op == nullptr || it == white.end()) continue;
    errors->Add(resolver.Error(
        kBlack,
        absl::StrCat(op->name(), " is in custom_white_list, too (",
                     resolver.Origin(kWhite, it->second),
                     "); take it out of one"),
        i));
    return;
  }
}

// The members of the lists whose patterns are matched later.
void KeepMemberOrigins(const Resolver& resolver, Options* options) {
  VisitSetFields(resolver.strategy(), "", [&](const std::string& path) {
    if (!FindStrategyField(path)->descriptor->is_repeated()) return;
    const int size = MembersAt(resolver.strategy(), path);
    for (int i = 0; i < size; ++i) {
      options->member_origins[absl::StrCat(path, "[", i, "]")] =
          resolver.Origin(path, i);
    }
  });
}

// Where a field, or a member of a list, was set; "" if it is not known.
std::string PlaceOf(const Options& options, absl::string_view path,
                    int member) {
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

  CheckUserLists(resolver, &errors);
  Options options;
  absl::StatusOr<proto::OpLists> lists = LoadOpLists(resolver);
  if (errors.Add(lists.status())) options.op_lists = *std::move(lists);
  HT_RETURN_IF_ERROR(errors.ToStatus());
  options.strategy = resolver.strategy();
  options.origins = resolver.origins();
  KeepMemberOrigins(resolver, &options);
  return options;
}

std::vector<std::string> OpTypesOf(const Names& names) {
  std::vector<std::string> types;
  for (const std::string& name : names) {
    types.push_back(Ops().Find(name)->name());
  }
  return types;
}

std::string OriginOf(const Options& options, absl::string_view path,
                     int member) {
  const std::string origin = PlaceOf(options, path, member);
  return origin.empty() ? std::string(path) : absl::StrCat(origin, ": ", path);
}

absl::Status FieldError(const Options& options, absl::string_view path,
                        absl::string_view message, int member) {
  return OriginError(PlaceOf(options, path, member), path, message);
}

}  // namespace passes
}  // namespace halftone
