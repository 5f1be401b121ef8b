// Every fusion pattern's kernels against the body that they replace.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/fusions/fusion_pattern.h"
#include "graph/ir/program.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/ops/compare.h"
#include "tests/ops/devices.h"
#include "tests/ops/op_instance.h"
#include "tests/ops/op_runner.h"

namespace halftone {
namespace {

using BlockValues = std::map<ValueId, std::vector<double>>;
using Values = std::vector<std::vector<double>>;

constexpr char kFolder[] = "tests/ops/patterns";
constexpr char kPrefix[] = "pattern:";
// A fused kernel may add in another order than the body's.
constexpr Tolerance kTolerance = {4, 1e-6};

bool HasWindowsOf(int64_t size, const Op& fusion) {
  const std::vector<ValueId> feeds = fusion.body->Feeds();
  return std::any_of(feeds.begin(), feeds.end(), [&](ValueId feed) {
    const Dims& dims = fusion.body->type(feed).dims;
    return dims.size() == 4 && dims[2] == Dim(size) && dims[3] == Dim(size);
  });
}

// By how much of the largest value kernels of a library may differ from the
// body; 0: it rounds where the body does.
//
// Of norms it rounds the vectors to f16 and sums squares about 0: 2^-8 is some
// 8 such roundings. The epilogue of a product takes gelu of what is not rounded
// yet, by a hardware tanh of 11 bits, and sums gradients before they are
// rounded: 2^-8, or two roundings of bf16.
double LibraryTolerance(const std::string& pattern, const Op& fusion,
                        DType dtype) {
  if (absl::StartsWith(pattern, "matmul_gelu") ||
      pattern == "matmul_relu_grad") {
    return dtype == DType::kBF16 ? 1.0 / 64 : 1.0 / 256;
  }
  // Of candidates that add up thousands of products in orders of their own, two
  // of which may round to neighbours; or of which one rounds what it
  // transforms.
  if (pattern == "recompute_conv_grad_filter" ||
      (pattern == "conv_bias_relu" &&
       (HasWindowsOf(5, fusion) ||
        (IsLow(dtype) && HasWindowsOf(3, fusion))))) {
    return dtype == DType::kF32   ? 1.0 / (1 << 18)
           : dtype == DType::kF16 ? 1.0 / (1 << 10)
                                  : 1.0 / (1 << 7);
  }
  const bool norm = absl::StartsWith(pattern, "norm_conv_") ||
                    pattern == "conv_stats" ||
                    absl::StartsWith(pattern, "conv_grad_");
  return norm ? 1.0 / 256 : 0;
}
// Bits, of which there is all, or places in windows.
std::vector<double> Bytes(int64_t n, absl::string_view pattern) {
  const int64_t values = absl::StartsWith(pattern, "max_pool_grad_") ? 10 : 256;
  std::vector<double> bytes(n);
  for (int64_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<double>(i * 89 % values);
  }
  return bytes;
}
std::string DifferenceFromLargest(const std::vector<double>& expected,
                                  const std::vector<double>& found,
                                  double tolerance) {
  double largest = 0;
  for (double e : expected) largest = std::max(largest, std::abs(e));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(expected[i] - found[i]) <= largest * tolerance) continue;
    return absl::StrCat("element ", i, ": expected ", expected[i], ", found ",
                        found[i], "; the largest is ", largest);
  }
  return "";
}

// "conv_stats" of "pattern:conv_stats(f16)@channels_last"; "" of an op's key.
std::string PatternOf(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kPrefix)) return "";
  return std::string(key.substr(0, key.find('(')));
}

// Patterns with kernels and patterns with files: both must have the other.
std::vector<std::string> AllPatterns() {
  std::set<std::string> patterns;
  for (const std::string& key : TestedKernels().Keys()) {
    if (absl::StartsWith(key, kPrefix)) patterns.insert(PatternOf(key));
  }
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string pattern = entry.path().stem().string();
    if (!IsLeftOut(pattern)) patterns.insert(pattern);
  }
  return std::vector<std::string>(patterns.begin(), patterns.end());
}

