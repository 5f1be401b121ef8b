#include "passes/compile.h"

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_printer.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "passes/compile_testing.h"
#include "passes/testing/kernels.h"

namespace halftone {
namespace passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<CompiledModel> CompileFiles(
    const std::string& model, const std::string& strategy,
    const std::vector<Override>& overrides = {},
    const CompileFlags& flags = {.verify_each = true},
    const KernelSet& kernels = AllKernels()) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ReadModel(model));
  StrategyFile read;
  if (!strategy.empty()) {
    HT_ASSIGN_OR_RETURN(read, ReadStrategy(strategy));
  }
  HT_ASSIGN_OR_RETURN(const Options options, ResolveOptions(read, overrides));
  return Compile(file, options, kernels, flags);
}

std::map<std::string, int> Fates(const CastRows& casts) {
  std::map<std::string, int> fates;
  for (const proto::CastRow& row : casts.all()) ++fates[row.fate()];
  return fates;
}

const proto::CastRow* FindCast(const CastRows& casts, const std::string& name) {
  for (const proto::CastRow& row : casts.all()) {
    if (row.name() == name) return &row;
  }
  return nullptr;
}

CompiledModel MustCompile(const std::string& strategy,
                          const std::vector<Override>& overrides = {}) {
  auto model = CompileFiles("models/mnist_convnet.pbtxt", strategy, overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : CompiledModel();
}

// ---- The example of the documentation: mnist_convnet at O1.

TEST(CompileTest, MnistAtO1HasItsEntries) {
  const CompiledModel model = MustCompile("models/mnist_o1.pbtxt");
  for (const char* entry :
       {kTrainEntry, kEvalEntry, kInitEntry, kDeriveEntry}) {
    EXPECT_NE(model.program->FindEntry(entry), nullptr) << entry;
  }
  EXPECT_EQ(model.target, "cpu");
  EXPECT_EQ(model.fingerprint.size(), 16);
  EXPECT_EQ(model.strategy.amp().level(), "O1");
  EXPECT_FALSE(model.origins.empty());
  EXPECT_GE(model.passes.size(), 16);
}

TEST(CompileTest, MnistAtO1Casts) {
  const CompiledModel model = MustCompile("models/mnist_o1.pbtxt");
  SCOPED_TRACE(Print(*model.program));
  // Six weights and biases and their gradients live in cells.
  const std::map<std::string, int> expected = {{"cell", 12}, {"folded", 3}};
  EXPECT_EQ(Fates(model.casts), expected);

  const proto::CastRow* x = FindCast(model.casts, "x.cast_fp16");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->value(), "x");
  EXPECT_EQ(x->from(), "f32");
  EXPECT_EQ(x->to(), "f16");
  EXPECT_EQ(x->reason(), "WHITE_LIST");
  EXPECT_THAT(x->because_of(), ElementsAre("conv1"));
  EXPECT_EQ(x->elements(), 28 * 28);
  EXPECT_EQ(x->batch_power(), 1);
  EXPECT_THAT(x->for_op(), ElementsAre("conv1"));
  EXPECT_EQ(x->fate(), "folded");
  EXPECT_THAT(x->into(), ElementsAre("x"));
  const proto::CastRow* back = FindCast(model.casts, "logits.grad");
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->role(), "backward");
  EXPECT_EQ(back->fate(), "folded");
  EXPECT_THAT(back->into(), ElementsAre("ce.grad"));
  const proto::CastRow* weight = FindCast(model.casts, "fc.w.cast_fp16");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->fate(), "cell");
  EXPECT_EQ(weight->batch_power(), 0);
}

