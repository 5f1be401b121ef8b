// Round trips of programs that no one wrote.
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/schema/op_builder.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

class Generator {
 public:
  explicit Generator(int seed) : random_(seed) {}

  std::unique_ptr<Program> Make() {
    auto program = std::make_unique<Program>();
    program->name = Word();
    program->Symbol("B");
    if (Chance(2)) program->loss = {Word(), Word(), Chance(2) ? Word() : ""};
    for (int i = Below(3); i > 0; --i) program->outputs.push_back(Word());
    for (int i = Below(4); i > 0; --i) AddCell(*program);
    for (int i = 1 + Below(2); i > 0; --i) {
      AddOps(program->AddEntry(absl::StrCat(Word(), i)));
    }
    return program;
  }

 private:
  int Below(int n) {
    return std::uniform_int_distribution<>(0, n - 1)(random_);
  }
  bool Chance(int n) { return Below(n) == 0; }
  double Double() {
    return std::ldexp(Below(1 << 30) - (1 << 29), Below(99) - 50);
  }
  std::string Word() {
    std::string word(1 + Below(6), ' ');
    for (char& c : word) c = Chance(9) ? 1 + Below(255) : "aZ0_./@"[Below(7)];
    return word;
  }
  template <typename Enum>
  Enum Any(int count) {
    return static_cast<Enum>(Below(count));
  }

  void AddCell(Program& program) {
    Cell cell;
    cell.name = absl::StrCat("cell", program.num_cells(), Word());
    cell.type = Image();
    cell.kind = Any<CellKind>(7);
    cell.init = {Any<Initializer::Kind>(9), Double(), Double()};
    cell.trainable = Chance(2);
    cell.commit = Any<Commit>(2);
    cell.spread = Any<Spread>(3);
    if (Chance(3)) cell.of = CellId(Below(program.num_cells() + 1));
    cell.line = Below(3);
    program.AddCell(cell);
  }

  TensorType Image() {
    TensorType type;
    type.dtype = DType::kF32;
    type.layout = Any<Layout>(2);
    type.sharded = Chance(2);
    for (int i = 0; i < 4; ++i) type.dims.emplace_back(1 + Below(9));
    return type;
  }

  void AddOps(Entry& entry) {
    Block& block = entry.block();
    std::vector<ValueId> values;
    for (int i = 0; i < 2; ++i) {
      TensorType type = Image();
      type.dims[0] = Dim::Symbol(0) * Dim(1 + Below(3));
      values.push_back(block.AddFeed(block.UniqueValueName(Word()), type));
    }
    for (int i = Below(20); i > 0; --i) {
      const char* const types[] = {"relu", "sum", "scale", "cast", "assign"};
      const char* type = types[Below(5)];
      const ValueId x = values[Below(values.size())];
      OpBuilder op(&block, type);
      op.In("X", x).Out("Out", Word()).Unique().Line(Below(9));
      if (type == types[2]) op.Attr("scale", Double());
      if (type == types[3]) op.Attr("to", DType::kF32);
      const auto id = op.Build();
      if (!id.ok()) continue;  // the name begins with a control byte or so
      Decorate(block, block.mutable_op(*id));
      values.push_back(block.op(*id).out(0));
    }
    for (int i = Below(3); i > 0; --i) {
      entry.results().push_back({Word(), values[Below(values.size())]});
    }
    const Program& program = block.program();
    for (int i = 0; i < program.num_cells(); ++i) {
      const CellId cell(i);
      const bool free = !block.FindValue(program.cell(cell).name).valid();
      if (Below(2) > 0) entry.gradients().push_back({cell, values[0]});
      entry.commits().push_back(
          {cell, free ? block.CellValue(cell) : values[0]});
    }
  }

  void Decorate(Block& block, Op& op) {
    op.role = Any<Role>(5);
    op.decision.precision = Any<DType>(9);
    op.decision.reason = Any<Reason>(22);
    for (int i = Below(3); i > 0; --i) {
      op.origins.push_back(block.program().InternName(Word()));
      op.decision.because_of.push_back(block.program().InternName(Word()));
    }
  }

  std::mt19937 random_;
};

TEST(RandomProgramTest, ParsePrintAndCloneAgree) {
  for (int seed = 0; seed < 300; ++seed) {
    const auto program = Generator(seed).Make();
    const std::string text = Print(*program);
    const auto parsed = Parse(text, "random.ht");
    ASSERT_TRUE(parsed.ok()) << seed << ": " << parsed.status() << "\n" << text;
    ASSERT_EQ(Print(**parsed), text) << seed;
    ASSERT_EQ(Print(*Clone(*program)), text) << seed;
    ASSERT_EQ(Print(*Clone(**parsed)), text) << seed;
  }
}

}  // namespace
}  // namespace halftone
