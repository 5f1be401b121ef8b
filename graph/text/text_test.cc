#include "graph/text/text.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr char kProgram[] = R"(program "mlp" dim B, T
loss loss over ce mask "odd name"
metric top1 = correct over label
metric top5 = correct
output logits
output "tab\x09, quote\" and backslash\\"
constant c : f32[2,2] = [1, -0.1, 1e-45, inf]
constant empty : i64[0] = []
cell w0 : f32[784,256] parameter trainable applied init=uniform(-0.1, 0.1) line=4
cell layer4/0/conv.w : f32[8,1,3,3] @channels_last parameter applied init=kaiming_uniform(2.236068)
cell w0.velocity : f32[784,256] slot(w0) applied sharded init=constant(0)
cell w0.cast_fp16 : f16[784,256] derived(w0) applied
cell @attempted : i64[] clock always init=constant(0)
cell noise : f32[4] statistic applied per_rank init=truncated_normal(0, 0.02)
entry train {
  feed x : f32[B,784]
  feed "a, b" : u8[B*T*2,3]
  feed feed : f32[B*B]
  feed commit : f32[B]
  x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,784]) {to=f16}   forward f16 WHITE_LIST <- fc0, "fc 1" line=7
  fc0: matmul(X=x.cast_fp16, Y=w0.cast_fp16) -> (Out=h : f16[B,256]) {trans_y=false}   forward f16 WHITE_LIST origins=[a, b]
  commit: relu(X=commit) -> (Out=result : f32[B])   backward line=3
  feed: sum(X=[feed, feed]) -> (Out=many : f32[B*B])   loss-scale
  gone: all_reduce(X=[h]) -> (Out=[h2 : f16[B,256]]) {of="gradient"}   communicate f16 SCHEMA
  pool: pool2d(X=layer4/0/conv.w) -> (Out=p : f32[8,1,1,1]) {pooling_type="avg \"quoted\"", ksize=[3, 3], exclusive=false}   optimize f32
  norm: image_normalize(X="a, b") -> (Out=i : f32[B*T*2,3]) {mean=[0.1, 1e+30], std=[3]}   forward
  f: fusion(X=[x, h]) -> (Out=[g : f32[B,784]]) {pattern="none"}   forward f32 LEVEL body {
    feed a : f32[B,784]
    feed body : f16[B,256]
    r: relu(X=a) -> (Out=r : f32[B,784])   forward
    return r
  }
  gradient w0 = h
  gradient layer4/0/conv.w = "a, b"
  commit w0 <- w0
  commit w0.velocity <- c
  result @loss_sum = h
  result "r 1" = result
}
entry "eval 2" {
}
)";

std::string RoundTrip(absl::string_view text) {
  auto program = Parse(text, "t.ht");
  return program.ok() ? Print(**program)
                      : std::string(program.status().message());
}

TEST(TextTest, PrintsWhatItParsed) { EXPECT_EQ(RoundTrip(kProgram), kProgram); }

TEST(TextTest, AClonePrintsTheSame) {
  const auto program = Parse(kProgram, "t.ht");
  ASSERT_TRUE(program.ok()) << program.status();
  const auto clone = Clone(**program);
  EXPECT_EQ(Print(*clone), kProgram);
  EXPECT_EQ(clone->file, "t.ht");
  EXPECT_EQ(Fingerprint(*clone), Fingerprint(**program));
}

TEST(TextTest, TheFingerprintSeesEveryPart) {
  const auto program = Parse(kProgram, "t.ht");
  ASSERT_TRUE(program.ok());
  const uint64_t before = Fingerprint(**program);
  (*program)->file = "other.ht";
  EXPECT_EQ(Fingerprint(**program), before);
  Block& block = (*program)->entries()[0]->block();
  block.mutable_op(block.FindOp("fc0")).line = 99;
  EXPECT_NE(Fingerprint(**program), before);
}

TEST(TextTest, PrintsEntriesAndOpsAlone) {
  const auto program = Parse(kProgram, "t.ht");
  ASSERT_TRUE(program.ok());
  const Entry& train = *(*program)->entries()[0];
  EXPECT_EQ(PrintEntry(*(*program)->entries()[1]), "entry \"eval 2\" {\n}\n");
  const Block& block = train.block();
  EXPECT_EQ(PrintOp(block, block.op(block.FindOp("fc0"))),
            "fc0: matmul(X=x.cast_fp16, Y=w0.cast_fp16) -> (Out=h : "
            "f16[B,256]) {trans_y=false}   forward f16 WHITE_LIST "
            "origins=[a, b]");
}

TEST(TextTest, WhatMayBeLeftOut) {
  EXPECT_EQ(RoundTrip("# a comment\n\nprogram p\nentry train {\n"
                      "  feed x : f32[2]  # another\n"
                      "  y: relu(\n    X=x) -> (Out=y : f32[2])\n}"),
            "program \"p\"\nentry train {\n  feed x : f32[2]\n"
            "  y: relu(X=x) -> (Out=y : f32[2])   forward\n}\n");
}

