#include "runtime/plan/plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/register_all.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PlanTest : public ::testing::Test {
 protected:
  // Plans entry train of a program given by its lines after `program`.
  absl::StatusOr<Plan> Make(const std::string& text) {
    auto parsed = Parse("program \"p\" dim B\n" + text, "test.ht");
    if (!parsed.ok()) return parsed.status();
    program_ = std::move(*parsed);
    state_ = LayOutState(*program_, request_.bind.world_size);
    request_.program = program_.get();
    if (request_.entry.empty()) request_.entry = "train";
    auto plan = MakePlan(request_, kernels::Kernels(), state_, tuning_);
    const auto arenas =
        PlannedArenas(request_, kernels::Kernels(), state_, tuning_);
    EXPECT_EQ(arenas.status(), plan.status());
    EXPECT_EQ(arenas.value_or(ArenaBytes{}),
              plan.ok() ? plan->arena_bytes : ArenaBytes{});
    return plan;
  }
  Plan Planned(const std::string& text) {
    auto plan = Make(text);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : Plan();
  }
  static std::vector<std::string> Names(const Plan& plan) {
    std::vector<std::string> names;
    for (const Step& step : plan.steps) names.push_back(step.name);
    return names;
  }
  static const PlannedValue& Value(const Plan& plan, const std::string& name) {
    for (const PlannedValue& value : plan.values) {
      if (value.name == name) return value;
    }
    ADD_FAILURE() << "no value " << name << " in\n" << Print(plan);
    static const PlannedValue none;
    return none;
  }
  static int64_t Bytes(const Plan& plan, ArenaKind kind) {
    return plan.arena_bytes[static_cast<int>(kind)];
  }

  std::unique_ptr<Program> program_;
  StateLayout state_;
  PlanRequest request_;
  TuningTable tuning_;
};

TEST_F(PlanTest, StorageIsUsedAgainWhenItsReadersAreDone) {
  request_.symbols[0] = 100;
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[B,16]
  a: exp(X=x) -> (Out=a : f32[B,16])   forward
  b: exp(X=a) -> (Out=b : f32[B,16])   forward
  c: exp(X=b) -> (Out=c : f32[B,16])   forward
  d: exp(X=c) -> (Out=d : f32[B,16])   forward
  result d = d
})");
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "c", "d"));
  // 6,400 bytes each: a and c share, b stands beside, d is a result.
  EXPECT_EQ(Bytes(plan, ArenaKind::kTemporary), 2 * 6400);
  EXPECT_EQ(Value(plan, "a").slice.offset, Value(plan, "c").slice.offset);
  EXPECT_NE(Value(plan, "a").slice.offset, Value(plan, "b").slice.offset);
  EXPECT_EQ(Value(plan, "d").slice.arena, ArenaKind::kResult);
  EXPECT_EQ(plan.peak_bytes(), 4 * 6400);
}

// In their order `a` and `b` would lie in front, and `c`, for which a's place
// is too small, behind both.
TEST_F(PlanTest, TheLargestArePlacedFirstWhereThatSaves) {
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[64]
  feed y : f32[128]
  a: exp(X=x) -> (Out=a : f32[64])   forward
  b: exp(X=a) -> (Out=b : f32[64])   forward
  c: exp(X=y) -> (Out=c : f32[128])   forward
  d: exp(X=c) -> (Out=d : f32[128])   forward
  e: exp(X=b) -> (Out=e : f32[64])   forward
  result d = d
  result e = e
})");
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "c", "d", "e"));
  // As much as lives at once.
  EXPECT_EQ(Bytes(plan, ArenaKind::kTemporary), 256 + 512);
  EXPECT_EQ(Value(plan, "c").slice.offset, 0);
  EXPECT_EQ(Value(plan, "a").slice.offset, 0);
  EXPECT_EQ(Value(plan, "b").slice.offset, 512);
}

