#include "graph/io/model_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

// Lines 1 to 10 of every model here unless it is given as a whole.
constexpr char kModel[] = R"(name: "tiny" format: 1
feed { name: "image" dtype: F32 dims: [-1, 4] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [4, 3] init { constant: 0.5 } }
op { type: "matmul" name: "fc" in { slot: "X" var: "image" } in { slot: "Y" var: "w" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
op { type: "correct_count" in { slot: "X" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Out" var: "correct" } }
loss { var: "loss" mean_over: "ce" }
metric { name: "top1" var: "correct" over: "label" }
)";

absl::StatusOr<std::unique_ptr<Program>> Build(absl::string_view text) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(text, "m.pbtxt"));
  return BuildProgram(file);
}

TEST(ModelReaderTest, BuildsTheForwardProgram) {
  const auto program = Build(kModel);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(
      Print(**program),
      "program \"tiny\" dim B\n"
      "loss loss over ce\n"
      "metric top1 = correct over label\n"
      "cell w : f32[4,3] parameter trainable applied init=constant(0.5) "
      "line=4\n"
      "entry train {\n"
      "  feed image : f32[B,4]\n"
      "  feed label : i64[B]\n"
      "  fc: matmul(X=image, Y=w) -> (Out=logits : f32[B,3])   forward line=5\n"
      "  ce: softmax_with_cross_entropy(Logits=logits, Label=label) -> "
      "(Loss=ce "
      ": f32[B])   forward line=6\n"
      "  loss: mean(X=ce) -> (Out=loss : f32[])   forward line=7\n"
      "  correct: correct_count(X=logits, Label=label) -> (Out=correct : i64[])"
      "   forward line=8\n"
      "}\n");
}

TEST(ModelReaderTest, TheMnistConvnet) {
  const auto file = ReadModel("models/mnist_convnet.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->op_lines[0], 8);
  EXPECT_EQ(file->op_lines[1], 9);
  EXPECT_EQ(file->op_lines[2], 11);
  const auto program = BuildProgram(*file);
  ASSERT_TRUE(program.ok()) << program.status();
  const Block& block = (*program)->entries()[0]->block();
  EXPECT_EQ(block.num_ops(), 15);
  int64_t parameters = 0;
  for (int i = 0; i < (*program)->num_cells(); ++i) {
    const Cell& cell = (*program)->cell(CellId(i));
    if (cell.trainable) parameters += cell.type.Elements().coefficient();
  }
  EXPECT_EQ(parameters, 29034);
  for (const char* op : {"x", "conv1", "bn1", "fc", "ce", "loss", "correct"}) {
    EXPECT_TRUE(block.FindOp(op).valid()) << op;
  }
}

TEST(ModelReaderTest, TextAndBinaryAreTheSameModel) {
  const auto text = ParseModel(kModel, "m.pbtxt");
  ASSERT_TRUE(text.ok());
  const auto binary = ParseModel(text->model->SerializeAsString(), "m.pb");
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(binary->model->SerializeAsString(),
            text->model->SerializeAsString());
  EXPECT_TRUE(binary->op_lines.empty());
  const auto marked = ParseModel(absl::StrCat("\xef\xbb\xbf", kModel), "m");
  ASSERT_TRUE(marked.ok()) << marked.status();
  EXPECT_EQ(marked->model->SerializeAsString(),
            text->model->SerializeAsString());
  const auto program = BuildProgram(*binary);
  ASSERT_TRUE(program.ok()) << program.status();
}

TEST(ModelReaderTest, OpsInAnyOrderKeepTheFilesWhereItIsPossible) {
  // d needs c, which stands last; a and b stay where they are.
  const auto program = Build(R"(
feed { name: "x" dims: [-1] }
op { type: "relu" in { slot: "X" var: "x" } out { slot: "Out" var: "a" } }
op { type: "relu" in { slot: "X" var: "c" } out { slot: "Out" var: "d" } }
op { type: "relu" in { slot: "X" var: "a" } out { slot: "Out" var: "b" } }
op { type: "relu" in { slot: "X" var: "b" } out { slot: "Out" var: "c" } }
output: "d")");
  ASSERT_TRUE(program.ok()) << program.status();
  const Block& block = (*program)->entries()[0]->block();
  std::string order;
  for (OpId id : block.ops()) absl::StrAppend(&order, block.name(block.op(id)));
  EXPECT_EQ(order, "abcd");
}

TEST(ModelReaderTest, LinesOfEveryWayToWriteAField) {
  const auto file = ParseModel(
      "# op { }\nname: 'op { }' \"}\\\"\" feed { name: \"x\" } op\n{ type: "
      "\"a\" "
      "}\nop: [ { type: \"b\" },\n {} ] op < type: \"c\" > output: \"x\"\n"
      "loss {\n} stat { init { constant: 1 } }",
      "m");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->op_lines, std::vector<int>({2, 4, 5, 5}));
  EXPECT_EQ(file->feed_lines, std::vector<int>({2}));
  EXPECT_EQ(file->stat_lines, std::vector<int>({7}));
  EXPECT_EQ(file->loss_lines, std::vector<int>({6}));
  EXPECT_EQ(file->output_lines, std::vector<int>({5}));
}

TEST(ModelReaderTest, DropoutDrawsFromAStreamOfItsName) {
  const auto program = Build(R"(
feed { name: "x" dims: [-1] }
op { type: "dropout" in { slot: "X" var: "x" } out { slot: "Out" var: "a" } }
op { type: "dropout" in { slot: "X" var: "x" } out { slot: "Out" var: "b" } attr { name: "stream" i: 5 } }
output: "a" output: "b")");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = Print(**program);
  EXPECT_THAT(text, HasSubstr("{stream=5}"));
  EXPECT_THAT(text,
              testing::ContainsRegex("Out=a .*\\{stream=[0-9]+[13579]\\}"));
  EXPECT_THAT(text, HasSubstr("Seed=@seed, Step=@attempted"));
}

TEST(ModelReaderTest, OlderNamesOfAttributes) {
  const auto program = Build(R"(
feed { name: "x" dims: [-1, 2, 3, 4] }
op { type: "dropout" in { slot: "X" var: "x" } out { slot: "Out" var: "a" } attr { name: "dropout_prob" f: 0.25 } }
op { type: "transpose2" in { slot: "X" var: "x" } out { slot: "Out" var: "b" } attr { name: "perm" ints: [0, 2, 3, 1] } }
op { type: "pool2d" in { slot: "X" var: "x" } out { slot: "Out" var: "c" }
     attr { name: "adaptive" b: true } attr { name: "global_pooling" b: false } attr { name: "ksize" ints: [1, 1] } }
op { type: "slice" in { slot: "X" var: "x" } out { slot: "Out" var: "d" } attr { name: "axis" i: 2 } attr { name: "start" i: 1 } }
output: "a" output: "b" output: "c" output: "d")");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = Print(**program);
  EXPECT_THAT(text, HasSubstr("{p=0.25, "));
  EXPECT_THAT(text, HasSubstr("Out=b : f32[B,3,4,2]"));
  EXPECT_THAT(text, HasSubstr("Out=c : f32[B,2,1,1]"));
  EXPECT_THAT(text, HasSubstr("slice(Input=x) -> (Out=d : f32[B,2,2,4]) "
                              "{axes=[2], starts=[1]}"));
}

TEST(ModelReaderTest, KeepsAnAliasThatListsTellApart) {
  const auto program = Build(R"(
feed { name: "x" dims: [-1, 8] }
op { type: "top_k_v2" in { slot: "X" var: "x" } out { slot: "Out" var: "a" } }
op { type: "top_k" in { slot: "X" var: "x" } out { slot: "Out" var: "b" } }
op { type: "matmul_v2" in { slot: "X" var: "a" } in { slot: "Y" var: "b" } out { slot: "Out" var: "c" } attr { name: "trans_y" b: true } }
output: "c")");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = Print(**program);
  EXPECT_THAT(text, testing::ContainsRegex("Out=a .*written_as=.top_k_v2"));
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("Out=b .*written_as")));
}