TEST(CompileTest, MnistAtO1Ops) {
  const CompiledModel model = MustCompile("models/mnist_o1.pbtxt");
  int low = 0, forward = 0;
  for (const proto::OpRow& row : model.ops.all()) {
    EXPECT_NE(row.reason(), "") << row.name();
    EXPECT_NE(row.precision(), "") << row.name();
    if (row.role() != "forward") continue;
    ++forward;
    low += row.precision() == "f16";
  }
  EXPECT_EQ(forward, 15);
  EXPECT_EQ(low, 12);
  const proto::OpRow* bn1 = FindOp(model, "bn1");
  ASSERT_NE(bn1, nullptr);
  EXPECT_EQ(bn1->type(), "sync_batch_norm");
  EXPECT_EQ(bn1->reason(), "GRAY_ALL_LOW");
  EXPECT_THAT(bn1->because_of(), ElementsAre("conv1"));
  EXPECT_EQ(bn1->op_class(), "gray");
  EXPECT_EQ(bn1->keep_f32_slot_size(), 4);
  EXPECT_GT(bn1->line(), 0);
  EXPECT_EQ(bn1->input(0).slot(), "X");
  EXPECT_EQ(bn1->input(0).value(0), "conv1");
}

TEST(CompileTest, MnistAtO1ParametersBucketsAndNotes) {
  const CompiledModel model = MustCompile("models/mnist_o1.pbtxt");
  std::map<std::string, int64_t> bytes;
  for (const proto::BucketRow& row : model.report.bucket()) {
    bytes[row.dtype()] += row.bytes();
  }
  const std::map<std::string, int64_t> expected = {{"f16", 57876},
                                                   {"f32", 384}};
  EXPECT_EQ(bytes, expected);
  int low_cells = 0;
  int64_t elements = 0;
  for (const proto::ParamRow& row : model.report.param()) {
    low_cells += row.has_low_cell();
    EXPECT_EQ(row.gradient_dtype(), row.has_low_cell() ? "f16" : "f32");
    int64_t n = 1;
    for (int64_t dim : row.shape()) n *= dim;
    elements += n;
  }
  EXPECT_EQ(low_cells, 6);
  EXPECT_EQ(elements, 29034);
  EXPECT_EQ(NoteOf(model.report, "D8"),
            "conv1 (1 channel), fc (10 outputs): not multiples of 8, tensor "
            "cores idle there (GPU targets)");
}

TEST(CompileTest, FusionsAroundNormsAreNoted) {
  const TestTarget target = {
      "sm_90",
      {"norm_conv_stats", "conv_stats", "norm_conv_grad_filter",
       "conv_grad_norm", "norm_elementwise"}};
  const auto notes = [&](const std::string& strict) {
    const auto model =
        CompileFiles("models/small_resnet.pbtxt", "models/mnist_o1.pbtxt",
                     {{"dist.sync_batch_norm", "false", ""},
                      {"amp.strict_f32_slots", strict, ""}},
                     {}, AllKernels(target));
    EXPECT_TRUE(model.ok()) << model.status();
    std::vector<std::string> rounds;
    for (const proto::Note& note : model->report.note()) {
      if (note.code() == "F2") rounds.push_back(note.text());
    }
    return std::make_pair(NoteOf(model->report, "F1"), rounds);
  };
  const auto [split, rounds] = notes("false");
  EXPECT_THAT(split, testing::MatchesRegex(
                         "9 norms split for fusions: .* per sample need not "
                         "be moved"));
  EXPECT_THAT(
      rounds,
      testing::ElementsAre(
          "6 fusions round what is kept in f32: scale / sqrt(variance + "
          "epsilon) and what is left of bias, in f16; --strict-f32-slots "
          "forbids it",
          "9 fusions round what is kept in f32: the batch's variance, from "
          "plain sums of x and x * x, which cancel where the mean is far from "
          "0; --strict-f32-slots forbids it"));
  EXPECT_THAT(notes("true").second, testing::IsEmpty());
}

TEST(CompileTest, BlackListingTheProductMovesTwoCasts) {
  const CompiledModel model =
      MustCompile("models/mnist_o1.pbtxt",
                  {{"amp.custom_black_list", "matmul", "--black"}});
  EXPECT_EQ(model.casts.size(), 11);
  const proto::CastRow* up = FindCast(model.casts, "flat.cast_fp32");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->fate(), "standalone");
  EXPECT_EQ(up->into_size(), 0);
  EXPECT_NE(FindCast(model.casts, "flat.grad"), nullptr);
  EXPECT_EQ(FindCast(model.casts, "logits.cast_fp32"), nullptr);
  EXPECT_EQ(FindOp(model, "fc")->reason(), "USER_BLACK");
  EXPECT_EQ(FindOp(model, "logits")->reason(), "GRAY_F32_INPUT");
  EXPECT_EQ(FindOp(model, "correct")->reason(), "CLEAR_FOLLOWS");
}

