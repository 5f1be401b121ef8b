#include "graph/ir/block.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/ir/block_checks.h"
#include "graph/ir/program.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BlockTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(Inconsistency(block_), ""); }

  static TensorType F32(Dims dims) {
    TensorType type;
    type.dtype = DType::kF32;
    type.dims = dims;
    return type;
  }

  OpId Add(absl::string_view name, std::vector<std::vector<ValueId>> inputs,
           std::vector<std::vector<std::string>> outputs,
           Block::Position position = Block::End()) {
    SlotValues values;
    for (const auto& slot : inputs) values.AddSlot(slot);
    Block::Outputs specs;
    for (const auto& slot : outputs) {
      for (const auto& out : slot) {
        specs.Add({program_.InternName(out), program_.Intern(F32({2}))});
      }
      specs.EndSlot();
    }
    const NameId interned = name.empty() ? NameId() : program_.InternName(name);
    return block_.AddOp(nullptr, interned, values, specs, {}, position);
  }
  ValueId Out(OpId op, int i = 0) { return block_.op(op).outputs.all()[i]; }

  std::vector<std::string> Order() {
    std::vector<std::string> names;
    for (OpId id : block_.ops()) {
      names.emplace_back(block_.name(block_.op(id)));
    }
    return names;
  }
  // "op:position" of each reader.
  std::vector<std::string> Readers(ValueId value) {
    std::vector<std::string> readers;
    for (const Use& use : block_.value(value).uses) {
      readers.push_back(
          absl::StrCat(block_.name(block_.op(use.op)), ":", use.position));
    }
    std::sort(readers.begin(), readers.end());
    return readers;
  }

  Program program_;
  Block& block_ = program_.AddEntry("train").block();
  ValueId x_ = block_.AddFeed("x", F32({2}));
  ValueId y_ = block_.AddFeed("y", F32({2}));
};

TEST_F(BlockTest, Values) {
  EXPECT_EQ(block_.name(x_), "x");
  EXPECT_EQ(block_.dtype(x_), DType::kF32);
  EXPECT_EQ(block_.FindValue("x"), x_);
  EXPECT_FALSE(block_.FindValue("z").valid());
  EXPECT_THAT(block_.Feeds(), ElementsAre(x_, y_));
  block_.SetType(x_, F32({3}));
  EXPECT_EQ(block_.type(x_), F32({3}));
  block_.RenameValue(x_, "z");
  EXPECT_EQ(block_.FindValue("z"), x_);
  EXPECT_FALSE(block_.FindValue("x").valid());
  block_.RenameValue(x_, "z");
  EXPECT_EQ(block_.name(x_), "z");
}

TEST_F(BlockTest, CellsAndConstantsHaveOneValue) {
  Cell cell;
  cell.name = "w";
  cell.type = F32({2});
  const CellId w = program_.AddCell(cell).id;
  Constant constant;
  constant.name = "one";
  constant.type = F32({});
  const ConstantId one = program_.AddConstant(constant).id;
  const ValueId value = block_.CellValue(w);
  EXPECT_EQ(block_.CellValue(w), value);
  EXPECT_EQ(block_.value(value).cell(), w);
  EXPECT_EQ(block_.name(value), "w");
  EXPECT_EQ(block_.ConstantValue(one), block_.ConstantValue(one));
  // Gone without readers, and made anew on demand.
  block_.EraseValue(value);
  block_.EraseValue(block_.ConstantValue(one));
  EXPECT_FALSE(block_.FindValue("w").valid());
  EXPECT_NE(block_.CellValue(w), value);
  EXPECT_EQ(block_.FindValue("one"), ValueId());
}

TEST_F(BlockTest, AMemberOfAListOutputCanGo) {
  const OpId a = Add("a", {{x_}}, {{"h", "i", "j"}});
  block_.EraseValue(block_.FindValue("i"));
  EXPECT_FALSE(block_.FindValue("i").valid());
  EXPECT_THAT(block_.op(a).outputs.all(),
              ElementsAre(block_.FindValue("h"), block_.FindValue("j")));
  EXPECT_EQ(block_.value(block_.FindValue("j")).result, 1);
  EXPECT_EQ(Inconsistency(block_), "");
}

TEST_F(BlockTest, ErasedFeedsAreLeftOut) {
  block_.EraseValue(x_);
  EXPECT_THAT(block_.Feeds(), ElementsAre(y_));
  EXPECT_NE(block_.AddFeed("x", F32({2})), x_);
}

