#include "graph/import/paddle_params.h"

#include <cstring>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string Bytes(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(&bytes[0], &number, sizeof(T));
  return bytes;
}

std::string Tensor(paddle::VarType::Type type, const std::vector<int64_t>& dims,
                   const std::string& data) {
  paddle::VarType::TensorDesc desc;
  desc.set_data_type(type);
  for (const int64_t dim : dims) desc.add_dims(dim);
  const std::string head = desc.SerializeAsString();
  return Bytes<uint32_t>(0) + Bytes<uint64_t>(0) + Bytes<uint32_t>(0) +
         Bytes<int32_t>(static_cast<int32_t>(head.size())) + head + data;
}

// b is a [2], a is a []; what only looks like a parameter is not kept.
paddle::ProgramDesc Program() {
  paddle::ProgramDesc program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(blocks {
        vars { name: "b" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: FP32 dims: 2 } } } }
        vars { name: "a" persistable: true type { type: LOD_TENSOR lod_tensor { tensor { data_type: INT64 } } } }
        vars { name: "c" type { type: LOD_TENSOR } }
        vars { name: "feed" persistable: true type { type: FEED_MINIBATCH } }
      })",
      &program));
  return program;
}

std::string Good() {
  return Tensor(paddle::VarType::INT64, {}, Bytes<int64_t>(7)) +
         Tensor(paddle::VarType::FP32, {2},
                Bytes<float>(1.5f) + Bytes<float>(-2));
}

std::string Error(const std::string& content) {
  const auto parsed = ParsePaddleParams(content, "x.pdiparams", Program());
  EXPECT_FALSE(parsed.ok());
  EXPECT_EQ(ExitCodeOf(parsed.status()), ExitCode::kModel);
  return std::string(parsed.status().message());
}

TEST(PaddleParamsTest, ByName) {
  const std::string content = Good();
  const auto tensors = ParsePaddleParams(content, "x.pdiparams", Program());
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].dtype, DType::kI64);
  EXPECT_EQ((*tensors)[0].bytes, Bytes<int64_t>(7));
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_THAT((*tensors)[1].dims, ElementsAre(2));
}

TEST(PaddleParamsTest, WrongFiles) {
  const std::string good = Good();
  EXPECT_THAT(Error(""), HasSubstr("expected 2 tensors, those that the "
                                   "program keeps, found 0"));
  EXPECT_THAT(Error(good.substr(0, good.size() - 1)),
              HasSubstr("tensor 1 (b): the file ends in it"));
  EXPECT_THAT(Error(good + "x"), HasSubstr("found 1 bytes more"));
  EXPECT_THAT(Error("\x80\x04."), HasSubstr("Python pickle"));
  EXPECT_THAT(Error(Tensor(paddle::VarType::INT64, {3}, std::string(24, 0))),
              HasSubstr("tensor 0 (a): expected [], found [3]; is it"));
  EXPECT_THAT(Error(Tensor(paddle::VarType::INT8, {}, "x")),
              HasSubstr("its dtype is INT8"));
}

TEST(PaddleParamsTest, HostileSizes) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{kHuge, kHuge}, {-1}, {int64_t{1} << 61, 2}}) {
    EXPECT_THAT(Error(Tensor(paddle::VarType::FP32, dims, "")),
                HasSubstr("its dims are ["));
  }
  EXPECT_THAT(Error(Bytes<uint32_t>(0) + Bytes<uint64_t>(~uint64_t{0})),
              HasSubstr("the file ends in it"));
  EXPECT_THAT(Error(Bytes<uint32_t>(0) + Bytes<uint64_t>(0) +
                    Bytes<uint32_t>(0) + Bytes<int32_t>(-1)),
              HasSubstr("expected version 0"));
  EXPECT_THAT(Error(Bytes<uint32_t>(3) + Bytes<uint64_t>(0)),
              HasSubstr("expected version 0, found 3"));
}

}  // namespace
}  // namespace halftone
