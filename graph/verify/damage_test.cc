// What passes could do to a program that no text can: broken lists, names,
// definitions and uses.
#include <string>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "graph/verify/test_program.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"

namespace halftone {

class BlockDamage {
 public:
  static Value& ValueOf(Block& block, absl::string_view name) {
    return block.mutable_value(block.FindValue(name));
  }
};

namespace {

using ::testing::HasSubstr;

using Damage = void (*)(Program&, Entry&, Block&);
struct Broken {
  Damage damage;
  const char* says;
};

Op& OpOf(Block& block, absl::string_view name) {
  return block.mutable_op(block.FindOp(name));
}
Value& ValueOf(Block& block, absl::string_view name) {
  return BlockDamage::ValueOf(block, name);
}

class DamageTest : public ::testing::TestWithParam<Broken> {};

TEST_P(DamageTest, IsFound) {
  const auto program = Parse(kGoodProgram, "g.ht").value();
  Entry& train = *program->FindEntry(kTrainEntry);
  GetParam().damage(*program, train, train.block());
  VerifyOptions options;
  options.phase = Phase::kLowered;
  EXPECT_THAT(std::string(Verify(*program, options).message()),
              HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Lists, DamageTest,
    ::testing::Values(
        Broken{[](Program&, Entry&, Block& b) { OpOf(b, "ce").id = b.first(); },
               "the list of ops is broken here"},
        Broken{[](Program&, Entry&, Block& b) {
                 b.body_results().push_back(b.FindValue("ce"));
               },
               "expected body results in fusions alone"},
        Broken{[](Program&, Entry&, Block& b) {
                 b.body_results().push_back(ValueId(9999));
               },
               "a result is not a live value"},
        Broken{[](Program&, Entry&, Block& b) {
                 OpOf(b, "ce").name = OpOf(b, "loss").name;
               },
               "two ops are called loss"},
        Broken{[](Program&, Entry&, Block& b) {
                 ValueOf(b, "ce").name = ValueOf(b, "loss").name;
               },
               "two values are called loss"},
        Broken{[](Program&, Entry&, Block& b) {
                 b.RenameValue(b.FindValue("loss"), "@bad_steps.2");
                 b.RenameValue(b.FindValue("two"), "loss");
               },
               "value loss: expected the name of its constant, two"},
        Broken{[](Program& p, Entry& e, Block&) {
                 Cell cell;
                 cell.name = "logits";
                 cell.type.dtype = DType::kF32;
                 p.AddCell(cell);
                 e.results().clear();
               },
               "value logits: expected a name that no cell or constant has"}));

INSTANTIATE_TEST_SUITE_P(
    Values, DamageTest,
    ::testing::Values(
        Broken{[](Program& p, Entry&, Block& b) {
                 ValueOf(b, "ce").type = p.Intern(TensorType());
               },
               "value ce: it has no dtype"},
        Broken{[](Program& p, Entry&, Block& b) {
                 ValueOf(b, "w").type = p.Intern(TensorType{DType::kF32});
               },
               "value w: expected the type of its cell, f32[4,3], found f32[]"},
        Broken{[](Program&, Entry&, Block& b) { ValueOf(b, "w").index = 99; },
               "value w: its definition does not know it"},
        Broken{[](Program&, Entry&, Block& b) { ValueOf(b, "two").index = -2; },
               "value two: its definition does not know it"},
        Broken{[](Program&, Entry&, Block& b) {
                 ValueOf(b, "ce").index = OpOf(b, "loss").id.index();
               },
               "value ce: its definition does not know it"},
        Broken{[](Program&, Entry&, Block& b) {
                 ValueOf(b, "ce").uses.push_back({OpOf(b, "lr").id, 0});
               },
               "value ce: a use does not read it"},
        Broken{[](Program&, Entry&, Block& b) {
                 auto& uses = ValueOf(b, "ce").uses;
                 uses.push_back(Use(uses[0]));
               },
               "value ce: a use does not read it"},
        Broken{
            [](Program&, Entry&, Block& b) { ValueOf(b, "ce").uses.clear(); },
            "the uses of ce leave it out"},
        Broken{
            [](Program&, Entry&, Block& b) { ValueOf(b, "ce").erased = true; },
            "slot Loss: the value has another definition"},
        Broken{[](Program&, Entry&, Block& b) {
                 ValueOf(b, "label").erased = true;
               },
               "ce (softmax_with_cross_entropy): slot Label: it reads a value "
               "that is gone"}));

INSTANTIATE_TEST_SUITE_P(
    Ops, DamageTest,
    ::testing::Values(
        Broken{[](Program&, Entry&, Block& b) {
                 b.MoveOp(OpOf(b, "ce").id, Block::End());
               },
               "g.ht:11: entry train: loss (mean): slot X: it reads ce before "
               "its definition"},
        Broken{[](Program&, Entry&, Block& b) {
                 OpOf(b, "tick").schema = nullptr;
               },
               "tick (?): it has no schema"},
        Broken{[](Program&, Entry&, Block& b) {
                 // Not by SetSchema.
                 OpOf(b, "tick").schema = Ops().Find("assign");
               },
               "expected 1 ops tick in the list, found 0"},
        Broken{
            [](Program& p, Entry&, Block& b) {
              b.AddOp(Ops().Find("tick"), p.InternName("bad"), {}, {}, {},
                      Block::End());
            },
            "bad (tick): expected 1 input and 1 output slots, found 0 and 0"},
        Broken{[](Program& p, Entry&, Block& b) {
                 OpOf(b, "tick").attrs = p.Intern({{3, true}});
               },
               "tick (tick): attribute 3: expected known ones"},
        Broken{[](Program& p, Entry&, Block& b) {
                 const Attrs old = OpOf(b, "w.low.grad").attrs;
                 AttrList attrs(old.begin(), old.end());
                 attrs[0].second = 2.0;
                 OpOf(b, "w.low.grad").attrs = p.Intern(attrs);
               },
               "attribute trans_x: expected bool, found float"},
        Broken{[](Program& p, Entry&, Block& b) {
                 OpOf(b, "tick").body = std::make_unique<Block>(&p);
               },
               "tick (tick): expected no body"},
        Broken{
            [](Program&, Entry&, Block& b) { OpOf(b, "fused").body = nullptr; },
            "fused (fusion): expected a body"},
        Broken{[](Program&, Entry& e, Block&) {
                 e.commits().push_back({CellId(99), ValueId(0)});
               },
               "commit: there is no such cell"},
        Broken{[](Program&, Entry& e, Block&) {
                 e.commits()[0].value = ValueId();
               },
               "commit w: the value is gone"},
        Broken{[](Program&, Entry& e, Block&) {
                 e.results()[0].value = ValueId(9999);
               },
               "result @found_inf: the value is gone"}));

}  // namespace
}  // namespace halftone