TEST_F(BlockTest, OpsInOrder) {
  const OpId b = Add("b", {{x_}}, {{"b"}});
  const OpId d = Add("d", {{Out(b)}}, {{"d"}});
  Add("a", {{x_}}, {{"a"}}, Block::Before(b));
  Add("c", {{x_}}, {{"c"}}, block_.After(b));
  Add("e", {{x_}}, {{"e"}}, block_.After(d));
  EXPECT_THAT(Order(), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(block_.FindOp("d"), d);
  block_.MoveOp(d, Block::Before(block_.first()));
  EXPECT_THAT(Order(), ElementsAre("d", "a", "b", "c", "e"));
  block_.MoveOp(d, Block::Before(d));
  block_.MoveOp(d, block_.After(d));
  EXPECT_THAT(Order(), ElementsAre("d", "a", "b", "c", "e"));
  block_.MoveOp(d, Block::End());
  EXPECT_THAT(Order(), ElementsAre("a", "b", "c", "e", "d"));
  EXPECT_THAT(block_.Numbering(), ElementsAre(1, 4, 0, 2, 3));
}

TEST_F(BlockTest, NamesOfOps) {
  const OpId a = Add("", {}, {{}, {"h"}});
  EXPECT_EQ(block_.name(block_.op(a)), "h");
  Add("h", {}, {{"i"}});
  Add("h", {}, {{"j"}});
  Add("", {}, {});
  EXPECT_THAT(Order(), ElementsAre("h", "h.1", "h.2", "op"));
  block_.EraseOp(block_.FindOp("h.1"));
  Add("h", {}, {{"k"}});
  EXPECT_TRUE(block_.FindOp("h.1").valid());
  EXPECT_EQ(program_.name_of(block_.UniqueOpName(program_.InternName("h"))),
            "h.3");
  EXPECT_EQ(block_.UniqueValueName("h"), "h.1");
  EXPECT_EQ(block_.UniqueValueName("new"), "new");
}

TEST_F(BlockTest, SlotsOfOps) {
  const OpId id = Add("a", {{x_, y_}, {}, {x_}}, {{}, {"p", "q"}, {"r"}});
  const Op& op = block_.op(id);
  EXPECT_EQ(op.inputs.slots(), 3);
  EXPECT_THAT(op.inputs.slot(0), ElementsAre(x_, y_));
  EXPECT_THAT(op.inputs.slot(1), IsEmpty());
  EXPECT_EQ(op.in(2), x_);
  EXPECT_EQ(op.inputs.SlotOf(1), 0);
  EXPECT_EQ(op.inputs.SlotOf(2), 2);
  EXPECT_FALSE(op.outputs.has(0));
  EXPECT_EQ(op.out(2), block_.FindValue("r"));
  EXPECT_EQ(block_.value(op.out(2)).result, 2);
  EXPECT_THAT(Readers(x_), ElementsAre("a:0", "a:2"));
}

TEST_F(BlockTest, EraseFreesNamesAndUses) {
  const OpId a = Add("a", {{x_, x_}}, {{"h"}});
  const OpId b = Add("b", {{Out(a), x_}}, {{"i"}});
  const OpId next = block_.next(a);
  EXPECT_EQ(next, b);
  block_.EraseOp(b);
  EXPECT_THAT(Readers(Out(a)), IsEmpty());
  EXPECT_THAT(Readers(x_), ElementsAre("a:0", "a:1"));
  block_.EraseOp(a);
  EXPECT_THAT(Readers(x_), IsEmpty());
  EXPECT_EQ(block_.num_ops(), 0);
  EXPECT_EQ(block_.op_limit(), 2);
  EXPECT_FALSE(block_.first().valid());
  EXPECT_FALSE(block_.last().valid());
  EXPECT_THAT(block_.Numbering(), ElementsAre(-1, -1));
  const ValueId again = Out(Add("a", {}, {{"h"}}));
  EXPECT_EQ(block_.FindValue("h"), again);
}

TEST_F(BlockTest, AWalkMayErase) {
  for (int i = 0; i < 5; ++i) Add(absl::StrCat("a", i), {{x_}}, {{}});
  for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
    if (id.index() % 2 == 0) block_.EraseOp(id);
  }
  EXPECT_THAT(Order(), ElementsAre("a1", "a3"));
}