TEST_F(PlanTest, MembersOfACollectiveAreProducedSideBySide) {
  request_.bind.world_size = 2;
  const Plan plan = Planned(R"(
entry train {
  feed x : f16[3]
  feed y : f16[200]
  a: relu(X=x) -> (Out=a : f16[3])   backward
  b: relu(X=y) -> (Out=b : f16[200])   backward
  sum: all_reduce(X=[a, b]) -> (Out=[a2 : f16[3], b2 : f16[200]]) {of="gradient", gradient_scale="pre"}   communicate
  c: square(X=a2) -> (Out=c : f16[3])   optimize
  d: square(X=b2) -> (Out=d : f16[200])   optimize
  result c = c
  result d = d
})");
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "sum", "c", "d"));
  EXPECT_EQ(Value(plan, "a").slice.arena, ArenaKind::kCommunication);
  EXPECT_EQ(Value(plan, "a").slice.offset, 0);
  EXPECT_EQ(Value(plan, "b").slice.offset, 256);
  EXPECT_EQ(Value(plan, "a2").slice.offset, 0) << "reduced in place";
  EXPECT_EQ(plan.steps[2].outputs[0].bytes, 256 + 512) << "padding included";
  EXPECT_EQ(plan.steps[2].count, (256 + 512) / 2);
  // The reduction waits for the compute stream, its reader for it.
  EXPECT_EQ(plan.steps[2].stream, StreamKind::kCommunicate);
  EXPECT_THAT(plan.steps[2].waits, ElementsAre(plan.steps[1].records));
  EXPECT_THAT(plan.steps[3].waits, ElementsAre(plan.steps[2].records));
  EXPECT_THAT(plan.steps[4].waits, IsEmpty()) << "waited for once";
}

TEST_F(PlanTest, OneRankReducesNothing) {
  const std::string text = R"(
entry train {
  feed x : f32[64]
  a: exp(X=x) -> (Out=a : f32[64])   backward
  b: exp(X=a) -> (Out=b : f32[64])   backward
  sum: all_reduce(X=[a, b]) -> (Out=[a2 : f32[64], b2 : f32[64]]) {of="gradient", gradient_scale="pre"}   communicate
  c: square(X=a2) -> (Out=c : f32[64])   optimize
  d: elementwise_add(X=c, Y=b2) -> (Out=d : f32[64])   optimize
  result d = d
})";
  const Plan plan = Planned(text);
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(Value(plan, "a2").slice.offset, Value(plan, "a").slice.offset);
  EXPECT_EQ(Value(plan, "b2").slice.offset, Value(plan, "b").slice.offset);
}

// Nobody else reads them.
TEST_F(PlanTest, GroupsOfOneRankLieAmongTheTemporaries) {
  const std::string text = R"(
entry train {
  feed x : f32[64]
  a: exp(X=x) -> (Out=a : f32[64])   forward
  b: exp(X=a) -> (Out=b : f32[64])   forward
  c: exp(X=b) -> (Out=c : f32[64])   backward
  sum: all_reduce(X=[c]) -> (Out=[c2 : f32[64]]) {of="gradient", gradient_scale="pre", predivide=2}   communicate
  d: square(X=c2) -> (Out=d : f32[64])   optimize
  result d = d
})";
  const Plan one = Planned(text);
  EXPECT_EQ(Value(one, "c").slice.arena, ArenaKind::kTemporary);
  EXPECT_EQ(Value(one, "c").slice.offset, Value(one, "a").slice.offset);
  EXPECT_EQ(Bytes(one, ArenaKind::kCommunication), 0);
  // On one stream, as places have no events of their own.
  EXPECT_EQ(one.steps[3].stream, StreamKind::kCompute);
  request_.bind.world_size = 2;
  EXPECT_EQ(Bytes(Planned(text), ArenaKind::kCommunication), 256);
}