TEST(TextTest, EveryDoubleRoundTrips) {
  for (double value : {0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0 / 3,
                       std::numeric_limits<double>::infinity()}) {
    Program program;
    Constant constant;
    constant.name = "c";
    constant.type.dtype = DType::kF64;
    constant.values = {value};
    program.AddConstant(constant);
    const auto parsed = Parse(Print(program), "t");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ((*parsed)->constant(ConstantId(0)).values[0], value);
  }
}

TEST(TextTest, AnyNameRoundTrips) {
  const std::vector<std::string> names = {"layer4/0/conv.w",
                                          "@seed",
                                          "x.cast_fp16",
                                          "with blank",
                                          "",
                                          "->",
                                          "a->b",
                                          "-",
                                          "x:0",
                                          "feed",
                                          "12",
                                          "\"",
                                          "\\",
                                          "\n",
                                          "\xc3\xa9",
                                          "#",
                                          std::string("\0\x01\x7f\xff", 4)};
  for (const std::string& name : names) {
    Program program;
    program.name = name;
    Entry& entry = program.AddEntry(name);
    TensorType type;
    type.dtype = DType::kF32;
    const ValueId x = entry.block().AddFeed(name, type);
    entry.results().push_back({name, x});
    const std::string text = Print(program);
    EXPECT_EQ(RoundTrip(text), text) << name;
  }
}

// Names are checked in order: text, then the place, then what was expected.
struct Refused {
  const char* text;
  const char* place;
  const char* message;
};

class RefusedTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, SaysWhereAndWhy) {
  const auto parsed = Parse(GetParam().text, "t.ht");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr(absl::StrCat("t.ht:", GetParam().place, ": ")));
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedTest,
    ::testing::Values(
        Refused{"", "1:1", "expected program, found the end of the file"},
        Refused{"program p dim B, B", "1:18", "expected a new dim's name"},
        Refused{"program p\nwat x", "2:1", "expected loss, metric"},
        Refused{"program p\ncell w : f33[2] parameter", "2:10",
                "expected a type such as f32[B,10], found \"f33\""},
        Refused{"program p\ncell w : f32[K] parameter", "2:14",
                "one of the program's dims"},
        Refused{"program p\ncell w : f32[2] paramter", "2:17",
                "nearest: parameter"},
        Refused{"program p\ncell w : f32[2] parameter init=unifrm(1)", "2:32",
                "nearest: uniform"},
        Refused{"program p\ncell w : f32[2] slot(v) applied", "2:22",
                "expected a cell"},
        Refused{"program p\ncell w : f32[] parameter\ncell w : f32[] clock",
                "3:6", "two cells are called w"},
        Refused{"program p\nconstant c : f32[2] = [1]", "2:10",
                "expected 2 values, found 1"},
        Refused{"program p\nentry e {", "2:10", "found the end of the file"},
        Refused{"program p\nentry e {\n", "3:1", "found the end of the file"},
        Refused{"program p\nentry e {\n}\nentry e {\n}", "4:7",
                "two entries are called e"},
        Refused{"program p\nentry e {\n y: rleu(X=x) -> (Out=y : f32[])\n}",
                "3:5", "expected an op; nearest: relu"},
        Refused{"program p\nentry e {\n y: relu(X=x) -> (Out=y : f32[])\n}",
                "3:12", "expected a feed, cell, constant or result"},
        Refused{"program p\nentry e {\n feed x : f32[]\n"
                " y: relu(Y=x) -> (Out=y : f32[])\n}",
                "4:10", "expected a slot; nearest: X, found \"Y\""},
        Refused{"program p\nentry e {\n feed x : f32[]\n"
                " y: relu(X=x) -> (Out=x : f32[])\n}",
                "4:23", "two definitions of x"},
        Refused{"program p\nentry e {\n feed x : f32[]\n"
                " y: scale(X=x) -> (Out=y : f32[]) {scael=2}\n}",
                "4:36", "nearest: scale"},
        Refused{"program p\nentry e {\n feed x : f32[]\n"
                " y: scale(X=x) -> (Out=y : f32[]) {scale=two}\n}",
                "4:42", "expected a number, found \"two\""},
        Refused{"program p\nentry e {\n feed x : f32[]\n"
                " y: relu(X=x) -> (Out=y : f32[]) forwards\n}",
                "4:34", "expected a role"},
        Refused{"program p\nentry e {\n commit w <- x\n}", "3:9",
                "expected a cell, found \"w\""},
        Refused{"program \"p", "1:9", "a string that its line does not end"},
        Refused{"program \"\\q\"", "1:9", "expected only the escapes"},
        Refused{"program p\n\x01", "2:1", "byte 0x01"},
        Refused{"program p\ncell w : f32[99999999999999999999] parameter",
                "2:14", "expected a number"}));

}  // namespace
}  // namespace halftone
