#include "graph/io/compiled_model.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/packed_parts.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr char kProgram[] = R"(program "p" dim B
cell w : f32[4,3] parameter applied init=constant(0.5)
cell w.cast_fp16 : f16[4,3] derived(w) applied
entry eval {
  feed x : f16[B,4]
  y: matmul(X=x, Y=w.cast_fp16) -> (Out=y : f16[B,3])   forward f16 WHITE_LIST line=5
  result y = y
}
entry derive {
  w.low: cast(X=w) -> (Out=w.low : f16[4,3]) {to=f16}   forward f16 SCHEMA
  commit w.cast_fp16 <- w.low
}
)";

CompiledModel Example() {
  CompiledModel model;
  model.SetProgram(Parse(kProgram, "p.ht").value());
  ModelFile source;
  source.file = "models/p.pbtxt";
  source.model->add_feed()->set_name("x");
  source.model->add_param()->set_name("w");
  source.model->add_op()->set_type("matmul");
  source.feed_lines = {2};
  source.param_lines = {3};
  source.op_lines = {5};
  model.SetSource(std::move(source));
  model.strategy.mutable_amp()->set_level("O2");
  model.op_lists.add_white("conv2d");
  model.origins.emplace_back();
  model.origins.back().set_path("amp.level");
  model.origins.back().set_origin("--level");
  proto::OpRow row;
  row.set_name("y");
  OpRowWriter ops;
  ops.Add(row);
  model.ops = ops.Finish();
  proto::PassRow* pass = model.passes.Add();
  pass->set_name("insert-casts");
  pass->set_ms(1.5);
  model.target = "cpu";
  return model;
}

std::string Serialized(const CompiledModel& model) {
  const auto bytes = SerializeCompiledModel(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

std::string MessageOf(absl::string_view content, absl::string_view target) {
  const auto model = ParseCompiledModel(content, "m.htc", target);
  EXPECT_FALSE(model.ok());
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel);
  return std::string(model.status().message());
}

// The bytes of `model` after `edit` of the message, with a true checksum.
template <typename Edit>
std::string Edited(const Edit& edit) {
  proto::CompiledModel message;
  EXPECT_TRUE(message.ParseFromString(Serialized(Example())));
  EXPECT_TRUE(UnpackParts(&message).ok());
  message.clear_checksum();
  edit(message);
  std::string bytes = message.SerializeAsString();
  proto::CompiledModel tail;
  tail.set_checksum(StableHash(bytes));
  return bytes + tail.SerializeAsString();
}

TEST(CompiledModelTest, RoundTrip) {
  const CompiledModel model = Example();
  const std::string bytes = Serialized(model);
  const auto read = ParseCompiledModel(bytes, "m.htc", "cpu");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Print(*read->program), kProgram);
  EXPECT_EQ(read->program->file, "models/p.pbtxt");
  EXPECT_EQ(read->fingerprint, Hex64(Fingerprint(*model.program)));
  EXPECT_EQ(read->source.file, "models/p.pbtxt");
  const ModelFile source = read->WholeSource();
  EXPECT_EQ(source.model->op(0).type(), "matmul");
  EXPECT_EQ(source.model->SerializeAsString(),
            model.WholeSource().model->SerializeAsString());
  EXPECT_EQ(source.feed_lines, std::vector<int>({2}));
  EXPECT_EQ(source.param_lines, std::vector<int>({3}));
  EXPECT_EQ(source.op_lines, std::vector<int>({5}));
  EXPECT_EQ(read->strategy.amp().level(), "O2");
  EXPECT_EQ(read->op_lists.white(0), "conv2d");
  EXPECT_EQ(read->origins[0].origin(), "--level");
  EXPECT_EQ(read->ops.all()[0].name(), "y");
  EXPECT_EQ(read->target, "cpu");
  EXPECT_EQ(Serialized(*read), bytes);
}

TEST(CompiledModelTest, HeadsOfRows) {
  OpRowWriter writer;
  proto::OpRow row;
  for (int i = 0; i < 3000; ++i) {
    row.set_name(absl::StrCat("op", i));
    row.set_role(i % 2 == 0 ? "forward" : "backward");
    row.set_precision("f16");
    row.set_reason(i % 3 == 0 ? "" : "WHITE_LIST");
    row.set_line(i);
    row.add_because_of("another");
    row.clear_input();
    row.add_input()->add_value(absl::StrCat("value of ", i));
    writer.Add(row);
  }
  const OpRows rows = writer.Finish();
  // First as bytes, then as the messages that `all` made.
  for (int pass = 0; pass < 2; ++pass) {
    int i = 0;
    ForEachHead(rows, [&i](const OpHead& head) {
      EXPECT_EQ(head.name, absl::StrCat("op", i));
      EXPECT_EQ(head.role, i % 2 == 0 ? "forward" : "backward");
      EXPECT_EQ(head.precision, "f16");
      EXPECT_EQ(head.reason, i % 3 == 0 ? "" : "WHITE_LIST");
      ++i;
    });
    EXPECT_EQ(i, rows.all().size());
  }
}

