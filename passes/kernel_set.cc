#include "passes/kernel_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace halftone {
namespace passes {
namespace {

// "op(f16" of "op(f16,f32)@row_major"; the whole key if it has no type.
absl::string_view UpToLead(absl::string_view key) {
  return key.substr(0, key.find_first_of(",)"));
}

}  // namespace

KernelSet::KernelSet(std::string target, absl::Span<const std::string> keys)
    : target_(std::move(target)) {
  for (const std::string& key : keys) {
    keys_.insert(key);
    precisions_.insert(std::string(UpToLead(key)));
  }
}

bool KernelSet::Has(absl::string_view op, absl::Span<const DType> binding,
                    Layout layout) const {
  return keys_.contains(Key(op, binding, layout));
}

bool KernelSet::HasPattern(absl::string_view pattern) const {
  return keys_.contains(absl::StrCat("pattern:", pattern));
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
  std::string key = absl::StrCat(op, "(");
  for (size_t i = 0; i < binding.size(); ++i) {
    absl::StrAppend(&key, i == 0 ? "" : ",", Name(binding[i]));
  }
  absl::StrAppend(&key, ")@", Name(layout));
  return key;
}

}  // namespace passes
}  // namespace halftone
