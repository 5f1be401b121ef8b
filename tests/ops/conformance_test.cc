// Every registered key and every candidate of every op on its case file.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/schema/op_registry.h"
#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/compare.h"
#include "tests/ops/devices.h"
#include "tests/ops/op_case.h"
#include "tests/ops/op_instance.h"
#include "tests/ops/op_runner.h"

namespace halftone {
namespace {

using kernels::BoundOp;
using kernels::Candidate;
using Values = std::vector<std::vector<double>>;

struct KeyAndCandidate {
  std::string text;
  KernelKey key;
  const Candidate* candidate;
};

std::vector<KeyAndCandidate> KeysOf(const std::string& op) {
  std::vector<KeyAndCandidate> keys;
  for (const auto& [text, candidate] : TestedKernels().All()) {
    if (!absl::StartsWith(text, absl::StrCat(op, "("))) continue;
    keys.push_back({text, ParseKernelKey(text), candidate});
  }
  return keys;
}

// Ops with kernels and ops with case files: both must have the other.
std::vector<std::string> AllOps() {
  std::set<std::string> ops;
  for (const std::string& key : TestedKernels().Keys()) {
    if (!absl::StartsWith(key, "pattern:")) ops.insert(ParseKernelKey(key).op);
  }
  for (const std::string& op : CaseFileOps()) {
    if (!IsLeftOut(op)) ops.insert(op);
  }
  return std::vector<std::string>(ops.begin(), ops.end());
}

// A key that no op can ask for: its lead slot has one layout.
bool Unreachable(const CaseFile& file, const KernelKey& key) {
  if (key.layout == Layout::kRowMajor) return false;
  const auto slots = file.schema->inputs().empty() ? file.schema->outputs()
                                                   : file.schema->inputs();
  return std::count(file.row_major.begin(), file.row_major.end(),
                    slots[0].name) > 0;
}

// The key in f32; type variables that are none (of indices), or that the case
// does not let be f32, stay.
KernelKey InF32(const OpSchema& schema, const OpCase& c, const KernelKey& key) {
  KernelKey f32 = key;
  f32.layout = Layout::kRowMajor;
  for (size_t v = 0; v < f32.binding.size(); ++v) {
    DTypeSet allowed = schema.type_vars()[v].allowed;
    const auto only = c.only.find(schema.type_vars()[v].name);
    if (only != c.only.end()) {
      allowed.assign(only->second.begin(), only->second.end());
    }
    if (f32.binding[v] != DType::kInvalid &&
        std::find(allowed.begin(), allowed.end(), DType::kF32) !=
            allowed.end()) {
      f32.binding[v] = DType::kF32;
    }
  }
  return f32;
}

class Conformance
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [device, op] = GetParam();
    auto file = ReadCaseFile(op);
    ASSERT_TRUE(file.ok()) << "every registered kernel has a case file, every "
                           << "case file an op: " << file.status();
    file_ = *std::move(file);
    for (int threads : TestedThreads()) {
      auto runner = OpRunner::Create(device, threads);
      ASSERT_TRUE(runner.ok()) << runner.status();
      runners_.push_back(*std::move(runner));
    }
  }

  // What the case expects of these inputs: its literals, or, if the dtype
  // cannot hold the literal inputs, what the f32 kernel makes of the rounded
  // ones.
  absl::StatusOr<Values> Expected(const OpCase& c, const KernelKey& key,
                                  const OpInstance& instance,
                                  const Values& rounded) {
    Values literals;
    for (const CaseTensor* t : instance.outputs) literals.push_back(t->values);
    const KernelKey f32 = InF32(*file_.schema, c, key);
    const bool is_f32 =
        f32.binding == key.binding &&
        (key.binding.empty() ||
         std::count(key.binding.begin(), key.binding.end(), DType::kF32) > 0);
    if (is_f32 || SameAsLiterals(instance, rounded)) return literals;
    if (f32.binding == key.binding || !Fits(file_, c, f32)) {
      return ModelError(
          "inputs must be exact in all dtypes of a case that "
          "has no f32 key");
    }
    HT_ASSIGN_OR_RETURN(const OpInstance reference,
                        MakeInstance(file_, c, f32));
    OpRunner& runner = *runners_[0];
    const BoundOp op = reference.Bind(runner.context(c.world));
    HT_ASSIGN_OR_RETURN(const auto candidates, TestedKernels().Find(op));
    HT_ASSIGN_OR_RETURN(RunResult result,
                        runner.Run(op, *candidates[0], rounded));
    return result.values;
  }

  // Literals are decimals: what f32 makes of one counts as the same.
  static bool SameAsLiterals(const OpInstance& instance,
                             const Values& rounded) {
    const auto same = [&](size_t i, DType dtype) {
      return Difference(dtype, instance.inputs[i], rounded[i], {0, 0}).empty();
    };
    for (size_t i = 0; i < rounded.size(); ++i) {
      if (!same(i, DType::kF64) && !same(i, DType::kF32)) return false;
    }
    return true;
  }