// Scratch lies where nothing is alive in its step.
TEST_F(PlanTest, ScratchTakesThePlaceOfWhatIsDone) {
  request_.bind.threads = 2;
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[4,16,16,16] @channels_last
  a: exp(X=x) -> (Out=a : f32[4,16,16,16] @channels_last)   forward
  b: exp(X=a) -> (Out=b : f32[4,16,16,16] @channels_last)   forward
  c: exp(X=b) -> (Out=c : f32[4,16,16,16] @channels_last)   forward
  w: conv2d_grad_filter(Input=b, OutputGrad=c) -> (FilterGrad=w : f32[16,16,3,3] @channels_last) {paddings=[1,1], filter_hw=[3,3]}   backward
  v: square(X=w) -> (Out=v : f32[16,16,3,3] @channels_last)   backward
  result v = v
})");
  const Step& step = plan.steps[3];
  ASSERT_GT(step.workspace.bytes, 0) << Print(plan);
  EXPECT_EQ(step.workspace.arena, ArenaKind::kTemporary);
  std::vector<Slice> alive = step.inputs;
  alive.insert(alive.end(), step.outputs.begin(), step.outputs.end());
  int64_t sum = step.workspace.bytes;
  for (const Slice& slice : alive) {
    EXPECT_TRUE(slice.offset + slice.bytes <= step.workspace.offset ||
                step.workspace.offset + step.workspace.bytes <= slice.offset);
    sum += slice.bytes;
  }
  // `a` is done by then.
  EXPECT_LT(Bytes(plan, ArenaKind::kTemporary), sum + 4 * 16 * 16 * 16 * 4);
}

TEST_F(PlanTest, PreScaleIsTheNextPowerOfTwo) {
  const std::string text = R"(
entry train {
  feed x : f16[3]
  a: relu(X=x) -> (Out=a : f16[3])   backward
  sum: all_reduce(X=[a]) -> (Out=[a2 : f16[3]]) {of="gradient", gradient_scale="pre"}   communicate
  result a2 = a2
})";
  for (const auto& [world, scale] : std::vector<std::pair<int, float>>{
           {1, 1}, {2, 0.5}, {3, 0.25}, {8, 0.125}}) {
    request_.bind.world_size = world;
    EXPECT_EQ(Planned(text).steps[1].pre_scale, scale) << world << " ranks";
  }
}

TEST_F(PlanTest, AMemberThatIsReadAfterwardsIsCopied) {
  request_.bind.world_size = 2;
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[3]
  a: relu(X=x) -> (Out=a : f32[3])   backward
  sum: all_reduce(X=[a]) -> (Out=[a2 : f32[3]]) {of="totals"}   communicate
  c: elementwise_add(X=a, Y=a2) -> (Out=c : f32[3])   optimize
  result c = c
})");
  ASSERT_THAT(Names(plan), ElementsAre("a", "a.member", "sum", "c"));
  EXPECT_EQ(plan.steps[1].kind, Step::Kind::kCopy);
  EXPECT_EQ(Value(plan, "a").slice.arena, ArenaKind::kTemporary);
}

constexpr char kUpdate[] = R"(
cell w : f32[4] parameter trainable applied init=constant(0)
entry train {
  feed g : f32[4]
  feed lr : f32[]
  feed bad : bool[]
  sgd: sgd(Param=[w], Grad=[g], LearningRate=lr, FoundInf=bad) -> (ParamOut=[w.next : f32[4]])   optimize
)";

TEST_F(PlanTest, AnUpdateWritesOverItsCell) {
  const Plan plan = Planned(absl::StrCat(kUpdate, "  commit w <- w.next\n}"));
  EXPECT_THAT(Names(plan), ElementsAre("sgd"));
  EXPECT_EQ(plan.steps[0].outputs[0].arena, ArenaKind::kState);
  EXPECT_EQ(plan.steps[0].outputs[0].offset, state_.cells[0].offset);
}

