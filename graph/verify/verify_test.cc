#include "graph/verify/verify.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "graph/verify/test_program.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Program> Good() { return Parse(kGoodProgram, "g.ht").value(); }

std::string MessageOf(const Program& program, Phase phase) {
  VerifyOptions options;
  options.phase = phase;
  return std::string(Verify(program, options).message());
}

TEST(VerifyTest, TheGoodProgramObeysEveryRule) {
  EXPECT_EQ(MessageOf(*Good(), Phase::kLowered), "");
}

TEST(VerifyTest, ClassFollowsThePhase) {
  const auto program = Good();
  program->loss.var = "los";
  VerifyOptions options;
  EXPECT_EQ(ExitCodeOf(Verify(*program, options)), ExitCode::kModel);
  program->loss.var = "loss";
  Block& block = program->FindEntry(kTrainEntry)->block();
  block.SetType(block.FindValue("loss"), TensorType{DType::kF16});
  options.phase = Phase::kLowered;
  EXPECT_EQ(ExitCodeOf(Verify(*program, options)), ExitCode::kCompilerBug);
}

// Replaces `from` (once, if `count` is 1) in the good program's text.
struct Edit {
  Phase phase;
  const char* from;
  const char* to;
  const char* says;
};

class EditTest : public ::testing::TestWithParam<Edit> {};

TEST_P(EditTest, BreaksARule) {
  const Edit& edit = GetParam();
  const std::string text =
      absl::StrReplaceAll(kGoodProgram, {{edit.from, edit.to}});
  ASSERT_NE(text, kGoodProgram) << edit.from;
  const auto program = Parse(text, "g.ht");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(MessageOf(**program, edit.phase), HasSubstr(edit.says));
}

constexpr Phase kSource = Phase::kSource;
constexpr Phase kLowered = Phase::kLowered;

INSTANTIATE_TEST_SUITE_P(
    Program, EditTest,
    ::testing::Values(
        Edit{kSource, "constant two : f32[] = [2]\n",
             "constant two : f32[] = [2]\nconstant @attempted : f32[] = [2]\n",
             "a cell and a constant are both called @attempted"},
        Edit{kSource, "constant two : f32[] = [2]\n",
             "constant two : f32[] = [2]\nconstant \"\" : f32[] = [1]\n",
             "a constant's name is empty"},
        Edit{kSource, "cell s.velocity : f32[3]", "cell s.velocity : f32[B]",
             "cell s.velocity: its dims depend on the batch"},
        Edit{kSource, "cell s.velocity : f32[3]", "cell s.velocity : f32[-3]",
             "cell s.velocity: a dim is below 0"},
        Edit{kSource, "statistic applied", "statistic trainable applied",
             "cell mean: expected only parameters of a float dtype"},
        Edit{kSource, "statistic applied", "statistic always",
             "cell mean: expected only scaler, clocks and accumulators"},
        Edit{kSource, "clock always", "accumulator applied",
             "cell @attempted: expected an accumulator to be committed always"},
        Edit{kSource, "clock always init=constant(0)",
             "accumulator(w.velocity) always",
             "cell @attempted: expected the parameter, statistic or "
             "average that it belongs to"},
        Edit{kSource, "entry train {", "entry accumulate {",
             "commit w: expected none but of accumulators"},
        Edit{kSource, "entry train {", "entry average {",
             "commit w.velocity: expected none but of parameters, statistics"},
        Edit{kSource, "init=constant(0.5)", "init=constant(inf)",
             "g.ht:4: cell w: expected an initialiser of finite numbers"},
        Edit{kSource, "slot(w)", "slot",
             "cell w.velocity: expected the parameter that it belongs to"},
        Edit{kSource, "slot(w)", "slot(mean)",
             "cell w.velocity: expected the parameter that it belongs to"},
        Edit{kSource, "clock always", "clock(w) always",
             "cell @attempted: expected no owner"},
        Edit{kSource, "derived(w) applied",
             "derived(w) applied init=normal(0, 1)",
             "cell w.low: expected no initialiser"},
        Edit{kSource, "clock always init=constant(0)", "clock always",
             "cell @attempted: expected an initialiser"},
        Edit{kSource, "cell w.low : f16[4,3]", "cell w.low : f16[3,4]",
             "cell w.low: expected the dims of w"},
        Edit{kSource, "loss loss over", "loss los over",
             "loss: no value is called los"},
        Edit{kSource, "loss loss over ce", "loss loss over cee mask m",
             "loss: mask: no value is called m"},
        Edit{kSource, "loss loss over ce",
             "loss loss over ce\nmetric m = a over b\noutput c",
             "metric m: over: no value is called b"},
        Edit{kSource, "loss loss over ce", "output c",
             "output: no value is called c"}));

