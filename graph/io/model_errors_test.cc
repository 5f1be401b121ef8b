// What of a model is refused by a rule for many, and errors told together.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFeed[] = "feed { name: \"x\" dims: [-1, 4] }\n";
constexpr char kOutput[] = "output: \"y\"\n";

std::string ErrorOf(const std::string& text) {
  const auto file = ParseModel(text, "m.pbtxt");
  const absl::Status status =
      file.ok() ? BuildProgram(*file).status() : file.status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kModel) << text;
  return std::string(status.message());
}

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(ErrorOf(text), '\n');
}

TEST(ModelErrorsTest, OpsThatPassesMakeAreRefusedByName) {
  int internal = 0;
  for (const OpSchema* schema : Ops().All()) {
    if (!schema->internal()) continue;
    ++internal;
    const std::string error = ErrorOf(absl::StrCat(
        kFeed, "op { type: \"", schema->name(),
        "\" in { slot: \"X\" var: \"x\" } out { slot: \"Out\" var: \"y\" } }\n",
        kOutput));
    EXPECT_THAT(error, HasSubstr(absl::StrCat(
                           "m.pbtxt:2: y (", schema->name(),
                           "): expected an op of a forward program, found ",
                           schema->name())));
  }
  EXPECT_GT(internal, 30);
  // None is proposed in place of another word.
  EXPECT_THAT(ErrorOf(absl::StrCat(kFeed,
                                   "op { type: \"all_reducee\" out { slot: "
                                   "\"Out\" var: \"y\" } }\n",
                                   kOutput)),
              testing::Not(HasSubstr("nearest: all_reduce")));
}

TEST(ModelErrorsTest, NamesThatBeginWithAnAtSignAreOurs) {
  const std::string op =
      "op { type: \"relu\" NAME in { slot: \"X\" var: \"x\" } out { slot: "
      "\"Out\" var: \"OUT\" } }\n";
  const auto with = [&](const std::string& name, const std::string& out) {
    std::string text = op;
    text.replace(text.find("NAME"), 4, name);
    text.replace(text.find("OUT"), 3, out);
    return ErrorOf(absl::StrCat(kFeed, text, kOutput));
  };
  for (const std::string& error :
       {with("name: \"@totals\"", "y"), with("", "@found_inf"),
        ErrorOf("feed { name: \"@stop\" dims: [-1] }\n"),
        ErrorOf("param { name: \"@loss_scaling\" dims: [1] }\n"),
        ErrorOf("stat { name: \"@applied\" dims: [1] }\n")}) {
    EXPECT_THAT(error, HasSubstr("names that begin with @ are Halftone's own"));
    EXPECT_THAT(error, HasSubstr("m.pbtxt:"));
  }
}

TEST(ModelErrorsTest, IndependentOnesComeTogether) {
  EXPECT_THAT(
      LinesOf(R"(feed { name: "x" dims: [4, -1] }
feed { name: "z" dims: [-1, 4] }
param { name: "w" dims: [4, 3] init { constant: 0 } }
op { type: "rellu" in { slot: "X" var: "z" } out { slot: "Out" var: "a" } }
op { type: "matmul" in { slot: "X" var: "z" } in { slot: "Y" var: "v" } out { slot: "Out" var: "b" } }
op { type: "relu" in { slot: "X" var: "a" } out { slot: "Out" var: "after_a" } }
op { type: "tanh" in { slot: "X" var: "x" } out { slot: "Out" var: "after_x" } }
op { type: "scale" in { slot: "X" var: "z" } out { slot: "Out" var: "c" } attr { name: "sacle" f: 2 } }
op { type: "matmul" in { slot: "X" var: "z" } in { slot: "Y" var: "w" } out { slot: "Out" var: "d" } }
op { type: "matmul" in { slot: "X" var: "d" } in { slot: "Y" var: "w" } out { slot: "Out" var: "e" } }
op { type: "mean" in { slot: "X" var: "e" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "e" }
metric { name: "m" var: "d" over: "d" }
output: "nothing"
output: "after_a"
)"),
      ElementsAre(
          HasSubstr("m.pbtxt:1: feed x: dims: expected 1 or more"),
          HasSubstr("m.pbtxt:4: a (rellu): unknown op rellu"),
          HasSubstr("m.pbtxt:5: b (matmul): slot Y: nothing defines"),
          HasSubstr("m.pbtxt:8: c (scale): no attribute sacle; nearest: "
                    "scale; expected one of scale bias"),
          HasSubstr("m.pbtxt:10: e (matmul): "),
          HasSubstr("m.pbtxt:13: metric m: expected one element"),
          HasSubstr("m.pbtxt:14: output: no value is called")));
}

TEST(ModelErrorsTest, UnknownFieldsComeTogether) {
  EXPECT_THAT(LinesOf("feed { nam: \"x\" dims: [-1] }\nop { typ: \"relu\" in { "
                      "slot: \"X\" var: \"x\" } }\nfoo { bar: 1 }\n"),
              ElementsAre(HasSubstr("m.pbtxt:1:8: unknown field \"nam\""),
                          HasSubstr("m.pbtxt:2:6: unknown field \"typ\""),
                          HasSubstr("m.pbtxt:3:1: unknown field \"foo\"")));
  // The parser has another word for those in brackets.
  EXPECT_THAT(
      LinesOf("feed { name: \"x\" [a.dims]: 3 dims: [-1] }\n[op] { }\n"),
      ElementsAre(HasSubstr("m.pbtxt:1:19: unknown field \"[a.dims]\" in "
                            "Feed; nearest: dims"),
                  HasSubstr("m.pbtxt:2:2: unknown field \"[op]\" in Model")));
  // What an unknown field holds is skipped, but not without a limit.
  std::string deep = "feed { name: \"x\" }\nfoo ";
  for (int i = 0; i < 100000; ++i) deep += "{ about_nothing ";
  EXPECT_THAT(ErrorOf(deep), HasSubstr("unknown field \"foo\""));
}

}  // namespace
}  // namespace halftone
