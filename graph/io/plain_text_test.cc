#include "graph/io/plain_text.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "proto/program.pb.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace {

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, google::protobuf::io::ColumnNumber,
                const std::string&) override {}
};

// Whether it is plain; if so, protobuf's parser must read the same.
template <typename Message>
bool PlainAndSame(const std::string& text) {
  const auto binary = BinaryOfPlainText(text, *Message::descriptor());
  if (!binary.has_value()) return false;
  Silent errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  Message expected, read;
  EXPECT_TRUE(parser.ParseFromString(text, &expected)) << text;
  EXPECT_TRUE(read.ParseFromString(*binary)) << text;
  // Bytes, so that floats are equal bit for bit.
  EXPECT_EQ(read.SerializeAsString(), expected.SerializeAsString()) << text;
  return true;
}

constexpr char kModel[] = R"(name: "net"  format: 1  # a comment { "
feed { name: "x" dtype: F32 dims: [-1, 8] }, feed: { name: 'y' dtype: I64
  dims: -1 };
param {
  name: "w" dims: [8, 8] init { uniform { low: -0.5 high: 1e-3 } }
  trainable: false }
param { name: "b" dims: [] init { constant: -0 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
     out { slot: "Out" var: ["a", 'b{"#'] }
     attr { name: "axes" ints: [1, -2] ints: 3 floats: [0.1, 5, 2E+9] } }
output: "a")";

TEST(PlainText, IsReadAsProtobufReadsIt) {
  EXPECT_TRUE(PlainAndSame<proto::Model>(kModel));
  EXPECT_TRUE(PlainAndSame<proto::Model>(""));
  EXPECT_TRUE(PlainAndSame<proto::Model>("# nothing"));
  for (const char* number : {"0", "-0", "0.5", "1e-320", "123456789012345",
                             "3.", "1.5e300", "-7E5"}) {
    EXPECT_TRUE(PlainAndSame<proto::Uniform>(absl::StrCat("low: ", number)))
        << number;
  }
}

// What a large model is made of has to be plain: it is read so for its speed.
TEST(PlainText, ModelsAndStrategiesAre) {
  for (const char* name : {"mnist_convnet", "mlp", "small_resnet"}) {
    const auto text = ReadFile(absl::StrCat("models/", name, ".pbtxt"));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_TRUE(PlainAndSame<proto::Model>(*text)) << name;
  }
  const auto strategy = ReadFile("models/mnist_o1.pbtxt");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_TRUE(PlainAndSame<proto::Strategy>(*strategy));
}

TEST(PlainText, LeavesTheRestToProtobuf) {
  for (const char* text :
       {// Sound, but rare.
        "name: \"a\\n\"", "name: \"a\" \"b\"", "name: \"\xc3\xa4\"",
        "op < type: \"x\" >", "param { dims: 0x10 }", "param { dims: 010 }",
        "op: [{ type: \"x\" }]", "param { init { constant: inf } }",
        "param { init { constant: 1.5f } }", "param { trainable: t }",
        "feed { dtype: 1 }", "param { init { constant: 1234567890123456 } }",
        // Not sound.
        "nam: \"a\"", "name \"a\"", "name: a", "name: \"a", "name: \"a\nb\"",
        "format: 1.5", "format: 4294967296", "format: 1x", "format: 1\"a\"",
        "name: \"a\" name: \"b\"", "name: [\"a\"]", "feed { dtype: F33 }",
        "op { type: \"x\"", "op { type: \"x\" } }", "param { dims: [1, ] }",
        "param { dims: [1 2] }", "format: 1-", "param { dims: - 1 }", "op",
        "param { init { constant: 1 normal { } } }",
        "param { init { constant: 1e999 } }", "name: \"a\",, format: 1"}) {
    EXPECT_FALSE(PlainAndSame<proto::Model>(text)) << text;
  }
}

// Whatever is done to a text: either it is left to protobuf, or read the same.
TEST(PlainText, ChangedAtRandom) {
  const std::string pieces[] = {"{",  "}",  "[",   "]",    ":",   ",", ";",
                                "\"", "'",  "#",   "\n",   "-",   ".", "e",
                                "0",  "9",  " ",   "\\",   "<",   ">", "x",
                                "\t", "\r", "F16", "name", "true"};
  std::mt19937 random(1);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  int plain = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = kModel;
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      const size_t at = below(text.size()), length = below(4);
      text.replace(at, length, below(4) == 0 ? "" : pieces[below(26)]);
    }
    plain += PlainAndSame<proto::Model>(text) ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(plain, 1000);
}

}  // namespace
}  // namespace halftone