TEST_F(BlockTest, SetInput) {
  const OpId a = Add("a", {{x_, x_}, {y_}}, {{"h"}});
  block_.SetInput(a, 1, y_);
  EXPECT_THAT(Readers(x_), ElementsAre("a:0"));
  EXPECT_THAT(Readers(y_), ElementsAre("a:1", "a:2"));
  block_.SetInput(a, 1, y_);
  EXPECT_THAT(Readers(y_), ElementsAre("a:1", "a:2"));
}

TEST_F(BlockTest, ReplaceUses) {
  const OpId a = Add("a", {{x_, y_}}, {{"h"}});
  Add("b", {{x_}, {Out(a)}}, {{"i"}});
  block_.ReplaceUses(x_, y_);
  EXPECT_THAT(Readers(x_), IsEmpty());
  EXPECT_THAT(Readers(y_), ElementsAre("a:0", "a:1", "b:0"));
  block_.ReplaceUses(y_, y_);
  EXPECT_THAT(Readers(y_), ElementsAre("a:0", "a:1", "b:0"));
  block_.body_results() = {y_, x_};
  block_.ReplaceUses(y_, x_);
  EXPECT_THAT(block_.body_results(), ElementsAre(x_, x_));
}

TEST_F(BlockTest, SetInputSlot) {
  const OpId a = Add("a", {{x_}, {y_, x_}, {x_, y_}}, {{"h"}});
  const auto slots = [this, a] {
    const SlotValues& inputs = block_.op(a).inputs;
    std::vector<std::string> text;
    for (int s = 0; s < inputs.slots(); ++s) {
      text.emplace_back();
      for (ValueId v : inputs.slot(s)) {
        text.back() += std::string(block_.name(v));
      }
    }
    return text;
  };
  block_.SetInputSlot(a, 1, {y_, y_, x_, y_});
  EXPECT_THAT(slots(), ElementsAre("x", "yyxy", "xy"));
  EXPECT_EQ(Inconsistency(block_), "");
  block_.SetInputSlot(a, 1, {});
  EXPECT_THAT(slots(), ElementsAre("x", "", "xy"));
  EXPECT_THAT(Readers(y_), ElementsAre("a:2"));
  EXPECT_EQ(Inconsistency(block_), "");
  block_.SetInputSlot(a, 0, block_.op(a).inputs.slot(2));
  EXPECT_THAT(slots(), ElementsAre("xy", "", "xy"));
  block_.SetInputSlot(a, 2, block_.op(a).inputs.slot(2).subspan(1));
  EXPECT_THAT(slots(), ElementsAre("xy", "", "y"));
}

TEST_F(BlockTest, AddOutput) {
  const OpId a = Add("a", {}, {{"p"}, {}, {"r"}});
  const ValueId q = block_.AddOutput(a, 1, "q", F32({5}));
  EXPECT_EQ(block_.value(q).result, 1);
  EXPECT_EQ(block_.value(block_.FindValue("r")).result, 2);
  EXPECT_EQ(block_.op(a).out(1), q);
  EXPECT_EQ(block_.type(q), F32({5}));
}

TEST_F(BlockTest, MoveOutput) {
  const OpId a = Add("a", {}, {{"p", "q"}, {"r"}});
  const OpId b = Add("b", {}, {{"s"}, {}, {"t"}});
  const OpId reader = Add("c", {{Out(a, 0), Out(a, 1)}}, {{}});
  const ValueId p = Out(a, 0);
  block_.MoveOutput(p, b, 1);
  EXPECT_EQ(block_.value(p).op(), b);
  EXPECT_EQ(block_.value(p).result, 1);
  EXPECT_EQ(block_.value(block_.FindValue("t")).result, 2);
  EXPECT_EQ(block_.value(block_.FindValue("q")).result, 0);
  EXPECT_THAT(block_.op(a).outputs.slot(0), ElementsAre(block_.FindValue("q")));
  EXPECT_EQ(block_.op(reader).in(0), p);  // readers stay
  block_.MoveOutput(block_.FindValue("q"), b, 1);
  EXPECT_THAT(block_.op(b).outputs.slot(1),
              ElementsAre(p, block_.FindValue("q")));
}

