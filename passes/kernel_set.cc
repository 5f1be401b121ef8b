#include "passes/kernel_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/schema/kernel_key.h"

namespace halftone {
namespace passes {
namespace {

// "op(f16" of "op(f16,f32)@row_major"; the whole key if it has no type.
absl::string_view UpToLead(absl::string_view key) {
  return key.substr(0, key.find_first_of(",)"));
}

void AddNew(absl::string_view text, absl::flat_hash_set<std::string>* set) {
  if (!set->contains(text)) set->emplace(text);
}

}  // namespace

KernelSet::KernelSet(absl::string_view target,
                     absl::Span<const std::string> keys)
    : target_(FindTarget(target)) {
  HT_CHECK(target_ != nullptr, "a target that there is");
  keys_.reserve(keys.size());
  for (const absl::string_view key : keys) {
    keys_.emplace(key);
    AddNew(key.substr(0, key.find('(')), &ops_);
    AddNew(UpToLead(key), &precisions_);
  }
}

bool KernelSet::Has(absl::string_view op, absl::Span<const DType> binding,
                    Layout layout) const {
  return keys_.contains(KernelKey(op, binding, layout).text());
}

bool KernelSet::HasPattern(absl::string_view pattern,
                           const TensorType& key) const {
  return Has(absl::StrCat("pattern:", pattern), {key.dtype}, key.layout);
}

bool KernelSet::HasPrecision(absl::string_view op, DType lead) const {
  return precisions_.contains(absl::StrCat(op, "(", Name(lead)));
}

std::vector<std::string> KernelSet::KeysOf(absl::string_view op) const {
  const std::string prefix = absl::StrCat(op, "(");
  std::vector<std::string> keys;
  for (const std::string& key : keys_) {
    if (absl::StartsWith(key, prefix)) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string KernelSet::Key(absl::string_view op,
                           absl::Span<const DType> binding, Layout layout) {
  return std::string(KernelKey(op, binding, layout).text());
}

}  // namespace passes
}  // namespace halftone
