// Files of records that say nothing, next to real ones.
#include "graph/io/record_limits.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "gtest/gtest.h"
#include "proto/program.pb.h"

namespace halftone {
namespace {

using testing::HasSubstr;

std::string Repeat(const std::string& part, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += part;
  return all;
}

std::string Field(int number, const std::string& content) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t length = content.size();
  for (; length >= 128; length >>= 7) {
    field += static_cast<char>(length | 128);
  }
  return field + static_cast<char>(length) + content;
}

void ExpectTooMany(const std::string& content) {
  const auto model = ParseModel(content, "m");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("m: expected at most one record for 5 bytes"));
}

TEST(RecordLimits, RecordsThatSayNothing) {
  ExpectTooMany(Repeat(Field(6, ""), 5000));            // op {}
  ExpectTooMany(Field(6, Repeat(Field(5, ""), 5000)));  // op { attr {} ..
  ExpectTooMany(Repeat(Field(6, Field(3, "")), 5000));  // op { in {} } ..
  // An unknown group that holds groups without end.
  EXPECT_FALSE(CheckBinaryRecords(Repeat("\x7b", 50000), "m",
                                  *proto::Model::descriptor())
                   .ok());
  ExpectTooMany(Repeat("op{}", 8000));
  ExpectTooMany("op{" + Repeat("in<>", 8000) + "}");
}

TEST(RecordLimits, SmallAndRealFilesPass) {
  EXPECT_TRUE(ParseModel(Repeat("op{}", 100), "m").ok());
  EXPECT_TRUE(ParseModel(Repeat(Field(6, ""), 100), "m").ok());
  // Braces in quotes and comments are none.
  const TextShape shape =
      ShapeOfText("\"\\\"" + Repeat("{", 5000) + "\"#" + Repeat("{", 5000) +
                  "\na { b: [ 1, '<' ] c < > }");
  EXPECT_EQ(shape.records, 2);
  EXPECT_EQ(shape.depth, 2);
  // The shortest names there are.
  proto::Model model;
  for (int i = 0; i < 5000; ++i) {
    proto::OpNode& op = *model.add_op();
    op.set_type("relu");
    op.add_in()->set_slot("X");
    op.mutable_in(0)->add_var("x");
    op.add_out()->set_slot("O");
    op.mutable_out(0)->add_var("y");
  }
  EXPECT_TRUE(CheckBinaryRecords(model.SerializeAsString(), "m",
                                 *proto::Model::descriptor())
                  .ok());
}

}  // namespace
}  // namespace halftone