TEST(ModelReaderTest, WithoutALossThereIsStillAnOutput) {
  std::string text = absl::StrReplaceAll(
      kModel, {{"loss { var: \"loss\" mean_over: \"ce\" }", ""}});
  const auto program = Build(text);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->loss.var, "");
}

TEST(DetectKindTest, ByContent) {
  const auto kind = [](absl::string_view content) {
    return DetectKind(content, "f").value();
  };
  EXPECT_EQ(kind(kModel), FileKind::kModelText);
  EXPECT_EQ(kind("# c\n\nprogram \"p\"\n"), FileKind::kTextForm);
  EXPECT_EQ(kind(ParseModel(kModel, "m")->model->SerializeAsString()),
            FileKind::kModelBinary);
  EXPECT_EQ(kind("\x0a\x17halftone-compiled-model\x10\x01"),
            FileKind::kCompiledModel);
  EXPECT_EQ(kind("feeed { }"), FileKind::kModelText);  // the parser says more
}

TEST(DetectKindTest, NamesWhatAFileSeemsToBe) {
  const auto message = [](absl::string_view content) {
    const auto kind = DetectKind(content, "f");
    EXPECT_EQ(ExitCodeOf(kind.status()), ExitCode::kModel);
    return std::string(kind.status().message());
  };
  EXPECT_THAT(message(""), HasSubstr("found an empty file"));
  EXPECT_THAT(message(" \n# c\n"), HasSubstr("nothing but blanks"));
  EXPECT_THAT(message("amp { level: \"O1\" }"),
              HasSubstr("a strategy: pass it with --strategy"));
  EXPECT_THAT(message("# s\nlr { base: 1 }"), HasSubstr("a strategy"));
  EXPECT_THAT(message("\x1f\x8b\x08"), HasSubstr("a gzip archive"));
  EXPECT_THAT(message("op_lists { }"), HasSubstr("op lists"));
  EXPECT_THAT(message("{\"a\": 1}"), HasSubstr("JSON"));
  EXPECT_THAT(message(std::string("\x10\0\0\0\0\0\0\0{\"a\":0}", 16)),
              HasSubstr("safetensors"));
  EXPECT_THAT(message(std::string("\0\0\x08\x03", 4)), HasSubstr("no kind"));
}

// Their first bytes tell little: an ONNX model begins with its version, a
// program of Paddle's with a tag that our own models have.
TEST(DetectKindTest, ModelsToImportAreKnownByTheirNames) {
  for (const std::string file : {"net.onnx", "net.pdmodel"}) {
    for (const char* const bytes : {"\x08\x07", "\n\x02\x08"}) {
      const auto kind = DetectKind(bytes, file);
      EXPECT_EQ(ExitCodeOf(kind.status()), ExitCode::kModel);
      EXPECT_THAT(std::string(kind.status().message()),
                  HasSubstr("; halftone import " + file));
    }
    // Ours, if somebody calls it so.
    EXPECT_EQ(DetectKind("name: 'm'", file).value(), FileKind::kModelText);
  }
}

}  // namespace
}  // namespace halftone