// As version 2 wrote what would not have been smaller.
TEST(CompiledModelTest, TheVersionBefore) {
  const std::string bytes = Edited([](proto::CompiledModel& m) {
    m.set_format_version(2);
    m.mutable_report()->add_op()->set_name("y");
    m.clear_packed_ops();
  });
  const auto read = ParseCompiledModel(bytes, "m.htc", "cpu");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Print(*read->program), kProgram);
  EXPECT_EQ(read->ops.all()[0].name(), "y");
  EXPECT_EQ(read->source.op_lines, std::vector<int>({5}));
  EXPECT_EQ(Serialized(*read), Serialized(Example()));
  EXPECT_THAT(MessageOf(Edited([](proto::CompiledModel& m) {
                          m.set_format_version(1);
                        }),
                        "cpu"),
              HasSubstr("expected format version 3 or the one before, found 1; "
                        "compile it again"));
}

// A chain of ops, as large models are: few bytes for each.
TEST(CompiledModelTest, RecordsAreSmall) {
  constexpr int kOps = 5000;
  CompiledModel model = Example();
  std::string program =
      "program \"p\" dim B\nentry eval {\n  feed h0 : f32[B,4]\n";
  ModelFile source = model.WholeSource();
  OpRowWriter rows;
  for (int i = 0; i < kOps; ++i) {
    absl::StrAppend(&program, "  h", i + 1, ": relu(X=h", i, ") -> (Out=h",
                    i + 1, " : f32[B,4])   forward f32 LEVEL line=", i + 9,
                    "\n");
    proto::OpNode* op = source.model->add_op();
    op->set_type("relu");
    op->add_in()->add_var(absl::StrCat("h", i));
    op->add_out()->add_var(absl::StrCat("h", i + 1));
    proto::OpRow row;
    row.set_name(absl::StrCat("h", i + 1));
    rows.Add(row);
  }
  model.SetSource(std::move(source));
  model.ops = rows.Finish();
  model.SetProgram(Parse(program + "}\n", "p.ht").value());
  EXPECT_LT(Serialized(model).size(), 60 * kOps);
}

TEST(CompiledModelTest, APartCannotClaimMoreThanItHolds) {
  const auto edited = [](uint64_t bytes, size_t cut) {
    return Edited([&](proto::CompiledModel& m) {
      Packer packer;
      packer.Append(m.program());
      proto::Packed& packed = *m.mutable_packed_program();
      packed = packer.Finish();
      packed.set_bytes(bytes);
      packed.mutable_deflated()->resize(packed.deflated().size() - cut);
    });
  };
  EXPECT_THAT(MessageOf(edited(uint64_t{1} << 31, 0), "cpu"),
              HasSubstr("a part claims 2,147,483,648 bytes"));
  EXPECT_THAT(MessageOf(edited(1 << 20, 0), "cpu"),
              HasSubstr("a part claims 1,048,576 bytes, packed in "));
  EXPECT_THAT(MessageOf(edited(1000, 0), "cpu"),
              HasSubstr("a part cannot be unpacked"));
  EXPECT_THAT(MessageOf(edited(sizeof(kProgram) - 1, 3), "cpu"),
              HasSubstr("a part cannot be unpacked"));
}

// In pieces, each for itself; what packs too well is stored.
TEST(PackerTest, AnyBytesComeBack) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 300'000; ++i) {
    x = x * 1664525 + 1013904223;
    absl::StrAppend(&noise, x >> 8, ",");
  }
  const std::string equal(3'000'000, 'x');
  ASSERT_GT(noise.size(), 2 << 20);
  for (const std::string& bytes :
       {std::string(), std::string("a"), noise, equal, noise + equal + noise}) {
    Packer whole, parts;
    whole.Append(bytes);
    for (size_t at = 0; at < bytes.size(); at += 70'001) {
      parts.Append(absl::string_view(bytes).substr(at, 70'001));
    }
    proto::CompiledModel m;
    *m.mutable_packed_program() = whole.Finish();
    EXPECT_EQ(m.packed_program().SerializeAsString(),
              parts.Finish().SerializeAsString());
    ASSERT_TRUE(UnpackParts(&m).ok());
    EXPECT_EQ(m.program(), bytes);
  }
}

TEST(CompiledModelTest, TheSameCompileGivesTheSameBytes) {
  CompiledModel other = Example();
  other.passes.Mutable(0)->set_ms(99);
  EXPECT_EQ(Serialized(other), Serialized(Example()));
}

TEST(CompiledModelTest, EveryTruncationIsRefused) {
  const std::string bytes = Serialized(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(MessageOf(bytes.substr(0, size), "cpu"), "") << size;
  }
  EXPECT_THAT(MessageOf(bytes.substr(0, bytes.size() / 2), ""),
              HasSubstr("truncated or damaged"));
  EXPECT_THAT(MessageOf("name: \"x\"", ""),
              HasSubstr("expected a compiled model"));
}

TEST(CompiledModelTest, EveryFlippedBitIsRefused) {
  const std::string bytes = Serialized(Example());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    EXPECT_NE(MessageOf(damaged, "cpu"), "") << i;
  }
}