TEST_F(BlockTest, MoveToCell) {
  Cell cell;
  cell.name = "low";
  cell.type = F32({2});
  const CellId low = program_.AddCell(cell).id;
  const OpId a = Add("a", {{x_}}, {{"p"}, {"q"}});
  const OpId reader = Add("b", {{Out(a, 0), Out(a, 0)}}, {{}});
  const ValueId p = Out(a, 0), q = Out(a, 1);
  block_.MoveToCell(p, low);
  EXPECT_EQ(block_.FindCellValue(low), p);
  EXPECT_EQ(block_.CellValue(low), p);
  EXPECT_EQ(block_.value(p).cell(), low);
  EXPECT_EQ(block_.name(p), "low");
  EXPECT_FALSE(block_.FindValue("p").valid());
  EXPECT_THAT(block_.op(a).outputs.all(), ElementsAre(q));
  EXPECT_EQ(block_.value(q).result, 0);
  EXPECT_THAT(block_.op(reader).inputs.all(), ElementsAre(p, p));
  EXPECT_DEATH(block_.MoveToCell(q, low), "that has one");
  EXPECT_DEATH(block_.MoveToCell(x_, low), "no op defines");
}

// From both ends, which meet at one op or between two.
TEST_F(BlockTest, OpsOfASchemaInOrder) {
  // Two addresses: a block looks at no more of a schema.
  const char schemas[2] = {};
  const auto* const relu = reinterpret_cast<const OpSchema*>(&schemas[0]);
  const auto* const cast = reinterpret_cast<const OpSchema*>(&schemas[1]);
  for (int size = 0; size < 6; ++size) {
    for (int picks = 0; picks < 1 << size; ++picks) {
      Program program;
      Block block(&program);
      std::vector<OpId> expected;
      for (int i = 0; i < size; ++i) {
        const bool picked = (picks >> i & 1) != 0;
        const OpId id = block.AddOp(picked ? relu : cast, NameId(), {}, {}, {},
                                    Block::End());
        if (picked) expected.push_back(id);
      }
      EXPECT_EQ(block.OpsOf(relu), expected) << size << " " << picks;
    }
  }
}

TEST_F(BlockTest, BodiesGoWithTheirOp) {
  const OpId a = Add("a", {{x_}}, {{"h"}});
  block_.mutable_op(a).body = std::make_unique<Block>(&program_);
  Block& body = *block_.mutable_op(a).body;
  const ValueId argument = body.AddFeed("x", F32({2}));  // names of its own
  body.body_results() = {argument};
  EXPECT_EQ(body.name(argument), "x");
  block_.EraseOp(a);
  EXPECT_EQ(block_.op(a).body, nullptr);
}

// Random edits; the use lists must follow each.
TEST_F(BlockTest, UseListsFollowRandomEdits) {
  std::mt19937 random(1);
  std::vector<ValueId> values = {x_, y_};
  for (int step = 0; step < 2000; ++step) {
    const auto any = [&] { return values[random() % values.size()]; };
    const std::vector<OpId> ops = block_.ops();
    const OpId op = ops.empty() ? OpId() : ops[random() % ops.size()];
    switch (op.valid() ? random() % 6 : 0) {
      case 0:
      case 1:
        values.push_back(Out(Add("", {{any()}, {any(), any()}, {}},
                                 {{block_.UniqueValueName("h")}})));
        break;
      case 2:
        block_.SetInput(op, 0, any());
        break;
      case 3:
        block_.SetInputSlot(op, random() % 3,
                            std::vector<ValueId>(random() % 4, any()));
        if (block_.op(op).inputs.all().empty()) {
          block_.SetInputSlot(op, 0, {any()});
        }
        break;
      case 4:
        block_.ReplaceUses(any(), any());
        break;
      case 5: {
        const ValueId out = Out(op);
        block_.ReplaceUses(out, x_);
        values.erase(std::find(values.begin(), values.end(), out));
        block_.EraseOp(op);
        break;
      }
    }
    ASSERT_EQ(Inconsistency(block_), "") << step;
  }
}

using BlockDeathTest = BlockTest;

TEST_F(BlockDeathTest, RefusesMisuse) {
  const OpId a = Add("a", {{x_}}, {{"h"}});
  Add("b", {{Out(a)}}, {{"i"}});
  EXPECT_DEATH(block_.EraseOp(a), "output is read");
  EXPECT_DEATH(block_.EraseValue(x_), "is read");
  EXPECT_DEATH(block_.AddFeed("h", F32({2})), "h");
  EXPECT_DEATH(block_.RenameValue(x_, "h"), "h");
  EXPECT_DEATH(Add("c", {{ValueId()}}, {{}}), "not a live value");
  EXPECT_DEATH(block_.MoveOutput(x_, a, 0), "no op defines");
}

}  // namespace
}  // namespace halftone
