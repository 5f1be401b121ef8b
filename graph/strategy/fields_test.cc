#include "graph/strategy/fields.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FileDescriptorProto;
using ::google::protobuf::TextFormat;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = StrategyField::Kind;

// A message of the given fields, as no file declares it; `parts`: others that
// they are of.
class Declared {
 public:
  explicit Declared(const std::string& fields, const std::string& parts = "") {
    FileDescriptorProto file;
    const bool parsed = TextFormat::ParseFromString(
        absl::StrCat("name: 'new.proto' syntax: 'proto2' "
                     "message_type { name: 'M' ",
                     fields, " } ", parts),
        &file);
    EXPECT_TRUE(parsed);
    const auto* built = pool_.BuildFile(file);
    EXPECT_NE(built, nullptr);
    message_ = built->FindMessageTypeByName("M");
  }
  const Descriptor& message() const { return *message_; }
  std::string Error() const {
    return std::string(ReadFields(*message_).status().message());
  }

 private:
  DescriptorPool pool_;
  const Descriptor* message_ = nullptr;
};

// A field of type double or int64 or ... with facts and further options.
std::string Field(const std::string& type, const std::string& facts,
                  const std::string& more = "", int number = 1) {
  return absl::StrCat("field { name: 'f", number, "' number: ", number,
                      " label: LABEL_OPTIONAL type: TYPE_", type, " ", more,
                      " options { [halftone.proto.field] { ", facts, " } } }");
}

TEST(ReadFieldsTest, TakesAFieldThatSaysAll) {
  const Declared one(Field("DOUBLE",
                           "doc: 'A new one.' range: '[0, 1)' "
                           "bundle { name: 'level O3' value: '0.5' } "
                           "flag { name: '--new' }",
                           "default_value: '0.25'"));
  const auto fields = ReadFields(one.message());
  ASSERT_TRUE(fields.ok()) << fields.status();
  ASSERT_EQ(fields->size(), 1u);
  const StrategyField& field = fields->front();
  EXPECT_EQ(field.path, "f1");
  EXPECT_EQ(TakesText(*field.descriptor), "a number from 0 to below 1");
  EXPECT_EQ(Refusal(*field.descriptor, "0.5"), "");
  EXPECT_EQ(Refusal(*field.descriptor, "1"),
            "expected a number from 0 to below 1, found 1");
  EXPECT_EQ(DefaultOf(*field.descriptor, {})->value, "0.25");
  EXPECT_EQ(DefaultOf(*field.descriptor, {"level O3"})->value, "0.5");
  EXPECT_EQ(DefaultOf(*field.descriptor, {"level O3"})->origin, "level O3");
}

TEST(ReadFieldsTest, RefusesAFieldThatLeavesSomethingOpen) {
  struct Case {
    const char* type;
    const char* facts;
    const char* more;
    const char* says;
  };
  for (const Case& c : {
           Case{"DOUBLE", "range: '[0, 1]'", "default_value: '0'",
                "new.proto: f1: has no doc"},
           Case{"DOUBLE", "doc: 'D.'", "default_value: '0'", "has no range"},
           Case{"INT64", "doc: 'D.' range: '0..1'", "default_value: '0'",
                "has no range: expected one as \"[0, inf)\", found \"0..1\""},
           Case{"STRING", "doc: 'D.'", "default_value: 'x'",
                "has neither words nor what it takes"},
           Case{"DOUBLE", "doc: 'D.' range: '[0, 1]'", "",
                "has no default, and says not what holds without"},
           Case{"BOOL", "doc: 'D.'", "", "has no default"},
           Case{"INT32", "doc: 'D.' range: '[0, 1]'", "default_value: '0'",
                "is of no type of strategies"},
           Case{"DOUBLE", "doc: 'D.' range: '(0, 1]'", "default_value: '0'",
                "its default: expected a number above 0"},
           Case{"STRING", "doc: 'D.' word: ['a', 'b']", "default_value: 'c'",
                "its default: expected a or b, found \"c\""},
           Case{"BOOL", "doc: 'D.' bundle { name: 'level O1' value: '1' }", "",
                "its default: expected true or false"},
           Case{"DOUBLE", "doc: 'D.' range: '(0, 8]' takes: 'above 0'",
                "default_value: '1'",
                "takes \"above 0\", which leaves out 8, an end of its range"},
           Case{"BOOL", "doc: 'D.' agrees_on_all_ranks: false",
                "default_value: 'true'", "is part of the program"},
           Case{"BOOL", "doc: 'D.' flag { name: '--f' word: 'w' value: 'no' }",
                "default_value: 'true'", "its flag: expected true or false"},
       }) {
    const Declared field(Field(c.type, c.facts, c.more));
    EXPECT_THAT(field.Error(), HasSubstr(c.says)) << c.facts;
  }
}