TEST_F(PlanTest, AnOldValueThatIsReadLaterIsKeptUntilThen) {
  const Plan plan = Planned(absl::StrCat(kUpdate, R"(
  old: square(X=w) -> (Out=old : f32[4])   optimize
  commit w <- w.next
  result old = old
})"));
  ASSERT_EQ(plan.steps.size(), 3u) << Print(plan);
  EXPECT_EQ(plan.steps[0].outputs[0].arena, ArenaKind::kTemporary);
  EXPECT_EQ(plan.steps[2].kind, Step::Kind::kCopy);
  EXPECT_EQ(plan.steps[2].outputs[0].arena, ArenaKind::kState);
}

TEST_F(PlanTest, CommitsMayExchangeCells) {
  const Plan plan = Planned(R"(
cell a : f32[4] clock always init=constant(1)
cell b : f32[4] clock always init=constant(2)
entry train {
  commit a <- b
  commit b <- a
})");
  // Both old values are saved before either cell is written.
  ASSERT_EQ(plan.steps.size(), 4u) << Print(plan);
  for (int s = 0; s < 2; ++s) {
    EXPECT_EQ(plan.steps[s].outputs[0].arena, ArenaKind::kTemporary);
    EXPECT_EQ(plan.steps[s + 2].outputs[0].arena, ArenaKind::kState);
  }
}

// As is the old value of a cell that becomes something else, before that is.
TEST_F(PlanTest, CommitsMayTakeWhatACellWas) {
  for (const bool view : {false, true}) {
    const std::string was = view ? "was" : "b";
    const Plan plan = Planned(absl::StrCat(
        R"(
cell a : f32[4] clock always init=constant(1)
cell b : f32[4] clock always init=constant(2)
entry train {
  n: exp(X=a) -> (Out=n : f32[4])   forward
)",
        view ? "  was: reshape(X=b) -> (Out=was : f32[4]) {shape=[4]}   forward"
             : "",
        "\n  commit b <- n\n  commit a <- ", was, "\n}"));
    // What b was is read before n takes its place.
    int read = -1, written = -1;
    for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
      const auto is_b = [](const Slice& buffer) {
        return buffer.arena == ArenaKind::kState && buffer.offset > 0;
      };
      if (is_b(plan.steps[i].inputs[0])) read = i;
      if (is_b(plan.steps[i].outputs[0]) && written < 0) written = i;
    }
    ASSERT_GE(read, 0) << Print(plan);
    EXPECT_GT(written, read) << Print(plan);
  }
}

TEST_F(PlanTest, ViewsCostNothing) {
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[2,8]
  a: exp(X=x) -> (Out=a : f32[2,8])   forward
  b: reshape(X=a) -> (Out=b : f32[4,4]) {shape=[4, 4]}   forward
  c: exp(X=b) -> (Out=c : f32[4,4])   forward
  result c = c
})");
  EXPECT_THAT(Names(plan), ElementsAre("a", "c"));
  EXPECT_EQ(plan.steps[1].inputs[0].offset, plan.steps[0].outputs[0].offset);
}

TEST_F(PlanTest, AConversionThatMovesNothingIsAView) {
  request_.symbols[0] = 8;
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[B,3,2,2]
  a: convert_layout(X=x) -> (Out=a : f32[B,3,2,2] @channels_last) {to="channels_last"}   forward
  b: pool2d(X=a) -> (Out=b : f32[B,3,1,1] @channels_last) {ksize=[2, 2], pooling_type="avg"}   forward
  c: convert_layout(X=b) -> (Out=c : f32[B,3,1,1]) {to="row_major"}   forward
  d: flatten(X=c) -> (Out=d : f32[B,3])   forward
  e: exp(X=d) -> (Out=e : f32[B,3])   forward
  result e = e
})");
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "e"));
  EXPECT_EQ(Value(plan, "b").slice.offset, Value(plan, "d").slice.offset);
}

