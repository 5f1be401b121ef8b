#include "graph/zoo/zoo.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_printer.h"
#include "graph/io/model_reader.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

std::unique_ptr<Program> Build(const std::string& name) {
  const auto model = ZooModel(name);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto file = ParseModel(PrintModel(*model), name);
  EXPECT_TRUE(file.ok()) << file.status();
  auto program = BuildProgram(*file);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : nullptr;
}

struct Counts {
  int64_t values = 0;
  int tensors = 0;
  int64_t norm_values = 0;  // of scales and biases
  int convs = 0, norms = 0;
};

Counts Count(const Program& program) {
  Counts counts;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (!cell.trainable) continue;
    const int64_t n = cell.type.Elements().coefficient();
    counts.values += n;
    ++counts.tensors;
    if (absl::EndsWith(cell.name, ".scale") ||
        absl::EndsWith(cell.name, ".bias")) {
      counts.norm_values += n;
    }
  }
  const Block& block = program.entries()[0]->block();
  for (OpId id : block.ops()) {
    const std::string& type = block.op(id).schema->name();
    counts.convs += type == "conv2d";
    counts.norms += type == "batch_norm";
  }
  return counts;
}

TEST(ZooTest, PrintingKeepsEveryModel) {
  for (const std::string& name : ZooNames()) {
    const auto model = ZooModel(name);
    ASSERT_TRUE(model.ok());
    const auto file = ParseModel(PrintModel(*model), name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->model->SerializeAsString(), model->SerializeAsString())
        << name;
  }
}

// The published counts (torchvision's models of the same names).
TEST(ZooTest, ResNet50) {
  const auto program = Build("resnet50");
  ASSERT_NE(program, nullptr);
  const Counts counts = Count(*program);
  EXPECT_EQ(counts.values, 25557032);
  EXPECT_EQ(counts.tensors, 161);
  EXPECT_EQ(counts.convs, 53);
  EXPECT_EQ(counts.norms, 53);
  EXPECT_EQ(counts.norm_values, 53120);
  const Block& block = program->entries()[0]->block();
  const ValueId pooled = block.FindValue("pool");
  EXPECT_EQ(ToString(block.type(pooled), program->symbols()),
            "f32[B,2048,1,1]");
}

// Version 1.5: a block halves the image in its 3x3, not in its first 1x1.
TEST(ZooTest, ResNet50HalvesIn3x3) {
  const auto model = ZooModel("resnet50");
  ASSERT_TRUE(model.ok());
  std::vector<std::string> halving;
  for (const proto::OpNode& op : model->op()) {
    if (op.type() != "conv2d") continue;
    for (const proto::Attribute& attr : op.attr()) {
      if (attr.name() == "strides") halving.push_back(op.out(0).var(0));
    }
  }
  EXPECT_THAT(halving,
              testing::ElementsAre(
                  "conv1", "layer2/block0/b_conv", "layer2/block0/down_conv",
                  "layer3/block0/b_conv", "layer3/block0/down_conv",
                  "layer4/block0/b_conv", "layer4/block0/down_conv"));
}

// torchvision's models of the same names, and Hugging Face's.
TEST(ZooTest, ParametersArePublishedOnes) {
  const std::pair<const char*, int64_t> published[] = {
      {"resnet18", 11689512},
      {"resnet34", 21797672},
      {"resnet50", 25557032},
      {"resnet101", 44549160},
      {"vgg11", 132863336},
      {"vgg11_bn", 132868840},
      {"vgg16", 138357544},
      {"vgg16_bn", 138365992},
      {"mobilenet_v2", 3504872},
      {"densenet121", 7978856},
      {"efficientnet_b0", 5288548},
      {"vit_s_16", 22050664},
      {"vit_b_16", 86567656},
      // Hugging Face's BertForSequenceClassification and GPT2LMHeadModel.
      {"bert_base", 109483778},
      {"bert_large", 335143938},
      {"gpt2", 124439808},
      {"gpt2_medium", 354823168},
      // PyTorch's nn.Embedding, nn.LSTM and nn.Linear of these sizes.
      {"lstm_lm", 19780400},
      {"lstm_classifier", 2758914},
  };
  for (const auto& [name, values] : published) {
    const auto program = Build(name);
    ASSERT_NE(program, nullptr);
    EXPECT_EQ(Count(*program).values, values) << name;
  }
}

// BertForPreTraining: the decoder is the embedding.
TEST(ZooTest, PretrainingHead) {
  ZooOptions options;
  options.head = "pretraining";
  const auto model = ZooModel("bert_base", options);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto file = ParseModel(PrintModel(*model), "bert");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto program = BuildProgram(*file);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Count(**program).values, 110106428);
  options.head = "pretrained";
  EXPECT_EQ(ExitCodeOf(ZooModel("bert_base", options).status()),
            ExitCode::kUsage);
  EXPECT_FALSE(ZooModel("gpt2", options).ok());
}