// ---- All levels, all models.

TEST(CompileTest, EveryLevelCompiles) {
  for (const char* strategy :
       {"fp32", "o1", "o1_bf16", "o2", "o2_bf16", "o3"}) {
    for (const std::string model : {"mnist_convnet", "mlp", "small_resnet"}) {
      // Its group is for batch norms.
      if (model == "mlp" && std::string(strategy) == "o1") continue;
      const auto compiled =
          CompileFiles(absl::StrCat("models/", model, ".pbtxt"),
                       absl::StrCat("models/mnist_", strategy, ".pbtxt"));
      EXPECT_TRUE(compiled.ok()) << model << " " << strategy << "\n"
                                 << compiled.status();
      // No weight is cast in a step, whatever the level.
      if (!compiled.ok()) continue;
      for (const proto::CastRow& row : compiled->casts.all()) {
        const bool weight = compiled->program->FindCell(row.value()).valid() &&
                            row.to() != "f32";
        EXPECT_FALSE(weight && row.fate() == "standalone") << row.name();
      }
    }
  }
}

TEST(CompileTest, PropertiesCombine) {
  const std::vector<std::vector<Override>> variants = {
      {{"amp.master_weights", "false", "--set"}},
      {{"amp.master_weights", "true", "--set"}},
      {{"amp.keep_batchnorm_fp32", "true", "--set"}},
      {{"amp.keep_batchnorm_fp32", "false", "--set"}},
      {{"amp.precision_rule", "any_low", "--set"}},
      {{"amp.dtype", "bf16", "--set"}},
      {{"amp.op_lists", "paddle", "--set"}},
      {{"amp.scaler", "torch", "--set"}},
      {{"dist.sync_batch_norm", "false", "--set"},
       {"dist.gradient_scale", "post", "--set"}},
      {{"dist.fuse_all_reduce_ops", "false", "--set"}},
      {{"optimizer.adamw.weight_decay", "0.01", "--set"},
       {"optimizer.clip.global_norm", "1", "--set"}},
      {{"optimizer.adam.weight_decay", "0.01", "--set"}},
      {{"optimizer.sgd.weight_decay", "0.01", "--set"}},
  };
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    for (std::vector<Override> overrides : variants) {
      SCOPED_TRACE(
          absl::StrCat(level, " ", overrides[0].path, "=", overrides[0].value));
      overrides.push_back({"amp.level", level, "--level"});
      const auto model = CompileFiles("models/small_resnet.pbtxt",
                                      "models/mnist_o1.pbtxt", overrides);
      const bool refused = std::string(level) == "O1" &&
                           overrides[0].value == "false" &&
                           (overrides[0].path == "amp.master_weights" ||
                            overrides[0].path == "amp.keep_batchnorm_fp32");
      EXPECT_EQ(model.ok(), !refused) << model.status();
    }
  }
}

TEST(CompileTest, ZooModelsCompile) {
  for (const std::string& name : ZooNames()) {
    const auto model = ZooModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto file = ParseModel(PrintModel(*model), name + ".pbtxt");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto options = ResolveOptions(
        StrategyFile{}, {{"amp.level", "O1", "--set"},
                         {"optimizer.momentum.momentum", "0.9", "--set"}});
    ASSERT_TRUE(options.ok()) << options.status();
    const auto compiled =
        Compile(*file, *options, AllKernels(), {.verify_each = true});
    EXPECT_TRUE(compiled.ok()) << name << "\n" << compiled.status();
    if (name != "resnet50" && name != "vgg16") continue;
    TestTarget gpu;
    gpu.name = "sm_90";
    const auto padded =
        Compile(*file, *options, AllKernels(gpu), {.verify_each = true});
    ASSERT_TRUE(padded.ok()) << name << "\n" << padded.status();
    EXPECT_THAT(NoteOf(padded->report, "D9"),
                HasSubstr("(3 channels to 8, 784 KiB a sample): padded"));
    EXPECT_THAT(NoteOf(padded->report, "D8"), Not(HasSubstr("channels")));
  }
}

