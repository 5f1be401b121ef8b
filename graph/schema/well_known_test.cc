#include "graph/ir/well_known.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/shard_feed.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

using WellKnownTest = SchemaTest;

TEST_F(WellKnownTest, Feeds) {
  for (const char* name : {kLargestCount, kFirstSample, kStop, kSeed, kSchedule,
                           kStepsPerEpoch, kShard}) {
    const ValueId value = *WellKnownValue(&block_, name);
    EXPECT_EQ(*WellKnownValue(&block_, name), value);
    EXPECT_EQ(block_.value(value).definition, Definition::kFeed);
    EXPECT_EQ(block_.name(value), name);
  }
  EXPECT_EQ(Text("@largest_count"), "f32[]");
  EXPECT_EQ(Text("@first_sample"), "i64[]");
  EXPECT_EQ(Text("@stop"), "f32[]");
  EXPECT_EQ(Text("@seed"), "i64[]");
  EXPECT_EQ(Text("@schedule"), "f32[3]");
  EXPECT_EQ(Text("@steps_per_epoch"), "f32[]");
  EXPECT_EQ(Text("@shard"), "i64[]");
  EXPECT_EQ(block_.Feeds().size(), 7);
}

TEST_F(WellKnownTest, Cells) {
  for (const char* name :
       {kLossScaling, kGoodSteps, kBadSteps, kAttempted, kApplied}) {
    const ValueId value = *WellKnownValue(&block_, name);
    EXPECT_EQ(*WellKnownValue(&block_, name), value);
    const Cell& cell = program_.cell(block_.value(value).cell());
    EXPECT_EQ(cell.name, name);
    const bool clock = cell.name == kAttempted || cell.name == kApplied;
    EXPECT_EQ(cell.kind, clock ? CellKind::kClock : CellKind::kScaler);
    EXPECT_EQ(cell.commit,
              cell.name == kApplied ? Commit::kApplied : Commit::kAlways);
    EXPECT_EQ(cell.init.kind, Initializer::Kind::kConstant);
    EXPECT_EQ(cell.init.a, 0);
    EXPECT_FALSE(cell.trainable);
  }
  EXPECT_EQ(Text("@loss_scaling"), "f32[]");
  EXPECT_EQ(Text("@good_steps"), "i32[]");
  EXPECT_EQ(Text("@bad_steps"), "i32[]");
  EXPECT_EQ(Text("@attempted"), "i64[]");
  EXPECT_EQ(Text("@applied"), "i64[]");
  // Another entry shares the cell.
  Block& eval = program_.AddEntry("eval").block();
  const ValueId there = *WellKnownValue(&eval, kApplied);
  EXPECT_EQ(eval.value(there).cell(), program_.FindCell(kApplied));
  EXPECT_EQ(program_.num_cells(), 5);
}

TEST_F(WellKnownTest, NamesTakenByAModelAreErrors) {
  Feed("@seed", DType::kF32, {});
  Feed("@applied", DType::kI64, {});
  Cell cell;
  cell.name = "@attempted";
  cell.type = MakeType(DType::kF32, {});
  program_.AddCell(cell);
  EXPECT_THAT(Message(WellKnownValue(&block_, kSeed).status()),
              HasSubstr("@seed: the name is Halftone's own: expected i64[], "
                        "found f32[]"));
  EXPECT_FALSE(WellKnownValue(&block_, kApplied).ok());
  EXPECT_FALSE(WellKnownValue(&block_, kAttempted).ok());
  EXPECT_EQ(ExitCodeOf(WellKnownValue(&block_, "@speed").status()),
            ExitCode::kCompilerBug);
}

}  // namespace
}  // namespace halftone