  void ExpectValues(const OpCase& c, const BoundOp& op, const Values& expected,
                    const RunResult& found) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const int slot = op.op().outputs.SlotOf(static_cast<int>(i));
      EXPECT_EQ(Difference(op.outputs()[i].dtype, expected[i], found.values[i],
                           c.tolerance),
                "")
          << "output " << op.schema().outputs()[slot].name << " "
          << kernels::ToString(op.outputs()[i]);
    }
  }

  // Runs one candidate on one case; false if it does not support it.
  bool RunCase(const OpCase& c, const KeyAndCandidate& k) {
    auto instance = MakeInstance(file_, c, k.key);
    EXPECT_TRUE(instance.ok()) << instance.status();
    if (!instance.ok()) return true;
    const BoundOp bound = instance->Bind(runners_[0]->context(c.world));
    if (k.candidate->supports && !k.candidate->supports(bound)) return false;
    Values rounded;
    for (size_t i = 0; i < instance->inputs.size(); ++i) {
      rounded.push_back(
          kernels::Rounded(bound.inputs()[i].dtype, instance->inputs[i]));
    }
    const auto expected = Expected(c, k.key, *instance, rounded);
    EXPECT_TRUE(expected.ok()) << expected.status();
    if (!expected.ok()) return true;
    for (const auto& runner : runners_) {
      const BoundOp op = instance->Bind(runner->context(c.world));
      const auto found = runner->Run(op, *k.candidate, rounded);
      EXPECT_TRUE(found.ok()) << found.status();
      if (!found.ok()) return true;
      ExpectValues(c, op, *expected, *found);
      ExpectSameBytes(*runner, op, *k.candidate, rounded, *found);
      if (!MayBeShifted(op.schema().name())) continue;
      SCOPED_TRACE("shifted");
      const auto shifted =
          runner->Run(op, *k.candidate, rounded, OpRunner::Place::kShifted);
      EXPECT_TRUE(shifted.ok()) << shifted.status();
      if (!shifted.ok()) return true;
      ExpectValues(c, op, *expected, *shifted);
    }
    return true;
  }

  // Again, and in place if the schema allows that.
  void ExpectSameBytes(OpRunner& runner, const BoundOp& op,
                       const Candidate& candidate, const Values& inputs,
                       const RunResult& first) {
    if (!candidate.deterministic) return;
    const auto again = runner.Run(op, candidate, inputs);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(first.bytes, again->bytes) << "the same run, other bits";
    if (!MayAlias(op)) return;
    const auto in_place =
        runner.Run(op, candidate, inputs, OpRunner::Place::kAliased);
    ASSERT_TRUE(in_place.ok()) << in_place.status();
    EXPECT_EQ(first.bytes, in_place->bytes) << "outputs in inputs' storage";
  }

  CaseFile file_;
  std::vector<std::unique_ptr<OpRunner>> runners_;
};

TEST_P(Conformance, EveryKeyAndCandidate) {
  const auto& [device, op] = GetParam();
  const auto keys = KeysOf(op);
  EXPECT_FALSE(keys.empty()) << "a case file without a kernel on " << device;
  // By key and candidate: one that stands before another on some machines and
  // behind it on others is there twice.
  std::map<std::pair<std::string, std::string>, int> cases;
  for (const KeyAndCandidate& k : keys) {
    int& run = cases[{k.text, k.candidate->name}];
    for (const OpCase& c : file_.cases) {
      if (!Fits(file_, c, k.key)) continue;
      SCOPED_TRACE(absl::StrCat(file_.path, ":", c.line, ": case ", c.name,
                                ", key ", k.text, ", candidate ",
                                k.candidate->name, " on ", device));
      if (RunCase(c, k)) ++run;
      if (HasFatalFailure()) return;
    }
    if (Unreachable(file_, k.key)) ++run;
  }
  for (const auto& [reached, run] : cases) {
    EXPECT_GT(run, 0) << file_.path << ": no case reaches key " << reached.first
                      << ", candidate " << reached.second
                      << "; add one (channels_last: with an X of 4 dims)";
  }
}

// No case is left out by every key.
TEST_P(Conformance, EveryCaseFitsAKey) {
  const auto& [device, op] = GetParam();
  const auto keys = KeysOf(op);
  for (const OpCase& c : file_.cases) {
    EXPECT_TRUE(std::any_of(
        keys.begin(), keys.end(),
        [&](const KeyAndCandidate& k) { return Fits(file_, c, k.key); }))
        << file_.path << ":" << c.line << ": case " << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Conformance,
    ::testing::Combine(::testing::ValuesIn(TestedDevices()),
                       ::testing::ValuesIn(AllOps())),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_",
                          std::get<1>(info.param));
    });

// ---- Coverage of the schemas.

// Ops without a kernel anywhere: a broadcast is the executor's call to the
// communicator, fusions have patterns.
const std::set<std::string>& WithoutKernels() {
  static const auto* const ops = new std::set<std::string>{
      "all_gather", "broadcast", "reduce_scatter", "take_shard", "fusion"};
  return *ops;
}

TEST(Coverage, EverySchemaHasAKernelUnlessItIsSplit) {
  for (const std::string& device : TestedDevices()) {
    for (const OpSchema* schema : Ops().All()) {
      const std::string& op = schema->name();
      if (IsLeftOut(op)) continue;
      const bool none = schema->split_only() || WithoutKernels().count(op) > 0;
      EXPECT_EQ(KeysOf(op).empty(), none) << op << " on " << device;
    }
  }
}

}  // namespace
}  // namespace halftone