TEST(CompileTest, ZooModelsFitTheirStrategies) {
  for (const std::string& name : ZooNames()) {
    std::vector<std::pair<ZooOptions, std::string>> variants = {
        {ZooOptions{}, ZooStrategy(name)}};
    if (name == "bert_base") {
      variants.push_back({ZooOptions{}, "models/bert_pretraining_o1.pbtxt"});
      variants.back().first.head = "pretraining";
    }
    for (const auto& [zoo_options, path] : variants) {
      const auto model = ZooModel(name, zoo_options);
      ASSERT_TRUE(model.ok()) << model.status();
      const auto file = ParseModel(PrintModel(*model), name + ".pbtxt");
      ASSERT_TRUE(file.ok()) << file.status();
      const auto strategy = ReadStrategy(path);
      ASSERT_TRUE(strategy.ok()) << strategy.status();
      const auto options = ResolveOptions(*strategy, {});
      ASSERT_TRUE(options.ok()) << path << "\n" << options.status();
      const auto compiled = Compile(*file, *options, AllKernels(), {});
      EXPECT_TRUE(compiled.ok()) << name << "\n" << compiled.status();
    }
  }
}

TEST(CompileTest, SameInputGivesSameBytes) {
  const CompiledModel a = MustCompile("models/mnist_o1.pbtxt");
  const CompiledModel b = MustCompile("models/mnist_o1.pbtxt");
  EXPECT_EQ(*SerializeCompiledModel(a), *SerializeCompiledModel(b));
}

TEST(CompileTest, ACompiledModelReadsBackAndCompilesAgain) {
  const CompiledModel first = MustCompile("models/mnist_o1.pbtxt");
  const auto read =
      ParseCompiledModel(*SerializeCompiledModel(first), "a.htc", "cpu");
  ASSERT_TRUE(read.ok()) << read.status();
  std::map<std::string, std::string> origins;
  for (const proto::FieldOrigin& field : read->origins) {
    origins[field.path()] = field.origin();
  }
  const StrategyFile strategy =
      RestoreStrategy(read->strategy, origins, read->op_lists);
  const auto options = ResolveOptions(strategy, {});
  ASSERT_TRUE(options.ok()) << options.status();
  const auto again = Compile(read->WholeSource(), *options, AllKernels(), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fingerprint, first.fingerprint);
  EXPECT_EQ(Print(*again->program), Print(*first.program));
}

// ---- What is not trained.

TEST(CompileTest, WithoutAnOptimizerEvalAlone) {
  const CompiledModel model = MustCompile("", {{"amp.level", "O1", "--level"}});
  EXPECT_EQ(model.program->FindEntry(kTrainEntry), nullptr);
  const Entry* eval = model.program->FindEntry(kEvalEntry);
  ASSERT_NE(eval, nullptr);
  EXPECT_TRUE(eval->FindResult("logits").valid());
  EXPECT_TRUE(eval->FindResult(kLossSum).valid());
  // The down-casts of the input and of six weights, the logits' up-cast.
  EXPECT_EQ(model.casts.size(), 8);
  EXPECT_EQ(Fates(model.casts)["cell"], 6);
  EXPECT_EQ(FindOp(model, "bn1")->type(), "scale_bias");
  EXPECT_EQ(model.report.bucket_size(), 0);
}

constexpr char kNoLoss[] = R"(
feed { name: "x" dims: [-1, 8] }
param { name: "w" dims: [8, 8] init { constant: 1 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "y" } }
output: "y"
)";