TEST(ReadFieldsTest, TellsAllThatIsOpenAtOnce) {
  const std::string sound = "doc: 'D.' range: '[0, 1]' flag { name: '--one' }";
  const Declared two(Field("DOUBLE", sound, "default_value: '0'") +
                     Field("DOUBLE", sound, "default_value: '0'", 2) +
                     Field("BOOL", "", "", 3));
  EXPECT_THAT(
      two.Error(),
      AllOf(HasSubstr("f2: another field has the flag --one"),
            HasSubstr("f3: has no doc"), HasSubstr("f3: has no default")));
}

// What a part says of its fields holds for them, unless they say otherwise.
TEST(ReadFieldsTest, PartsSpeakForTheirFields) {
  const std::string part =
      "field { name: 'part' number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE "
      "type_name: '.P' options { [halftone.proto.field] { doc: 'P.' "
      "leaves_graph_alone: true } } }";
  const Declared both(
      part, absl::StrCat("message_type { name: 'P' ",
                         Field("BOOL", "doc: 'D.'", "default_value: 'true'"),
                         Field("BOOL", "doc: 'D.' agrees_on_all_ranks: false",
                               "default_value: 'true'", 2),
                         " }"));
  const auto fields = ReadFields(both.message());
  ASSERT_TRUE(fields.ok()) << fields.status();
  ASSERT_EQ(fields->size(), 3u);
  EXPECT_EQ((*fields)[0].kind, Kind::kPart);
  EXPECT_EQ((*fields)[1].path, "part.f1");
  EXPECT_TRUE((*fields)[1].agrees_on_all_ranks);
  EXPECT_TRUE((*fields)[2].leaves_graph_alone);
  EXPECT_FALSE((*fields)[2].agrees_on_all_ranks);
}

TEST(StrategyFieldsTest, AreListedWithTheirParts) {
  EXPECT_EQ(FindStrategyField("amp")->kind, Kind::kPart);
  EXPECT_EQ(FindStrategyField("amp.loss_scaling.decr_ratio")->kind,
            Kind::kField);
  EXPECT_EQ(FindStrategyField("optimizer.group")->kind, Kind::kField);
  EXPECT_EQ(FindStrategyField("optimizer.group.match")->kind, Kind::kMember);
  EXPECT_EQ(FindStrategyField("amp.levl"), nullptr);
  EXPECT_EQ(TakesText(*FindStrategyField("amp.level")->descriptor),
            "O0, O1, O2 or O3");
}

TEST(StrategyFieldsTest, OpListsSayAllToo) {
  EXPECT_TRUE(ReadFields(*proto::OpListsFile::descriptor()).ok());
}

// "level O3": a field of amp and one of its words; one of another name would
// never be in force.
TEST(StrategyFieldsTest, BundlesAreWordsOfAmp) {
  for (const StrategyField& field : StrategyFields()) {
    std::set<std::string> names;
    for (const proto::BundleDefault& bundle : field.facts->bundle()) {
      for (const std::string& name : bundle.name()) {
        const std::pair<std::string, std::string> parts =
            absl::StrSplit(name, absl::MaxSplits(' ', 1));
        const StrategyField* by = FindStrategyField("amp." + parts.first);
        ASSERT_NE(by, nullptr) << field.path << ": " << name;
        EXPECT_THAT(by->facts->word(), ::testing::Contains(parts.second))
            << field.path;
        EXPECT_TRUE(names.insert(name).second) << field.path << ": " << name;
        EXPECT_TRUE(IsDerivedOrigin(name)) << name;
      }
    }
  }
}