TEST(CompiledModelTest, ANewerVersion) {
  const std::string bytes = Edited([](proto::CompiledModel& m) {
    m.set_format_version(4);
    m.set_producer("halftone 9");
  });
  EXPECT_THAT(MessageOf(bytes, "cpu"),
              HasSubstr("written by a newer version (halftone 9)"));
  EXPECT_THAT(MessageOf(bytes, "cpu"),
              HasSubstr("halftone compile models/p.pbtxt"));
}

TEST(CompiledModelTest, AnUnknownFeature) {
  EXPECT_THAT(MessageOf(Edited([](proto::CompiledModel& m) {
                          m.add_required_features("sharding");
                        }),
                        ""),
              HasSubstr("it needs the feature \"sharding\""));
}

// Older readers, which would leave denominators and parts out, are to refuse
// them.
TEST(CompiledModelTest, WhatALossHasIsAFeature) {
  const std::string plain = Serialized(Example());
  CompiledModel with = Example();
  ModelFile source = with.WholeSource();
  source.model->mutable_loss()->add_denominator("n");
  source.model->mutable_loss()->add_part()->set_var("aux");
  with.SetSource(std::move(source));
  const auto features = [](const std::string& bytes) {
    proto::CompiledModel message;
    EXPECT_TRUE(message.ParseFromString(bytes));
    return std::vector<std::string>(message.required_features().begin(),
                                    message.required_features().end());
  };
  EXPECT_THAT(features(plain), testing::IsEmpty());
  EXPECT_THAT(features(Serialized(with)),
              testing::ElementsAre("loss_denominators", "loss_parts"));
  const auto read = ParseCompiledModel(Serialized(with), "m.htc", "cpu");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->source.model->loss().denominator(0), "n");
}

TEST(CompiledModelTest, AnotherVersionOfAnOp) {
  EXPECT_THAT(MessageOf(Edited([](proto::CompiledModel& m) {
                          m.mutable_op_version(0)->set_version(7);
                        }),
                        ""),
              HasSubstr("it uses version 7 of op cast"));
  EXPECT_THAT(MessageOf(Edited([](proto::CompiledModel& m) {
                          m.mutable_op_version(0)->set_op("warp");
                        }),
                        ""),
              HasSubstr("no such op"));
}

TEST(CompiledModelTest, AnotherTarget) {
  EXPECT_THAT(MessageOf(Serialized(Example()), "sm_90"),
              HasSubstr("compiled for sm_90, found one for cpu; compile it "
                        "again: halftone compile m.htc --target sm_90"));
}

TEST(CompiledModelTest, AProgramThatBreaksARule) {
  const auto with = [](absl::string_view from, absl::string_view to) {
    return Edited([&](proto::CompiledModel& m) {
      m.set_program(absl::StrReplaceAll(kProgram, {{from, to}}));
      m.set_fingerprint(Hex64(StableHash(m.program())));
    });
  };
  EXPECT_THAT(MessageOf(with("y : f16[B,3]", "y : f16[B,4]"), ""),
              HasSubstr("its program breaks a rule"));
  EXPECT_THAT(MessageOf(with("matmul", "matmull"), ""),
              HasSubstr("m.htc(program):6:6: expected an op"));
  EXPECT_THAT(MessageOf(with("[4,3]", "[4,5]"), ""),
              HasSubstr("its program breaks a rule"));
  EXPECT_THAT(MessageOf(Edited([](proto::CompiledModel& m) {
                          m.set_program(absl::StrCat(m.program(), "# more\n"));
                        }),
                        ""),
              HasSubstr("fingerprint or state signature"));
}

TEST(StateSignatureTest, IsOfNamesAndLogicalShapes) {
  const auto signature = [](absl::string_view cells) {
    return StateSignature(
        *Parse(absl::StrCat("program p\n", cells), "p").value());
  };
  const std::string base = signature(
      "cell a : f32[2,3] parameter\ncell b : f32[4] slot(a)\ncell c : f32[4] "
      "statistic\n");
  // Neither order nor level, layout or what is derived matters.
  EXPECT_EQ(base, signature("cell c : f32[4] statistic\ncell a : f16[2,3] "
                            "parameter trainable\ncell b : f32[4] slot(a)\n"
                            "cell d : f16[2,3] derived(a)\ncell s : f32[] "
                            "scaler\n"));
  EXPECT_NE(base, signature("cell a : f32[3,2] parameter\ncell b : f32[4] "
                            "slot(a)\ncell c : f32[4] statistic\n"));
  EXPECT_NE(base, signature("cell a : f32[2,3] parameter\n"));
}

}  // namespace
}  // namespace halftone