TEST_F(PlanTest, ARankWithoutSamplesKeepsCollectivesAndDropsTheRest) {
  request_.bind.world_size = 2;
  request_.symbols[0] = 0;
  const Plan plan = Planned(R"(
cell w : f32[4,3] parameter trainable applied init=constant(0)
entry train {
  feed x : f32[B,4]
  h: matmul(X=x, Y=w) -> (Out=h : f32[B,3])   forward
  w.grad: matmul(X=x, Y=h) -> (Out=w.grad : f32[4,3]) {trans_x=true}   backward
  sum: all_reduce(X=[w.grad]) -> (Out=[g : f32[4,3]]) {of="gradient"}   communicate
  n: element_count(X=h) -> (Out=n : f32[])   loss-scale
  result g = g
  result n = n
})");
  ASSERT_THAT(Names(plan), ElementsAre("w.grad", "sum", "n"));
  EXPECT_EQ(plan.steps[0].kind, Step::Kind::kZero);
  EXPECT_EQ(plan.steps[1].kind, Step::Kind::kAllReduce);
}

TEST_F(PlanTest, RefusesSumsThatNoDeviceHolds) {
  request_.symbols[0] = int64_t{1} << 48;
  std::string text = "entry train {\n  feed v0 : f32[B]\n";
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&text, "  v", i + 1, ": exp(X=v", i, ") -> (Out=v", i + 1,
                    " : f32[B])   forward\n");
  }
  const auto plan = Make(text + "}");
  EXPECT_EQ(ExitCodeOf(plan.status()), ExitCode::kOutOfMemory);
  EXPECT_EQ(plan.status().message(),
            "entry train: its values and workspaces are more than 2^56 bytes "
            "on this rank, more than any device holds; use a smaller batch");
}

constexpr char kSharded[] = R"(
cell w : f32[50,5] parameter trainable applied init=constant(0)
cell w.velocity : f32[50,5] @shard slot(w) applied sharded init=constant(0)
entry train {
  feed g : f32[50,5]
  feed lr : f32[]
  feed reject : bool[]
  made: exp(X=g) -> (Out=made : f32[50,5])   backward
  sum: reduce_scatter(X=[made]) -> (Out=[r : f32[50,5] @shard]) {gradient_scale="pre"}   communicate
  part: take_shard(X=[w]) -> (Out=[w.shard : f32[50,5] @shard])   communicate
  m: momentum(Param=[w.shard], Grad=[r], Velocity=[w.velocity], LearningRate=lr, FoundInf=reject) -> (ParamOut=[w.next.shard : f32[50,5] @shard], VelocityOut=[w.velocity.next : f32[50,5] @shard])   optimize
  all: all_gather(X=[w.next.shard]) -> (Out=[w.next : f32[50,5]])   communicate
  commit w <- w.next
  commit w.velocity <- w.velocity.next
})";

