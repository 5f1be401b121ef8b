#include "graph/ir/program.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TensorType F32(Dims dims) {
  TensorType type;
  type.dtype = DType::kF32;
  type.dims = dims;
  return type;
}

Cell NamedCell(const std::string& name) {
  Cell cell;
  cell.name = name;
  cell.type = F32({2});
  return cell;
}

TEST(ProgramTest, SymbolsAreFew) {
  Program program;
  EXPECT_EQ(program.Symbol("B"), 0);
  EXPECT_EQ(program.Symbol("T"), 1);
  EXPECT_EQ(program.Symbol("B"), 0);
  for (int i = 2; i < kMaxSymbols; ++i) {
    EXPECT_EQ(program.Symbol(absl::StrCat("S", i)), i);
  }
  EXPECT_EQ(program.Symbol("one_too_many"), -1);
  EXPECT_EQ(program.Symbol("T"), 1);
}

TEST(ProgramTest, TypesAreInterned) {
  Program program;
  const TypeId a = program.Intern(F32({2, 3}));
  const TensorType& type = program.type(a);
  EXPECT_EQ(program.Intern(F32({2, 3})), a);
  for (int i = 0; i < 1000; ++i) program.Intern(F32({i}));
  EXPECT_EQ(&program.type(a), &type);
  EXPECT_EQ(type, F32({2, 3}));
}

TEST(ProgramTest, CellsAndConstantsByName) {
  Program program;
  Cell& w = program.AddCell(NamedCell("w"));
  for (int i = 0; i < 100; ++i) {
    program.AddCell(NamedCell(absl::StrCat("c", i)));
  }
  EXPECT_EQ(program.FindCell("w"), w.id);
  EXPECT_EQ(&program.cell(w.id), &w);
  EXPECT_EQ(program.num_cells(), 101);
  EXPECT_EQ(program.cell(program.FindCell("c7")).name, "c7");
  EXPECT_FALSE(program.FindCell("v").valid());

  Constant one;
  one.name = "one";
  one.type = F32({});
  one.values = {1};
  const ConstantId id = program.AddConstant(one).id;
  EXPECT_EQ(program.FindConstant("one"), id);
  EXPECT_EQ(program.constant(id).values[0], 1);
  EXPECT_FALSE(program.FindConstant("two").valid());
}

TEST(ProgramDeathTest, NamesAreNew) {
  Program program;
  program.AddCell(NamedCell("w"));
  program.AddEntry("train");
  EXPECT_DEATH(program.AddCell(NamedCell("w")), "w");
  EXPECT_DEATH(program.AddEntry("train"), "exists");
}

TEST(ProgramTest, Entries) {
  Program program;
  Entry& train = program.AddEntry("train");
  program.AddEntry("eval");
  EXPECT_EQ(program.FindEntry("train"), &train);
  EXPECT_EQ(program.FindEntry("none"), nullptr);
  EXPECT_EQ(&train.block().program(), &program);
  program.RemoveEntry("train");
  program.RemoveEntry("none");
  ASSERT_EQ(program.entries().size(), 1);
  EXPECT_EQ(program.entries()[0]->name(), "eval");
}

TEST(ProgramTest, CommitsAndResultsFollowReplacedValues) {
  Program program;
  const CellId w = program.AddCell(NamedCell("w")).id;
  const CellId v = program.AddCell(NamedCell("v")).id;
  Entry& train = program.AddEntry("train");
  const ValueId x = train.block().AddFeed("x", F32({2}));
  const ValueId y = train.block().AddFeed("y", F32({2}));
  train.commits().push_back({w, x});
  train.results().push_back({"out", x});
  train.results().push_back({"other", y});
  train.block().ReplaceUses(x, y);
  EXPECT_EQ(train.CommitOf(w), y);
  EXPECT_FALSE(train.CommitOf(v).valid());
  EXPECT_EQ(train.FindResult("out"), y);
  EXPECT_EQ(train.FindResult("other"), y);
  EXPECT_FALSE(train.FindResult("none").valid());
}

TEST(ProgramTest, ACellsTypeIsInternedAsItIsNow) {
  Program program;
  Cell cell;
  cell.type = F32({2});
  const CellId id = program.AddCell(program.InternName("w.x"), cell).id;
  EXPECT_EQ(program.cell(id).name, "w.x");
  EXPECT_EQ(program.FindCell("w.x"), id);
  EXPECT_EQ(program.InternTypeOf(id), program.Intern(F32({2})));
  program.cell(id).type = F32({3});
  EXPECT_EQ(program.InternTypeOf(id), program.Intern(F32({3})));
}

}  // namespace
}  // namespace halftone