class Fusions
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [device, pattern] = GetParam();
    auto content = ReadFile(absl::StrCat(kFolder, "/", pattern, ".txt"));
    ASSERT_TRUE(content.ok())
        << "every pattern has a file of programs: " << content.status();
    content_ = *std::move(content);
    for (const auto& [key, candidate] : TestedKernels().All()) {
      if (PatternOf(key) == pattern) candidates_[key].push_back(candidate);
    }
    ASSERT_FALSE(candidates_.empty()) << "a file without a kernel";
    auto runner = OpRunner::Create(device, 2);
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }

  // The key of the fusion's kernels.
  static std::string KeyOf(const Op& fusion) {
    const FusionPattern* pattern =
        FindFusionPattern(AttrAs<std::string>(fusion, "pattern"));
    const FusionGroup group = pattern->MatchBody(*fusion.body);
    if (group.ops().empty()) {
      ADD_FAILURE() << "the body is not " << pattern->formula();
      return "";
    }
    const TensorType& key = pattern->KeyType(*fusion.body, group);
    return absl::StrCat(kPrefix, pattern->name(), "(", Name(key.dtype), ")@",
                        Name(key.layout));
  }

  // What the body makes of the arguments, op by op.
  absl::StatusOr<Values> Inlined(const Op& fusion, const Values& arguments,
                                 OpRunner::Choice choice) {
    const Block& body = *fusion.body;
    BlockValues values;
    const std::vector<ValueId> feeds = body.Feeds();
    for (size_t i = 0; i < feeds.size(); ++i) values[feeds[i]] = arguments[i];
    HT_RETURN_IF_ERROR(runner_->RunBlock(body, &values, choice));
    Values results;
    for (ValueId result : body.body_results()) {
      results.push_back(values[result]);
    }
    return results;
  }

  // Hands `compare` the outputs of each candidate that supports the fusion.
  template <typename Compare>
  void ForEachCandidate(const kernels::BoundOp& op, const Values& arguments,
                        OpRunner::Choice choice, const Compare& compare) {
    const auto expected = Inlined(op.op(), arguments, choice);
    EXPECT_TRUE(expected.ok()) << expected.status();
    for (const kernels::Candidate* candidate : candidates_.at(KeyOf(op.op()))) {
      if (candidate->supports && !candidate->supports(op)) continue;
      tested_.insert(candidate);
      for (const auto place :
           {OpRunner::Place::kApart, OpRunner::Place::kShifted}) {
        const bool shifted = place == OpRunner::Place::kShifted;
        if (shifted && !MayBeShifted(std::get<1>(GetParam()))) continue;
        SCOPED_TRACE(absl::StrCat("candidate ", candidate->name,
                                  shifted ? ", shifted" : ""));
        const auto found = runner_->Run(op, *candidate, arguments, place);
        EXPECT_TRUE(found.ok()) << found.status();
        if (!found.ok() || !expected.ok()) return;
        for (size_t i = 0; i < expected->size(); ++i) {
          compare(op.outputs()[i].dtype, (*expected)[i], found->values[i]);
        }
      }
    }
  }

  // A NaN must get through wherever the body hands it on, made plainly. (A
  // library may also meet one in padding, and tiles see what others need.)
  void CheckNaNs(const kernels::BoundOp& op, Values arguments, size_t which) {
    SCOPED_TRACE(absl::StrCat("a NaN in argument ", which));
    arguments[which][0] = std::numeric_limits<double>::quiet_NaN();
    ForEachCandidate(op, arguments, OpRunner::Choice::kPlainest,
                     [](DType, const std::vector<double>& expected,
                        const std::vector<double>& found) {
                       for (size_t i = 0; i < expected.size(); ++i) {
                         if (!std::isnan(expected[i])) continue;
                         EXPECT_TRUE(std::isnan(found[i]))
                             << "element " << i << ": found " << found[i];
                       }
                     });
  }

  void CheckEntry(const Block& block) {
    const Op& fusion = block.op(*block.ops().begin());
    const kernels::BoundOp op(block, fusion, SymbolValues(),
                              runner_->context());
    Values arguments;
    for (const kernels::TensorDesc& desc : op.inputs()) {
      // Exact in every dtype, and so are long sums of their products.
      arguments.push_back(
          IsFloat(desc.dtype)
              ? kernels::Eighths(desc.elements())
              : Bytes(desc.elements(), std::get<1>(GetParam())));
    }
    MakeVariances(fusion, arguments);
    if (candidates_.count(KeyOf(fusion)) == 0)
      return;  // the planner inlines it
    ForEachCandidate(
        op, arguments, OpRunner::Choice::kFirst,
        [&fusion](DType dtype, const std::vector<double>& expected,
                  const std::vector<double>& found) {
          const double tolerance =
              LibraryTolerance(std::get<1>(GetParam()), fusion, dtype);
          EXPECT_EQ(tolerance > 0
                        ? DifferenceFromLargest(expected, found, tolerance)
                        : Difference(dtype, expected, found, kTolerance),
                    "");
        });
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].empty() || !IsFloat(op.inputs()[i].dtype)) continue;
      CheckNaNs(op, arguments, i);
    }
  }

  // A variance is not negative.
  static void MakeVariances(const Op& fusion, Values& arguments) {
    const Block& body = *fusion.body;
    const std::vector<ValueId> feeds = body.Feeds();
    for (size_t i = 0; i < feeds.size(); ++i) {
      for (const Use& use : body.value(feeds[i]).uses) {
        const Op& op = body.op(use.op);
        const int slot = op.inputs.SlotOf(use.position);
        if (!absl::EndsWith(op.schema->inputs()[slot].name, "Variance")) {
          continue;
        }
        for (double& v : arguments[i]) v = std::abs(v);
      }
    }
  }

  std::string content_;
  std::map<std::string, std::vector<const kernels::Candidate*>> candidates_;
  std::set<const kernels::Candidate*> tested_;
  std::unique_ptr<OpRunner> runner_;
};