// 250 elements on three ranks: 128 each, of which the second has 122 and the
// third none.
TEST_F(PlanTest, ShardsAreOfTheSameSizeOnAllRanks) {
  request_.bind.world_size = 3;
  std::vector<uint64_t> hashes;
  for (int rank = 0; rank < 3; ++rank) {
    SCOPED_TRACE(rank);
    request_.bind.rank = rank;
    const auto planned = Make(kSharded);
    ASSERT_TRUE(planned.ok()) << planned.status();
    const Plan& plan = *planned;
    hashes.push_back(CollectiveHash(plan));
    EXPECT_EQ(Value(plan, "made").slice.bytes, 1000);
    EXPECT_EQ(Value(plan, "r").slice.bytes, 512);
    // Where it is made, and this rank's sum in it.
    EXPECT_EQ(Value(plan, "r").slice.offset,
              Value(plan, "made").slice.offset + rank * 512);
    EXPECT_EQ(Value(plan, "w.next.shard").slice.offset,
              Value(plan, "w.next").slice.offset + rank * 512);
    EXPECT_EQ(Value(plan, "w.next").slice.arena, ArenaKind::kTemporary);
    for (const Step& step : plan.steps) {
      if (step.kind == Step::Kind::kReduceScatter) {
        EXPECT_EQ(step.stream, StreamKind::kCommunicate);
        EXPECT_EQ(step.pre_scale, 0.25);
      }
      if (step.kind == Step::Kind::kReduceScatter ||
          step.kind == Step::Kind::kGatherShards) {
        ASSERT_EQ(step.outputs.size(), 1);
        EXPECT_EQ(step.outputs[0].bytes, 3 * 512);
      }
      if (step.name != "part" || step.kind != Step::Kind::kCopy) continue;
      EXPECT_EQ(step.inputs[0].offset,
                Value(plan, "w").slice.offset + rank * 512);
      EXPECT_EQ(step.inputs[0].bytes, rank == 0 ? 512 : 488);
    }
    const std::vector<std::string> names = Names(plan);
    // A copy, rank 1's behind zeros, rank 2 has zeros alone.
    EXPECT_EQ(std::count(names.begin(), names.end(), "part"),
              rank == 1 ? 2 : 1);
  }
  EXPECT_EQ(hashes, std::vector<uint64_t>(3, hashes[0]));
}

TEST_F(PlanTest, ShardsOfOneRankAreTheWhole) {
  const Plan plan = Planned(kSharded);
  EXPECT_EQ(Value(plan, "r").slice.bytes, 1000);
  EXPECT_EQ(Value(plan, "w.velocity").slice.bytes, 1000);
}

TEST_F(PlanTest, ShardedStateComesLast) {
  ASSERT_TRUE(Make(kSharded).ok());
  const StateLayout whole = LayOutState(*program_);
  const StateLayout shared = LayOutState(*program_, 4);
  EXPECT_EQ(OptimizerBytes(*program_, whole), 1000);
  EXPECT_EQ(OptimizerBytes(*program_, shared), 256);
  EXPECT_EQ(whole.common_bytes, shared.common_bytes);
  EXPECT_EQ(shared.cells[1].offset, shared.common_bytes);
  EXPECT_EQ(shared.bytes, shared.common_bytes + 256);
}

TEST_F(PlanTest, ABodyTakesTheFusionsPlaceWhereNoKernelDoes) {
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[4,3]
  feed v : f32[4,3]
  f: fusion(X=[x, v]) -> (Out=[g : f32[4,3], y : f32[3]]) {pattern="relu_grad_bias"}   backward body {
    feed a : f32[4,3]
    feed b : f32[4,3]
    s: relu_grad(Out=a, OutGrad=b) -> (XGrad=s : f32[4,3])   backward
    r: reduce_sum(X=s) -> (Out=r : f32[3]) {dim=[0]}   backward
    return s, r
  }
  result g = g
  result y = y
})");
  EXPECT_THAT(Names(plan), ElementsAre("s", "r"));
  ASSERT_EQ(plan.inlined.size(), 1u);
  EXPECT_EQ(plan.inlined[0].name, "f");
  EXPECT_EQ(plan.inlined[0].pattern, "relu_grad_bias");
  EXPECT_EQ(plan.inlined[0].refusal, "");
  // A kernel that could say why.
  kernels::KernelRegistry kernels = kernels::Kernels();
  kernels::Candidate picky;
  picky.supports = [](const kernels::BoundOp&) { return false; };
  kernels.AddPattern("relu_grad_bias", {DType::kF32}, {Layout::kRowMajor},
                     picky);
  picky.refusal = [](const kernels::BoundOp& fusion) {
    return absl::StrCat("no ", fusion.inputs()[0].dims[0], " of anything");
  };
  kernels.AddPattern("relu_grad_bias", {DType::kF32}, {Layout::kRowMajor},
                     picky);
  const auto refused = MakePlan(request_, kernels, state_, tuning_);
  ASSERT_TRUE(refused.ok()) << refused.status();
  ASSERT_EQ(refused->inlined.size(), 1u);
  EXPECT_EQ(refused->inlined[0].refusal, "no 4 of anything");
}