INSTANTIATE_TEST_SUITE_P(
    Ops, EditTest,
    ::testing::Values(
        Edit{kSource, "feed label", "feed \"la\\nbel\" : i64[]\n  feed label",
             "has control characters"},
        Edit{kSource, "  n: element_count", "  \"\\x07\": element_count",
             "an op's name has control characters"},
        Edit{kSource, "feed @largest_count : f32[]",
             "feed @largest_count : f32[B*1125899906842625]",
             "value @largest_count: it has more than 2^50 elements"},
        Edit{kSource, "logits : f16[B,3]", "logits : f16[B,4]",
             "g.ht:9: logits (matmul): slot Out: expected f16[B,3], found "
             "f16[B,4]"},
        Edit{kSource, "logits: matmul(X=x, Y=w.low)", "logits: matmul(X=x)",
             "slot Y: expected one value, found nothing"},
        Edit{kSource,
             "all_reduce(X=[loss, n]) -> (Out=[loss.sum : f32[], n.sum",
             "all_reduce(X=[n, n]) -> (Out=[loss.sum : f32[], n.sum",
             "totals (all_reduce): slot X: n is a member twice"},
        Edit{kSource, "fusion(X=[inv, n])", "fusion(X=[inv])",
             "fused (fusion): body: expected 1 arguments, found 2"},
        Edit{kSource, "    feed b : f32[]\n", "    feed b : f32[1]\n",
             "fused (fusion): body: arguments: expected f32[], found f32[1]"},
        Edit{kSource, "    return d\n", "    return d, a\n",
             "fused (fusion): body: expected 1 results, found 2"},
        Edit{kSource, "scale(X=a)", "scale(X=two)",
             "fused (fusion): body: expected arguments alone, found the cell "
             "or constant two"},
        Edit{kSource, "(Out=c : f32[])", "(Out=c : f32[2])",
             "c (scale): slot Out: expected f32[]"},
        Edit{
            kSource, "    return d\n",
            "    g: fusion(X=[a]) -> (Out=[g : f32[]]) {pattern=\"p\"} body {\n"
            "      feed e : f32[]\n      return e\n    }\n    return g\n",
            "expected no fusion within a fusion"},
        Edit{kSource, "pattern=\"elementwise_chain\"",
             "pattern=\"elementwise_chains\"",
             "fused (fusion): expected the name of a fusion pattern, found "
             "\"elementwise_chains\"; nearest: elementwise_chain"},
        Edit{kSource, "pattern=\"elementwise_chain\"",
             "pattern=\"matmul_bias_relu\"",
             "fused (fusion): body: expected that of matmul_bias_relu, "
             "relu(matmul(X, Y, Bias))"},
        Edit{Phase::kPrecision, "forward f16 WHITE_LIST line=9", "forward f16",
             "g.ht: entry train: logits (matmul): expected a precision and a "
             "reason"},
        Edit{Phase::kBackward, "communicate f32 SCHEMA", "communicate f32",
             "bucket2 (all_reduce): expected a precision and a reason"}));

INSTANTIATE_TEST_SUITE_P(
    Entries, EditTest,
    ::testing::Values(
        Edit{kSource, "  commit w <- w.next\n",
             "  commit w <- w.next\n  commit w <- w.next\n",
             "commit w: two commits"},
        Edit{kSource, "commit w <- w.next\n", "commit w <- s.next\n",
             "commit w: expected f32[4,3], found s.next : f32[3]"},
        Edit{kSource, "  result logits = logits\n",
             "  result logits = logits\n  commit w <- w\n",
             "expected no commits: evaluation changes nothing"},
        Edit{kSource, "result doubled = doubled", "result @found_inf = doubled",
             "result @found_inf: two results of that name"},
        Edit{kLowered, "  commit w.low <- w.low.init\n", "",
             "cell w.low: expected a commit"},
        Edit{kLowered, "  commit w.low <- w.low.init\n",
             "  commit w.low <- w.low.init\n  commit w <- w\n",
             "cell w: expected no commit"},
        Edit{kLowered, "entry derive", "entry init",
             "cell w.low: expected no commit"}));

// The guard: every way for a rejected step to change a cell of class applied.
INSTANTIATE_TEST_SUITE_P(
    Guard, EditTest,
    ::testing::Values(
        Edit{kSource, "commit w <- w.next", "commit w <- w.u",
             "commit w: expected the result of a guarded op, found w.u"},
        Edit{kSource, "commit w <- w.next", "commit w <- w.velocity",
             "commit w: expected the result of a guarded op"},
        Edit{kSource, "commit w <- w.next", "commit w <- w.velocity.next",
             "commit w: expected the result of a guarded op, found w.velocity"},
        Edit{kSource, "commit mean <- mean.next", "commit mean <- var.next",
             "commit mean: expected the result of a guarded op, found var"},
        Edit{kSource, "commit @applied <- applied.next",
             "commit @applied <- attempted.next",
             "commit @applied: expected the result of a guarded op"},
        Edit{kSource, "tick_applied(X=@applied, FoundInf=found_inf)",
             "tick_applied(X=@applied, FoundInf=verdict)",
             "commit @applied: expected tick_applied to read the FoundInf of "
             "the entry's check_finite"},
        Edit{kSource, "BatchVariance=s, FoundInf=found_inf) -> (Mean=mean.1",
             "BatchVariance=s, FoundInf=verdict) -> (Mean=mean.1",
             "commit mean: expected stats to read the FoundInf"},
        Edit{kSource, "OldMean=mean, OldVariance=var",
             "OldMean=var, OldVariance=mean",
             "commit mean: expected the result of a guarded op, found var"},
        Edit{kSource, "  lr: learning_rate",
             "  check2: check_finite(F32=[s.grad], InvScale=inv) -> "
             "(FoundInf=f2 : bool[], FirstBad=b2 : i32[], SquaredNorm=n2 : "
             "f32[1])\n  lr: learning_rate",
             "expected one check_finite, found 2"},
        Edit{kSource, "tick_applied(X=@applied, FoundInf=found_inf)",
             "tick_applied(X=@attempted, FoundInf=found_inf)",
             "commit @applied: expected the result of a guarded op, found "
             "@attempted"},
        Edit{kSource, "  commit w <- w.next\n", "",
             "slot LowOut of update does not keep the cell's old value"}));

