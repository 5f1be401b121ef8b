#include "passes/testing/kernels.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

// All bindings of the type variables from `binding.size()` on; kInvalid where
// nothing binds one.
void AddKeys(const OpSchema& schema, std::vector<DType>& binding,
             std::vector<std::string>* keys) {
  const size_t var = binding.size();
  if (var == schema.type_vars().size()) {
    for (Layout layout : {Layout::kRowMajor, Layout::kChannelsLast}) {
      keys->push_back(KernelSet::Key(schema.name(), binding, layout));
    }
    return;
  }
  binding.push_back(DType::kInvalid);
  AddKeys(schema, binding, keys);
  for (DType dtype : schema.type_vars()[var].allowed) {
    binding.back() = dtype;
    AddKeys(schema, binding, keys);
  }
  binding.pop_back();
}

bool Without(const TestTarget& target, const std::string& key) {
  for (const std::string& prefix : target.without) {
    if (absl::StartsWith(key, prefix)) return true;
  }
  return false;
}

}  // namespace

KernelSet AllKernels(const TestTarget& target) {
  std::vector<std::string> all, keys;
  for (const OpSchema* schema : Ops().All()) {
    if (schema->split_only()) continue;
    std::vector<DType> binding;
    AddKeys(*schema, binding, &all);
  }
  for (std::string& key : all) {
    if (!Without(target, key)) keys.push_back(std::move(key));
  }
  for (const std::string& pattern : target.patterns) {
    const std::string key = absl::StrCat("pattern:", pattern);
    if (absl::StrContains(key, '(')) {
      keys.push_back(key);
      continue;
    }
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      for (Layout layout : {Layout::kRowMajor, Layout::kChannelsLast}) {
        keys.push_back(KernelSet::Key(key, {dtype}, layout));
      }
    }
  }
  return KernelSet(target.name, keys);
}

}  // namespace passes
}  // namespace halftone