TEST_P(Fusions, EqualTheirBodies) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const std::string text = absl::StrReplaceAll(
        content_, {{": T[", absl::StrCat(": ", dtype, "[")}});
    const auto program = Parse(text, std::get<1>(GetParam()));
    ASSERT_TRUE(program.ok()) << program.status();
    for (const auto& entry : (*program)->entries()) {
      SCOPED_TRACE(absl::StrCat("pattern ", std::get<1>(GetParam()), ", entry ",
                                entry->name(), ", ", dtype));
      CheckEntry(entry->block());
    }
  }
  for (const auto& [key, candidates] : candidates_) {
    for (const kernels::Candidate* candidate : candidates) {
      EXPECT_TRUE(tested_.count(candidate) > 0)
          << "no case reaches " << key << ", candidate " << candidate->name;
    }
  }
}

// Also of patterns that this binary has no kernel for.
TEST(FusionFiles, HoldWhatTheirPatternsSay) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const auto content = ReadFile(entry.path().string());
    ASSERT_TRUE(content.ok()) << content.status();
    const auto program =
        Parse(absl::StrReplaceAll(*content, {{": T[", ": f32["}}),
              entry.path().string());
    ASSERT_TRUE(program.ok()) << program.status();
    for (const auto& block : (*program)->entries()) {
      const Op& fusion = block->block().op(block->block().first());
      const std::string pattern = AttrAs<std::string>(fusion, "pattern");
      EXPECT_EQ(pattern, entry.path().stem().string());
      ASSERT_NE(FindFusionPattern(pattern), nullptr);
      EXPECT_FALSE(
          FindFusionPattern(pattern)->MatchBody(*fusion.body).ops().empty())
          << entry.path() << ", entry " << block->name();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, Fusions,
    ::testing::Combine(::testing::ValuesIn(TestedDevices()),
                       ::testing::ValuesIn(AllPatterns())),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_",
                          std::get<1>(info.param));
    });

}  // namespace
}  // namespace halftone
