// docs/formats.md names the formats' versions, fields and limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

class FormatVersions : public testing::Test {
 protected:
  void SetUp() override {
    const auto page = ReadFile("docs/formats.md");
    ASSERT_TRUE(page.ok()) << page.status();
    page_ = *page;
  }
  std::string page_;
};

TEST_F(FormatVersions, FieldsOfACompiledModelAreNamed) {
  const auto& message = *proto::CompiledModel::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    EXPECT_THAT(page_, HasSubstr("`" + message.field(i)->name() + "`"));
  }
}

TEST_F(FormatVersions, VersionsAndLimits) {
  EXPECT_THAT(page_,
              HasSubstr(absl::StrCat("`format` is ", kModelFormat, ".")));
  EXPECT_THAT(page_,
              HasSubstr(absl::StrCat("`proto/compiled_model.proto`, format ",
                                     kCompiledModelFormat, ";")));
  EXPECT_THAT(page_,
              HasSubstr(absl::StrCat("most ", kMaxModelBytes >> 20, " MiB")));
  EXPECT_THAT(page_, HasSubstr(kCompiledModelMagic));
}

}  // namespace
}  // namespace halftone
