#include "graph/zoo/source_names.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/zoo/zoo.h"

namespace halftone {
namespace {

constexpr absl::string_view kTorchvision = "torchvision";
constexpr absl::string_view kHuggingFace = "hf";
// github.com/milesial/Pytorch-UNet, with its transposed convolutions.
constexpr absl::string_view kPytorchUnet = "pytorch-unet";

using Pairs = std::vector<std::pair<absl::string_view, absl::string_view>>;

// A family: its models' names begin like this.
struct Family {
  absl::string_view prefix;
  absl::string_view convention;
  // Layers that are called otherwise; the others have their source's names.
  Pairs layers;
  // So do these tensors.
  Pairs tensors = {};
  bool transposes = true;
  // What the model without its head has not before its names.
  absl::string_view base = "";
};

const std::vector<Family>& Families() {
  static const auto& all = *new std::vector<Family>{
      {"resnet",
       kTorchvision,
       {{"/block", "."},
        {"/a_conv", ".conv1"},
        {"/a_bn", ".bn1"},
        {"/b_conv", ".conv2"},
        {"/b_bn", ".bn2"},
        {"/c_conv", ".conv3"},
        {"/c_bn", ".bn3"},
        {"/down_conv", ".downsample.0"},
        {"/down_bn", ".downsample.1"}}},
      {"vgg",
       kTorchvision,
       {{"fc6", "classifier.0"},
        {"fc7", "classifier.3"},
        {"fc8", "classifier.6"}}},
      {"mobilenet_v2", kTorchvision, {}},
      {"densenet121", kTorchvision, {}},
      {"efficientnet_b0", kTorchvision, {}},
      {"vit_",
       kTorchvision,
       {},
       {{"in_proj.weight", "in_proj_weight"},
        {"in_proj.bias", "in_proj_bias"}}},
      // PyTorch's own layers.
      {"lstm_", kTorchvision, {}},
      {"bert_", kHuggingFace, {}, {}, /*transposes=*/true, "bert."},
      // Its products are "Conv1D"s, whose weights lie as ours.
      {"gpt2", kHuggingFace, {}, {}, /*transposes=*/false, "transformer."},
      {"unet2d", kPytorchUnet, {}},
  };
  return all;
}

const Pairs& Suffixes() {
  static const auto& all = *new Pairs{
      {".w", ".weight"},        {".b", ".bias"},
      {".scale", ".weight"},    {".bias", ".bias"},
      {".table", ".weight"},    {".mean", ".running_mean"},
      {".var", ".running_var"},
  };
  return all;
}

// Layers that a pattern does not name: ours -> theirs.
using LayerNames = std::map<std::string, std::string>;

// vgg's features are counted through: a convolution, its norm and its
// rectifier, and a pool at the end of each stage.
LayerNames VggFeatures(absl::Span<const NamedTensor> tensors) {
  const bool batch_norm =
      absl::c_any_of(tensors, [](const NamedTensor& tensor) {
        return absl::StartsWith(tensor.name, "bn");
      });
  LayerNames features;
  const auto feature = [](int place) {
    return absl::StrCat("features.", place);
  };
  int next = 0;
  absl::string_view stage = "1";
  for (const NamedTensor& tensor : tensors) {
    absl::string_view layer = tensor.name;
    if (!absl::ConsumePrefix(&layer, "conv") ||
        !absl::ConsumeSuffix(&layer, ".w")) {
      continue;
    }
    const absl::string_view at = layer.substr(0, layer.find('_'));
    if (at != stage) ++next;  // the pool
    stage = at;
    features[absl::StrCat("conv", layer)] = feature(next++);
    if (batch_norm) features[absl::StrCat("bn", layer)] = feature(next++);
    ++next;
  }
  return features;
}

// Levels are counted downwards on either side, the first and the last apart.
LayerNames UnetLevels(absl::Span<const NamedTensor> tensors) {
  LayerNames names = {{"head", "outc.conv"}};
  const int depth =
      static_cast<int>(absl::c_count_if(tensors, [](const NamedTensor& tensor) {
        return absl::EndsWith(tensor.name, "/up.w");
      }));
  const auto twice = [&names](const std::string& ours, absl::string_view in) {
    const std::string theirs = absl::StrCat(in, "double_conv.");
    names[ours + "/1_conv"] = theirs + "0";
    names[ours + "/1_norm"] = theirs + "1";
    names[ours + "/2_conv"] = theirs + "3";
    names[ours + "/2_norm"] = theirs + "4";
  };
  for (int level = 0; level <= depth; ++level) {
    const std::string down =
        level == 0 ? "inc." : absl::StrCat("down", level, ".maxpool_conv.1.");
    twice(level == depth ? "bottom" : absl::StrCat("down", level), down);
    if (level == depth) break;
    const std::string ours = absl::StrCat("up", level);
    const std::string theirs = absl::StrCat("up", depth - level);
    names[ours + "/up"] = theirs + ".up";
    twice(ours, theirs + ".conv.");
  }
  return names;
}

const Family* FamilyOf(absl::string_view model, absl::string_view convention) {
  if (!absl::c_linear_search(ZooNames(), model)) return nullptr;
  for (const Family& family : Families()) {
    if (family.convention == convention &&
        absl::StartsWith(model, family.prefix)) {
      return &family;
    }
  }
  return nullptr;
}

// Without the base's name, and norms as the first BERTs, which TensorFlow
// wrote, have them.
std::vector<std::string> OtherSpellings(const Family& family,
                                        const std::string& name) {
  std::vector<std::string> others;
  absl::string_view bare = name;
  if (!family.base.empty() && absl::ConsumePrefix(&bare, family.base)) {
    others.emplace_back(bare);
  }
  for (const absl::string_view one : {absl::string_view(name), bare}) {
    std::string old =
        absl::StrReplaceAll(one, {{"LayerNorm.weight", "LayerNorm.gamma"},
                                  {"LayerNorm.bias", "LayerNorm.beta"}});
    if (old != one) others.push_back(std::move(old));
  }
  return others;
}

SourceName Rename(const Family& family, const NamedTensor& tensor,
                  const LayerNames& layers) {
  const size_t dot = tensor.name.rfind('.');
  if (dot == std::string::npos) return {tensor.name};
  std::string layer = tensor.name.substr(0, dot);
  std::string suffix = tensor.name.substr(dot);
  const auto named = layers.find(layer);
  if (named != layers.end()) {
    layer = named->second;
  } else {
    layer = absl::StrReplaceAll(layer, family.layers);
  }
  const bool transposed =
      family.transposes && suffix == ".w" && tensor.rank == 2;
  for (const auto& [ours, theirs] : Suffixes()) {
    if (suffix != ours) continue;
    suffix = std::string(theirs);
    break;
  }
  std::string name = absl::StrReplaceAll(layer + suffix, family.tensors);
  std::vector<std::string> others = OtherSpellings(family, name);
  return {std::move(name), std::move(others), transposed};
}

}  // namespace

std::vector<std::string> NamingConventions() {
  return {std::string(kTorchvision), std::string(kHuggingFace),
          std::string(kPytorchUnet)};
}

std::vector<std::string> ConventionsOf(absl::string_view model) {
  std::vector<std::string> conventions;
  for (const std::string& convention : NamingConventions()) {
    if (FamilyOf(model, convention) != nullptr) {
      conventions.push_back(convention);
    }
  }
  return conventions;
}

absl::StatusOr<std::vector<SourceName>> SourceNames(
    absl::string_view convention, absl::string_view model,
    absl::Span<const NamedTensor> tensors) {
  const std::vector<std::string> known = NamingConventions();
  if (!absl::c_linear_search(known, convention)) {
    return UsageError("no names are called \"", convention, "\"; expected ",
                      absl::StrJoin(known, " or "),
                      NearestHint(convention, known));
  }
  const Family* family = FamilyOf(model, convention);
  if (family == nullptr) {
    const std::vector<std::string> has = ConventionsOf(model);
    return UsageError(
        "model ", model, " has no names of ", convention,
        has.empty()
            ? "; only models of halftone zoo have, an imported one has its "
              "source's already"
            : absl::StrCat("; it has those of ", absl::StrJoin(has, " ")));
  }
  LayerNames layers;
  if (family->prefix == "vgg") layers = VggFeatures(tensors);
  if (family->prefix == "unet2d") layers = UnetLevels(tensors);
  std::vector<SourceName> names;
  names.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) {
    names.push_back(Rename(*family, tensor, layers));
  }
  return names;
}

}  // namespace halftone