// The word of a flag is one that the field whose flag it is does not take.
TEST(StrategyFieldsTest, WordsOfFlagsBelongToAFlag) {
  for (const StrategyField& field : StrategyFields()) {
    const proto::Flag& flag = field.facts->flag();
    if (!flag.has_word()) continue;
    int owners = 0;
    for (const StrategyField& other : StrategyFields()) {
      const proto::Flag& own = other.facts->flag();
      if (own.name() != flag.name() || own.has_word()) continue;
      ++owners;
      EXPECT_NE(Refusal(*other.descriptor, flag.word()), "") << field.path;
    }
    EXPECT_EQ(owners, 1) << field.path;
  }
}

// What is refused is not what the refusal says is taken: both ends are named.
TEST(RefusalTest, NamesTheEndsOfTheRange) {
  EXPECT_EQ(
      Refusal(*FindStrategyField("dist.first_bucket_size_in_MB")->descriptor,
              "1e+13"),
      "expected a number above 0 and at most 8e+12, found 1e+13");
  EXPECT_EQ(Refusal(*FindStrategyField("dist.fuse_grad_size_in_MB")->descriptor,
                    "1e+13"),
            "expected a number above 0 and at most 8e+12 (fuse_all_reduce_ops: "
            "false switches fusing off), found 1e+13");
  EXPECT_EQ(
      Refusal(
          *FindStrategyField("amp.loss_scaling.init_loss_scaling")->descriptor,
          "1e-38"),
      "expected a number from 1.17549435e-38 to 3.40282347e+38, found "
      "1e-38");
}

// Wherever the range leaves an end out, f32 does not bring it back.
TEST(RefusalTest, RefusesWhatF32RoundsToAnEndLeftOut) {
  for (const char* path :
       {"optimizer.adam.beta1", "optimizer.adamw.beta2",
        "optimizer.momentum.momentum", "optimizer.lars.momentum",
        "optimizer.rmsprop.alpha", "optimizer.adadelta.rho",
        "optimizer.ema.decay", "optimizer.group.beta1"}) {
    const auto& field = *FindStrategyField(path)->descriptor;
    EXPECT_EQ(Refusal(field, "0.99999999"),
              "expected what is not 1 in f32, found 0.99999999")
        << path;
    EXPECT_EQ(Refusal(field, "0.9999999"), "") << path;
  }
  EXPECT_EQ(Refusal(*FindStrategyField("optimizer.adam.epsilon")->descriptor,
                    "1e-60"),
            "expected what is not 0 in f32, found 1e-60");
  EXPECT_EQ(
      Refusal(*FindStrategyField("optimizer.sgd.weight_decay")->descriptor,
              "1e-60"),
      "");
}

TEST(ValueTextTest, IsAsSetTakesIt) {
  proto::Strategy strategy;
  strategy.mutable_amp()->mutable_loss_scaling()->set_decr_ratio(0.8);
  strategy.mutable_train()->set_seed(7);
  EXPECT_EQ(ValueAt(strategy, "amp.loss_scaling.decr_ratio"), "0.8");
  EXPECT_EQ(ValueAt(strategy, "train.seed"), "7");
  EXPECT_EQ(ValueAt(strategy, "train.epochs"), "1");
  EXPECT_EQ(ValueAt(strategy, "train.batch_size"), "");
  EXPECT_EQ(ValueAt(strategy, "dist.fuse_all_reduce_ops"), "true");
  EXPECT_EQ(ValueAt(strategy, "dist.gradient_scale"), "pre");
  EXPECT_EQ(ValueAt(strategy, "dist.nothing"), "");
}

TEST(DerivedOriginTest, IsWhatIsFoundAgain) {
  for (const char* origin : {"default", "level O1", "scaler apex"}) {
    EXPECT_TRUE(IsDerivedOrigin(origin)) << origin;
  }
  for (const char* origin : {"--level", "s.pbtxt:3", "", "levels.pbtxt:1"}) {
    EXPECT_FALSE(IsDerivedOrigin(origin)) << origin;
  }
}

}  // namespace
}  // namespace halftone