TEST(CompileTest, WithoutALossEvalAlone) {
  const auto model = CompileText(
      kNoLoss, {{"amp.level", "O1", "--set"}, {"optimizer.sgd", "", "--set"}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->program->FindEntry(kTrainEntry), nullptr);
  EXPECT_NE(NoteOf(model->report, "P3"), "");
}

TEST(CompileTest, NotesAnUnusedParameterAndUselessLists) {
  const std::string text =
      absl::StrCat(kNoLoss,
                   "param { name: 'unused' dims: [4] init { constant: 1 } }\n"
                   "op { type: 'relu' in { slot: 'X' var: 'unused' } "
                   "out { slot: 'Out' var: 'aside' } }\n"
                   "op { type: 'mean' in { slot: 'X' var: 'y' } "
                   "out { slot: 'Out' var: 'loss' } }\n"
                   "loss { var: 'loss' mean_over: 'y' }\n");
  const auto model =
      CompileText(text, {{"optimizer.sgd", "", "--set"},
                         {"amp.custom_white_list", "relu", "--white"}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(
      NoteOf(model->report, "P1"),
      "the loss does not depend on unused, which is trainable: no update");
  EXPECT_NE(NoteOf(model->report, "P2"), "");
}

TEST(CompileTest, NotesOnSettingsWithoutEffect) {
  const std::string model =
      absl::StrCat(kNoLoss,
                   "op { type: 'mean' in { slot: 'X' var: 'y' } "
                   "out { slot: 'Out' var: 'loss' } }\n"
                   "loss { var: 'loss' mean_over: 'y' }\n");
  const auto compiled =
      CompileText(model, {{"amp.level", "O1", "--level"},
                          {"amp.custom_black_opnames", "*", "--black-op"},
                          {"amp.custom_black_list", "tanh", "--black"},
                          {"amp.custom_black_list", "mean", "--black"},
                          {"amp.scaler", "apex", "--set"},
                          {"amp.loss_scaling.incr_ratio", "3", "--set"}});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(NoteOf(compiled->report, "P4"),
            "--black: amp.custom_black_list: the model has no tanh: no effect");
  EXPECT_EQ(NoteOf(compiled->report, "P5"),
            "--set: amp.scaler: \"apex\" but for incr_ratio (--set): explicit "
            "fields win over the preset's");
  EXPECT_EQ(NoteOf(compiled->report, "P6"),
            "no op runs in f16: the level changes nothing");
  // And none where nothing is to be said.
  const auto quiet = MustCompile("models/mnist_o1.pbtxt");
  for (const char* code : {"P1", "P2", "P3", "P4", "P5", "P6", "P7"}) {
    EXPECT_EQ(NoteOf(quiet.report, code), "") << code;
  }
}

// What explain and bisect print of an op with a * in its name means that op.
TEST(CompileTest, ANameThatIsAGlobMeansItsOwnerAlone) {
  const std::string model = absl::StrCat(
      kNoLoss,
      "op { name: 'a*' type: 'matmul' in { slot: 'X' var: 'y' } in { slot: 'Y' "
      "var: 'w' } out { slot: 'Out' var: 'z' } }\n"
      "op { name: 'abc' type: 'matmul' in { slot: 'X' var: 'y' } in { slot: "
      "'Y' var: 'w' } out { slot: 'Out' var: 'v?' } }\n"
      "output: 'z' output: 'v?'\n");
  const auto precision = [&](const char* field, const char* glob,
                             const char* op) {
    const auto compiled = CompileText(
        model, {{"amp.level", "O1", "--level"}, {field, glob, "--set"}});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return FindOp(*compiled, op)->precision();
  };
  EXPECT_EQ(precision("amp.custom_black_opnames", "a*", "a*"), "f32");
  EXPECT_EQ(precision("amp.custom_black_opnames", "a*", "abc"), "f16");
  EXPECT_EQ(precision("amp.custom_black_opnames", "ab*", "abc"), "f32");
  EXPECT_EQ(precision("amp.custom_black_varnames", "v?", "abc"), "f32");
}

TEST(CompileTest, AGroupThatMatchesNothingIsAnError) {
  const auto read = ParseStrategy(
      "optimizer { sgd {}\n group { match: '*' }\n group { match: 'batch*' } }",
      "s.pbtxt");
  ASSERT_TRUE(read.ok()) << read.status();
  const auto options = ResolveOptions(*read, {});
  ASSERT_TRUE(options.ok()) << options.status();
  const auto file = ReadModel("models/mnist_convnet.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto model = Compile(*file, *options, AllKernels(), {});
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("s.pbtxt:3: optimizer.group: no parameter matches "
                        "\"batch*\""));
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel);
}

TEST(CompileTest, ErrorsNameTheStrategysLine) {
  const auto read = ParseStrategy(
      "amp { level: 'O1'\n custom_black_varnames: ['logit'] }", "s.pbtxt");
  ASSERT_TRUE(read.ok()) << read.status();
  const auto options = ResolveOptions(*read, {});
  ASSERT_TRUE(options.ok()) << options.status();
  const auto file = ReadModel("models/mnist_convnet.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto model = Compile(*file, *options, AllKernels(), {});
  EXPECT_EQ(model.status().message(),
            "s.pbtxt:2: amp.custom_black_varnames: no value matches "
            "\"logit\"; nearest: logits (pass assign-precision)");
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kModel);
}

// Inside of fusions, folded away, read by nobody: what is tapped stays.
TEST(CompileTest, TapsAreResultsOfTrain) {
  const std::vector<std::string> names = {
      "conv1",    "bn1",    "relu1",       "flat",      "x",
      "fc",       "logits", "ce",          "conv1.w",   "fc.b",
      "bn1.mean", "image",  "logits.grad", "conv1.grad"};
  CompileFlags flags = {.verify_each = true};
  const auto plain =
      CompileFiles("models/mnist_convnet.pbtxt", "models/mnist_o1.pbtxt");
  ASSERT_TRUE(plain.ok()) << plain.status();
  const Entry& without = *plain->program->FindEntry(kTrainEntry);
  int hidden = 0;
  for (const std::string& name : names) {
    flags.taps = {name};
    const auto model = CompileFiles("models/mnist_convnet.pbtxt",
                                    "models/mnist_o1.pbtxt", {}, flags);
    if (!without.block().FindValue(name).valid()) ++hidden;
    ASSERT_TRUE(model.ok()) << name << ": " << model.status();
    const Entry& train = *model->program->FindEntry(kTrainEntry);
    EXPECT_TRUE(train.FindResult(name).valid()) << name;
    EXPECT_EQ(model->casts.size(), plain->casts.size()) << name;
  }
  EXPECT_GT(hidden, 0);
}

TEST(CompileTest, ATapOfNothingIsRefused) {
  CompileFlags flags;
  flags.taps = {"logit"};
  const auto model = CompileFiles("models/mnist_convnet.pbtxt",
                                  "models/mnist_o1.pbtxt", {}, flags);
  EXPECT_EQ(ExitCodeOf(model.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("--fetch logit: the model has no value of that name in "
                        "training; nearest: logits"));
}

// ---- Metamorphic.

// The program without its reasons: what is executed.
std::string WithoutReasons(const Program& program) {
  std::unique_ptr<Program> copy = Clone(program);
  const Decision none{};
  for (const auto& entry : copy->entries()) {
    Block& block = entry->block();
    for (OpId id : block.ops()) block.mutable_op(id).decision = none;
  }
  return Print(*copy);
}

TEST(CompileTest, EverythingBlackListedIsTheFp32Program) {
  for (const char* name : {"mnist_convnet", "small_resnet", "mlp"}) {
    const std::string file = absl::StrCat("models/", name, ".pbtxt");
    const std::vector<Override> common = {
        {"amp.loss_scaling.init_loss_scaling", "1024", "--set"},
        {"amp.loss_scaling.use_dynamic_loss_scaling", "true", "--set"}};
    std::vector<Override> o0 = common, black = common;
    o0.push_back({"amp.level", "O0", "--level"});
    black.push_back({"amp.level", "O1", "--level"});
    black.push_back({"amp.custom_black_opnames", "*", "--black-op"});
    const auto a = CompileFiles(file, "models/mnist_fp32.pbtxt", o0);
    const auto b = CompileFiles(file, "models/mnist_fp32.pbtxt", black);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_EQ(a->casts.size(), 0);
    EXPECT_EQ(WithoutReasons(*a->program), WithoutReasons(*b->program));
  }
}

}  // namespace
}  // namespace passes
}  // namespace halftone
