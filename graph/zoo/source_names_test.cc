#include "graph/zoo/source_names.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<NamedTensor> TensorsOf(const std::string& model) {
  std::vector<NamedTensor> tensors;
  const auto made = ZooModel(model);
  EXPECT_TRUE(made.ok()) << made.status();
  for (const proto::Parameter& param : made->param()) {
    tensors.push_back({param.name(), param.dims_size()});
  }
  for (const proto::Parameter& stat : made->stat()) {
    tensors.push_back({stat.name(), stat.dims_size()});
  }
  return tensors;
}

// "name", or "name^T".
std::string NameIn(absl::string_view convention, const std::string& model,
                   const std::string& tensor) {
  const std::vector<NamedTensor> tensors = TensorsOf(model);
  const auto names = SourceNames(convention, model, tensors);
  EXPECT_TRUE(names.ok()) << names.status();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name != tensor) continue;
    return (*names)[i].name + ((*names)[i].transposed ? "^T" : "");
  }
  return "none";
}

// From the keys of torchvision's state_dict.
TEST(SourceNamesTest, Torchvision) {
  const struct {
    const char *model, *ours, *theirs;
  } cases[] = {
      {"resnet18", "conv1.w", "conv1.weight"},
      {"resnet18", "bn1.var", "bn1.running_var"},
      {"resnet18", "layer2/block0/b_conv.w", "layer2.0.conv2.weight"},
      {"resnet18", "layer2/block0/down_bn.scale",
       "layer2.0.downsample.1.weight"},
      {"resnet50", "layer4/block2/c_bn.mean", "layer4.2.bn3.running_mean"},
      {"resnet50", "layer1/block0/down_conv.w", "layer1.0.downsample.0.weight"},
      {"resnet50", "fc.w", "fc.weight^T"},
      {"resnet50", "fc.b", "fc.bias"},
      {"vgg11", "conv3_2.w", "features.8.weight"},
      {"vgg16", "conv1_1.b", "features.0.bias"},
      {"vgg16", "conv5_3.w", "features.28.weight"},
      {"vgg16", "fc7.w", "classifier.3.weight^T"},
      {"vgg16_bn", "conv5_3.w", "features.40.weight"},
      {"vgg16_bn", "bn5_3.scale", "features.41.weight"},
      {"vgg16_bn", "bn2_1.mean", "features.8.running_mean"},
      {"mobilenet_v2", "features.18.1.bias", "features.18.1.bias"},
      {"mobilenet_v2", "features.1.conv.1.w", "features.1.conv.1.weight"},
      {"mobilenet_v2", "classifier.1.w", "classifier.1.weight^T"},
      {"densenet121", "features.denseblock4.denselayer16.conv2.w",
       "features.denseblock4.denselayer16.conv2.weight"},
      {"densenet121", "features.norm5.mean", "features.norm5.running_mean"},
      {"efficientnet_b0", "features.1.0.block.1.fc1.w",
       "features.1.0.block.1.fc1.weight"},
      {"efficientnet_b0", "features.7.0.block.3.1.scale",
       "features.7.0.block.3.1.weight"},
      {"lstm_lm", "encoder.table", "encoder.weight"},
      {"lstm_lm", "rnn.weight_hh_l1", "rnn.weight_hh_l1"},
      {"lstm_lm", "decoder.w", "decoder.weight^T"},
      {"lstm_classifier", "lstm.bias_ih_l0_reverse", "lstm.bias_ih_l0_reverse"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(NameIn("torchvision", c.model, c.ours), c.theirs)
        << c.model << " " << c.ours;
  }
}

// From the keys of github.com/milesial/Pytorch-UNet's state_dict.
TEST(SourceNamesTest, PytorchUnet) {
  const struct {
    const char *ours, *theirs;
  } cases[] = {
      {"down0/1_conv.w", "inc.double_conv.0.weight"},
      {"down0/2_norm.mean", "inc.double_conv.4.running_mean"},
      {"down1/2_conv.w", "down1.maxpool_conv.1.double_conv.3.weight"},
      {"bottom/1_norm.scale", "down4.maxpool_conv.1.double_conv.1.weight"},
      {"up3/up.b", "up1.up.bias"},
      {"up3/1_conv.w", "up1.conv.double_conv.0.weight"},
      {"up0/2_norm.var", "up4.conv.double_conv.4.running_var"},
      {"head.b", "outc.conv.bias"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(NameIn("pytorch-unet", "unet2d", c.ours), c.theirs) << c.ours;
  }
}

// From the keys of files that BertModel and GPT2Model save, and of those of
// huggingface.co/bert-base-uncased and gpt2.
TEST(SourceNamesTest, HuggingFaceHasSeveralSpellings) {
  const auto others = [](const std::string& model, const char* tensor) {
    return SourceNames("hf", model, {{tensor, 1}})->at(0).others;
  };
  const char* const norm = "encoder.layer.0.output.LayerNorm.";
  EXPECT_THAT(
      others("bert_base", "bert.encoder.layer.0.output.LayerNorm.scale"),
      UnorderedElementsAre(absl::StrCat(norm, "weight"),
                           absl::StrCat(norm, "gamma"),
                           absl::StrCat("bert.", norm, "gamma")));
  EXPECT_THAT(others("bert_base", "bert.encoder.layer.0.output.LayerNorm.bias"),
              Contains(absl::StrCat("bert.", norm, "beta")));
  EXPECT_THAT(others("bert_base", "classifier.w"), IsEmpty());
  EXPECT_THAT(others("gpt2", "transformer.ln_f.scale"),
              ElementsAre("ln_f.weight"));
  EXPECT_THAT(
      SourceNames("torchvision", "resnet18", {{"bn1.scale", 1}})->at(0).others,
      IsEmpty());
}

TEST(SourceNamesTest, NoTwoTensorsShareAName) {
  for (const std::string& model : ZooNames()) {
    for (const std::string& convention : ConventionsOf(model)) {
      const std::vector<NamedTensor> tensors = TensorsOf(model);
      const auto names = SourceNames(convention, model, tensors);
      ASSERT_TRUE(names.ok()) << names.status();
      std::set<std::string> all;
      for (const SourceName& name : *names) {
        all.insert(name.name);
        EXPECT_FALSE(absl::StrContains(name.name, "/")) << name.name;
      }
      EXPECT_EQ(all.size(), tensors.size()) << model;
    }
  }
}

TEST(SourceNamesTest, WhatHasNone) {
  const auto error = [](absl::string_view convention, const char* model) {
    const absl::Status status = SourceNames(convention, model, {}).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage);
    return std::string(status.message());
  };
  EXPECT_THAT(error("torchvison", "resnet18"),
              HasSubstr("nearest: torchvision"));
  EXPECT_THAT(error("hf", "resnet18"), HasSubstr("those of torchvision"));
  EXPECT_THAT(error("torchvision", "mine"), HasSubstr("halftone zoo"));
  EXPECT_THAT(error("torchvision", "mlp"), HasSubstr("no names of"));
  // Of another's that is called alike.
  EXPECT_THAT(error("torchvision", "resnet_of_mine"), HasSubstr("no names of"));
}

}  // namespace
}  // namespace halftone
