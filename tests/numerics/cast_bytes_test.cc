// What precision_rule min_cost promises: on no program are more bytes cast than
// under all_low or any_low. HT_TRIALS=10000 draws so many programs, HT_SEED=N
// begins with the N-th.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/io/model_printer.h"
#include "graph/io/model_reader.h"
#include "graph/ir/program.h"
#include "graph/ir/well_known.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "tests/numerics/random_model.h"
#include "tests/support/compile_model.h"
#include "tests/support/trials.h"

namespace halftone {
namespace {

constexpr char kMinCost[] = "min_cost";

// What casts that run on their own read and write in a training step, of a
// sample.
int64_t CastBytes(const Program& program) {
  const Block& block = program.FindEntry(kTrainEntry)->block();
  int64_t bytes = 0;
  const auto add = [&](ValueId value) {
    const TensorType& type = block.type(value);
    bytes += type.Elements().coefficient() * SizeOf(type.dtype);
  };
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.schema->name() != "cast") continue;
    add(op.in(0));
    add(op.out(0));
  }
  return bytes;
}

struct Counts {
  int compared = 0, fewer = 0;  // than one of the others
};

void Compare(const ModelFile& model, const std::string& level,
             const std::string& name, Counts* counts) {
  std::map<std::string, int64_t> bytes;
  for (const char* rule : {kMinCost, "all_low", "any_low"}) {
    const auto compiled = CompileModel(model, {},
                                       {{"optimizer.sgd", "", "--set"},
                                        {"amp.level", level, "--level"},
                                        {"amp.precision_rule", rule, "--set"}});
    ASSERT_TRUE(compiled.ok()) << name << ": " << compiled.status();
    bytes[rule] = CastBytes(*compiled->program);
  }
  ++counts->compared;
  for (const auto& [rule, others] : bytes) {
    EXPECT_LE(bytes[kMinCost], others)
        << name << " at " << level << ": " << rule;
  }
  counts->fewer +=
      bytes[kMinCost] < bytes["all_low"] || bytes[kMinCost] < bytes["any_low"];
}

TEST(CastBytes, AreNoMoreUnderMinCostInRandomPrograms) {
  const int trials = Trials(100), first = FirstSeed();
  Counts counts;
  for (int seed = first; seed < first + trials; ++seed) {
    Draws draws(seed);
    const RandomModel model = MakeRandomModel(&draws);
    const auto file = ParseModel(model.text, "random.pbtxt");
    ASSERT_TRUE(file.ok()) << file.status();
    Compare(*file, draws.OneOf(2) ? "O1" : "O2", absl::StrCat("HT_SEED=", seed),
            &counts);
  }
  EXPECT_EQ(counts.compared, trials);
  if (trials > 1) {
    EXPECT_GT(counts.fewer, trials / 20);
  }
  std::printf("%d programs; fewer than under another rule: %d\n",
              counts.compared, counts.fewer);
}

TEST(CastBytes, AreNoMoreUnderMinCostInModelsOfTheZoo) {
  Counts counts;
  for (const std::string& name : ZooNames()) {
    const auto model = ZooModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto file = ParseModel(PrintModel(*model), name + ".pbtxt");
    ASSERT_TRUE(file.ok()) << file.status();
    Compare(*file, "O1", name, &counts);
  }
  EXPECT_EQ(counts.compared, static_cast<int>(ZooNames().size()));
}

}  // namespace
}  // namespace halftone