INSTANTIATE_TEST_SUITE_P(
    Gradients, EditTest,
    ::testing::Values(
        Edit{kSource, "  commit w <- w.next\n",
             "  gradient w = w.grad\n  gradient w = w.u\n"
             "  commit w <- w.next\n",
             "gradient w: two gradients"},
        Edit{kSource, "  commit w <- w.next\n",
             "  gradient mean = mean.1\n  commit w <- w.next\n",
             "gradient mean: expected a trainable parameter"},
        Edit{kSource, "  commit w <- w.next\n",
             "  gradient w = s.grad\n  commit w <- w.next\n",
             "gradient w: expected the dims of f32[4,3], found s.grad : "
             "f32[3]"},
        Edit{Phase::kParallel, "  commit w <- w.next\n",
             "  gradient s = mean.1\n  commit w <- w.next\n",
             "gradient mean.1: expected one all_reduce of=gradient, found 0"},
        Edit{Phase::kParallel, "  commit w <- w.next\n",
             "  again: all_reduce(X=[w.grad]) -> (Out=[twice : f32[4,3]])   "
             "communicate f32 SCHEMA\n  gradient w = w.grad\n"
             "  commit w <- w.next\n",
             "gradient w.grad: expected one all_reduce of=gradient, found 2"},
        Edit{Phase::kUpdate, "  commit w <- w.next\n",
             "  gradient w = w.u\n  commit w <- w.next\n",
             "parameter w: it has a gradient, expected an update that reads "
             "it"},
        Edit{
            Phase::kUpdate, "  commit w <- w.next\n",
            "  again: all_reduce(X=[s.grad]) -> (Out=[twice : f32[3]])   "
            "communicate f32 SCHEMA\n  commit w <- w.next\n",
            "again (all_reduce): gradient twice: expected an update that reads "
            "it"},
        Edit{Phase::kUpdate, "Grad=[s.grad.reduced]", "Grad=[s.grad]",
             "update2 (momentum): slot Grad: s.grad: expected one all_reduce "
             "of=gradient before it, found 0"},
        Edit{Phase::kUpdate, "w.u: unscale(X=w.grad",
             "again: all_reduce(X=[w.grad]) -> (Out=[twice : f32[4,3]])   "
             "communicate f32 SCHEMA\n  w.u: unscale(X=twice",
             "slot Grad: w.u: expected one all_reduce of=gradient before it, "
             "found 2"},
        Edit{Phase::kUpdate, "  commit s <- s.next\n", "",
             "parameter s: it is updated, expected a commit"},
        Edit{kLowered, "  n: element_count",
             "  norm: sync_batch_norm(X=image, Scale=s, Bias=s, Mean=mean, "
             "Variance=var) -> (Y=y : f32[B,3,2,2], BatchMean=bm : f32[3], "
             "BatchVariance=bv : f32[3], BatchCount=bc : f32[])   forward f32 "
             "LEVEL\n  n: element_count",
             "norm (sync_batch_norm): it has no kernel: expected it to be "
             "split"}));

TEST(VerifyTest, SymbolsAreNames) {
  Program program;
  program.Symbol("2");
  EXPECT_THAT(MessageOf(program, Phase::kSource),
              HasSubstr("dim 2: expected a name that begins with a letter"));
}

TEST(VerifyTest, ReportsAllViolationsUpToTwenty) {
  Program program;
  Entry& entry = program.AddEntry("e");
  for (int i = 0; i < 30; ++i) {
    entry.results().push_back({absl::StrCat(i), ValueId()});
  }
  const std::string message = MessageOf(program, Phase::kLowered);
  const std::vector<std::string> lines = absl::StrSplit(message, '\n');
  ASSERT_EQ(lines.size(), 21);
  EXPECT_EQ(lines[0], "entry e: result 0: the value is gone");
  EXPECT_EQ(lines[20], "and 10 more");
}

}  // namespace
}  // namespace halftone
