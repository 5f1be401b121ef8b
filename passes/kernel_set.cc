#include "passes/kernel_set.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"

namespace halftone {
namespace passes {
namespace {

// A key's characters; most fit without an allocation.
using KeyText = absl::InlinedVector<char, 96>;

void Append(absl::string_view part, KeyText& key) {
  key.insert(key.end(), part.begin(), part.end());
}

KeyText MakeKey(absl::string_view op, absl::Span<const DType> binding,
                Layout layout) {
  KeyText key;
  Append(op, key);
  Append("(", key);
  for (size_t i = 0; i < binding.size(); ++i) {
    if (i > 0) Append(",", key);
    Append(Name(binding[i]), key);
  }
  Append(")@", key);
  Append(Name(layout), key);
  return key;
}

// "op(f16" of "op(f16,f32)@row_major"; the whole key if it has no type.
absl::string_view UpToLead(absl::string_view key) {
  return key.substr(0, key.find_first_of(",)"));
}

}  // namespace

KernelSet::KernelSet(absl::string_view target,
                     absl::Span<const std::string> keys)
    : target_(FindTarget(target)) {
  HT_CHECK(target_ != nullptr, "a target that there is");
  for (const std::string& key : keys) {
    keys_.insert(key);
    ops_.insert(key.substr(0, key.find('(')));
    precisions_.insert(std::string(UpToLead(key)));
  }
}

bool KernelSet::Has(absl::string_view op, absl::Span<const DType> binding,
                    Layout layout) const {
  const KeyText key = MakeKey(op, binding, layout);
  return keys_.contains(absl::string_view(key.data(), key.size()));
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
  const KeyText key = MakeKey(op, binding, layout);
  return std::string(key.data(), key.size());
}

}  // namespace passes
}  // namespace halftone