// By hand: the convolutions of 3 x 3 (x 3), their norms, those that double the
// size, and the head.
TEST(ZooTest, UNetsInEachDimensionAndNorm) {
  EXPECT_EQ(Count(*Build("unet2d")).values, 31037698);
  EXPECT_EQ(Count(*Build("unet3d")).values, 5601154);
  for (const char* norm : {"batch", "sync", "group"}) {
    ZooOptions options;
    options.norm = norm;
    options.image_size = 32;
    options.width = 8;
    options.classes = 4;
    const auto model = ZooModel("unet3d", options);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto file = ParseModel(PrintModel(*model), "unet3d");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto program = BuildProgram(*file);
    ASSERT_TRUE(program.ok()) << norm << " " << program.status();
    const Block& block = (*program)->entries()[0]->block();
    EXPECT_EQ(
        ToString(block.type(block.FindValue("logits")), (*program)->symbols()),
        "f32[B,32,32,32,4]");
  }
  // Groups divide the channels of every width.
  for (const int64_t width : {1, 3, 6, 12, 20}) {
    for (const char* name : {"unet2d", "unet3d"}) {
      ZooOptions options;
      options.norm = "group";
      options.width = width;
      const auto model = ZooModel(name, options);
      ASSERT_TRUE(model.ok()) << model.status();
      const auto file = ParseModel(PrintModel(*model), name);
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_TRUE(BuildProgram(*file).ok()) << name << " " << width;
    }
  }
  ZooOptions odd;
  odd.image_size = 36;
  EXPECT_EQ(ExitCodeOf(ZooModel("unet2d", odd).status()), ExitCode::kUsage);
  odd.image_size = 48;
  odd.norm = "layer";
  EXPECT_EQ(ExitCodeOf(ZooModel("unet2d", odd).status()), ExitCode::kUsage);
}

TEST(ZooTest, Vgg16HasABiasPerLayer) {
  const auto program = Build("vgg16");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(Count(*program).tensors, 32);
}

TEST(ZooTest, OtherSizes) {
  ZooOptions sizes;
  sizes.image_size = 64;
  sizes.classes = 10;
  for (const std::string& name : ZooNames()) {
    if (!absl::c_linear_search(ZooOptionNames(name), "image-size")) continue;
    const auto model = ZooModel(name, sizes);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto file = ParseModel(PrintModel(*model), name);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto program = BuildProgram(*file);
    ASSERT_TRUE(program.ok()) << program.status();
    const Block& block = (*program)->entries()[0]->block();
    const auto type = [&](absl::string_view value) {
      return ToString(block.type(block.FindValue(value)),
                      (*program)->symbols());
    };
    if (absl::StartsWith(name, "unet")) continue;
    EXPECT_EQ(type("image"), "u8[B,3,64,64]") << name;
    EXPECT_EQ(type("logits"), "f32[B,10]") << name;
    // Of so few classes the best five say little.
    EXPECT_EQ(model->metric_size(), 1) << name;
  }
}

TEST(ZooTest, WidthIsThatOfTheFirstLayer) {
  ZooOptions sizes;
  sizes.width = 16;
  const auto model = ZooModel("resnet18", sizes);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->param(0).dims(0), 16);
}

TEST(ZooTest, SizesThatCannotBe) {
  ZooOptions layers;
  layers.layers = 3;
  const absl::Status taken = ZooModel("resnet18", layers).status();
  EXPECT_EQ(ExitCodeOf(taken), ExitCode::kUsage);
  EXPECT_TRUE(absl::StrContains(taken.message(),
                                "it takes --image-size --classes --width"))
      << taken;
  EXPECT_FALSE(ZooModel("mlp", layers).ok());
  for (const int64_t size : {int64_t{-1}, int64_t{31}, int64_t{1} << 60}) {
    ZooOptions sizes;
    sizes.image_size = size;
    EXPECT_EQ(ExitCodeOf(ZooModel("vgg11", sizes).status()), ExitCode::kUsage);
  }
}

// The deepest model's text, by what a block takes of it.
TEST(ZooTest, WhatCanBeWrittenCanBeRead) {
  constexpr int64_t kMostLayers = 1 << 15;
  const auto bytes = [](const std::string& name, int64_t layers) {
    ZooOptions options;
    options.layers = layers;
    options.width = 1 << 20;
    const auto model = ZooModel(name, options);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? static_cast<int64_t>(PrintModel(*model).size()) : 0;
  };
  int tried = 0;
  for (const std::string& name : ZooNames()) {
    if (!absl::c_linear_search(ZooOptionNames(name), "layers")) continue;
    const int64_t block = (bytes(name, 30) - bytes(name, 20)) / 10;
    // And some digits more in the names of later ones.
    EXPECT_LT((block + 200) * kMostLayers, kMaxModelBytes) << name;
    ZooOptions options;
    options.layers = kMostLayers + 1;
    const absl::Status status = ZooModel(name, options).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  "--layers 32769: expected 1 to 32768"))
        << status;
    ++tried;
  }
  EXPECT_GT(tried, 3);
}

TEST(ZooTest, MnistConvnet) {
  const auto program = Build("mnist_convnet");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(Count(*program).values, 29034);
  EXPECT_EQ(Count(*program).tensors, 10);
}

TEST(ZooTest, TheFilesInModelsAreTheZoos) {
  for (const std::string name : {"mnist_convnet", "mlp", "small_resnet"}) {
    const auto content = ReadFile(absl::StrCat("models/", name, ".pbtxt"));
    ASSERT_TRUE(content.ok()) << content.status();
    std::string without_comments;
    for (absl::string_view line : absl::StrSplit(*content, '\n')) {
      if (!absl::StartsWith(line, "#") && !line.empty()) {
        absl::StrAppend(&without_comments, line, "\n");
      }
    }
    EXPECT_EQ(without_comments, PrintModel(*ZooModel(name)));
    EXPECT_NE(Build(name), nullptr);
  }
}

TEST(ZooTest, AnUnknownNameGetsTheNearest) {
  const absl::Status status = ZooModel("resnet5").status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
  EXPECT_TRUE(absl::StrContains(status.message(), "nearest: resnet50"));
}

}  // namespace
}  // namespace halftone