TEST_F(PlanTest, TheTuningTableChooses) {
  const std::string text = R"(
entry train {
  feed x : f32[4]
  a: exp(X=x) -> (Out=a : f32[4])   forward
  result a = a
})";
  kernels::KernelRegistry kernels;
  kernels::Candidate first, second;
  first.name = "first";
  second.name = "second";
  for (const auto& candidate : {first, second}) {
    kernels.Add("exp", {DType::kF32}, Layout::kRowMajor, candidate);
  }
  auto chosen = [&] {
    auto made = MakePlan(request_, kernels, state_, tuning_);
    return made.ok() ? made->steps[0].candidate->name
                     : std::string(made.status().message());
  };
  Planned(text);
  EXPECT_EQ(chosen(), "first");
  const Block& block = program_->FindEntry("train")->block();
  const kernels::BoundOp bound(block, block.op(block.first()), request_.symbols,
                               request_.bind);
  tuning_.Set(TuningTable::KeyOf(bound), {"second", 0, true});
  EXPECT_EQ(chosen(), "second");
}

TEST_F(PlanTest, AnUnknownFetchNamesTheNearestValue) {
  request_.fetches = {"hiden"};
  const auto plan = Make(R"(
entry train {
  feed x : f32[4]
  hidden: exp(X=x) -> (Out=hidden : f32[4])   forward
  result hidden = hidden
})");
  EXPECT_EQ(ExitCodeOf(plan.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("hidden"));
}

// One copy of the first part of the arena has all that each step wants.
TEST_F(PlanTest, WhatIsFetchedLiesBehindTheOtherResults) {
  request_.kept = {"b"};
  request_.fetches = {"a", "c"};
  const Plan plan = Planned(R"(
entry train {
  feed x : f32[4]
  a: exp(X=x) -> (Out=a : f32[4])   forward
  b: exp(X=a) -> (Out=b : f32[4])   forward
  c: exp(X=b) -> (Out=c : f32[4])   forward
  d: exp(X=c) -> (Out=d : f32[4])   forward
  result c = c
  result d = d
})");
  std::vector<std::string> names;
  int64_t end = 0;
  for (const PlannedResult& result : plan.results) {
    names.push_back(result.name);
    EXPECT_EQ(result.fetched, result.name == "a" || result.name == "c");
    if (!result.fetched) {
      end = std::max(end, result.slice.offset + result.slice.bytes);
    } else {
      EXPECT_GE(result.slice.offset, end) << result.name;
    }
  }
  EXPECT_THAT(names, ElementsAre("d", "b", "c", "a"));
}

TEST_F(PlanTest, TheHashOfCollectivesIgnoresEverythingElse) {
  const std::string text = R"(
entry train {
  feed x : f32[B,4]
  a: relu(X=x) -> (Out=a : f32[B,4])   forward
  t: reduce_sum(X=a) -> (Out=t : f32[])   forward
  sum: all_reduce(X=[t]) -> (Out=[u : f32[]]) {of="totals"}   communicate
  result u = u
})";
  request_.symbols[0] = 3;
  const Plan three = Planned(text);
  request_.symbols[0] = 5;
  const Plan five = Planned(text);
  EXPECT_NE(Print(three), Print(five));
  EXPECT_EQ(CollectiveHash(three), CollectiveHash(five));
  EXPECT_THAT(LargestBuffers(five, 1), ElementsAre("x f32[5,4] 80 B"));
}

TEST_F(PlanTest, APlanIsAFunctionOfItsRequest) {
  const std::string text = absl::StrCat(kUpdate, "  commit w <- w.next\n}");
  EXPECT_EQ(Print(Planned(text)), Print(Planned(text)));
  EXPECT_THAT(Print(Planned(text)), Not(IsEmpty()));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
