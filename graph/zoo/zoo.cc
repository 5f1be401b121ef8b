#include "graph/zoo/zoo.h"

#include <algorithm>
#include <functional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/zoo/families.h"

namespace halftone {
namespace {

struct Size {
  const char* flag;
  std::optional<int64_t> ZooOptions::*size;
  int64_t least;  // that any model can have
  int64_t most;
};
// Far beyond any; products do not overflow.
constexpr int64_t kMost = 1 << 20;
// A block takes several kilobytes as text, and readers take 512 MiB.
constexpr int64_t kMostLayers = 1 << 15;
constexpr Size kSizes[] = {
    {"image-size", &ZooOptions::image_size, 32, kMost},
    {"classes", &ZooOptions::classes, 2, kMost},
    {"layers", &ZooOptions::layers, 1, kMostLayers},
    {"width", &ZooOptions::width, 1, kMost},
    {"sequence", &ZooOptions::sequence, 1, kMost},
};

struct Word {
  const char* flag;
  std::string ZooOptions::*word;
  std::vector<std::string> words;
};
const std::vector<Word>& Words() {
  static const auto& all = *new std::vector<Word>{
      {"head", &ZooOptions::head, {"pretraining", "classification"}},
      {"norm", &ZooOptions::norm, {"batch", "sync", "group"}},
  };
  return all;
}

struct Entry {
  const char* name;
  std::function<proto::Model(const ZooOptions&)> make;
  const char* strategy;                 // of models/
  std::vector<std::string> takes = {};  // flags
  int64_t patch = 1;                    // divides the image's size
};

Entry ResNet(const char* name, std::vector<int> blocks, bool bottleneck) {
  return {name,
          [=](const ZooOptions& sizes) {
            return zoo::ResNet(name, blocks, bottleneck, sizes);
          },
          "resnet_o1",
          {"image-size", "classes", "width"}};
}

Entry Vgg(const char* name, std::vector<int> convs, bool batch_norm) {
  return {name,
          [=](const ZooOptions& sizes) {
            return zoo::Vgg(name, convs, batch_norm, sizes);
          },
          "vgg_o1",
          {"image-size", "classes", "width"}};
}

Entry UNet(const char* name, int64_t directions, int64_t depth,
           const zoo::UNetSizes& sizes) {
  return {name,
          [=](const ZooOptions& options) {
            return zoo::UNet(name, directions, depth, sizes, options);
          },
          "unet_o1",
          {"image-size", "classes", "width", "norm"},
          int64_t{1} << depth};
}

Entry Vit(const char* name, int64_t width) {
  return {name,
          [=](const ZooOptions& options) {
            return zoo::VisionTransformer(name, width, options);
          },
          "vit_o1",
          {"image-size", "classes", "layers", "width"},
          /*patch=*/16};
}

Entry Bert(const char* name, int64_t layers, int64_t width) {
  return {name,
          [=](const ZooOptions& options) {
            return zoo::Bert(name, layers, width, options);
          },
          "bert_o1",
          {"classes", "layers", "width", "sequence", "head"}};
}

Entry Gpt2(const char* name, int64_t layers, int64_t width) {
  return {name,
          [=](const ZooOptions& options) {
            return zoo::Gpt2(name, layers, width, options);
          },
          "gpt2_o1",
          {"layers", "width", "sequence"}};
}

const std::vector<Entry>& Zoo() {
  static const auto& all = *new std::vector<Entry>{
      {"mnist_convnet", [](const ZooOptions&) { return zoo::MnistConvnet(); },
       "mnist_o1"},
      {"mlp", [](const ZooOptions&) { return zoo::Mlp(); }, "mnist_o2"},
      {"small_resnet", [](const ZooOptions&) { return zoo::SmallResnet(); },
       "mnist_o1"},
      ResNet("resnet18", {2, 2, 2, 2}, false),
      ResNet("resnet34", {3, 4, 6, 3}, false),
      ResNet("resnet50", {3, 4, 6, 3}, true),
      ResNet("resnet101", {3, 4, 23, 3}, true),
      Vgg("vgg11", {1, 1, 2, 2, 2}, false),
      Vgg("vgg11_bn", {1, 1, 2, 2, 2}, true),
      Vgg("vgg16", {2, 2, 3, 3, 3}, false),
      Vgg("vgg16_bn", {2, 2, 3, 3, 3}, true),
      {"mobilenet_v2",
       zoo::MobileNetV2,
       "mobilenet_o1",
       {"image-size", "classes"}},
      {"densenet121",
       zoo::DenseNet121,
       "densenet_o1",
       {"image-size", "classes"}},
      {"efficientnet_b0",
       zoo::EfficientNetB0,
       "efficientnet_o1",
       {"image-size", "classes"}},
      Vit("vit_s_16", 384),
      Vit("vit_b_16", 768),
      UNet("unet2d", 2, 4, {256, 3, 64}),
      UNet("unet3d", 3, 3, {64, 1, 32}),
      Bert("bert_base", 12, 768),
      Bert("bert_large", 24, 1024),
      Gpt2("gpt2", 12, 768),
      Gpt2("gpt2_medium", 24, 1024),
      {"lstm_lm",
       zoo::LstmLanguageModel,
       "lstm_lm_o1",
       {"classes", "layers", "width", "sequence"}},
      {"lstm_classifier",
       zoo::LstmClassifier,
       "lstm_classifier_o1",
       {"classes", "layers", "width", "sequence"}},
  };
  return all;
}

absl::StatusOr<const Entry*> Find(absl::string_view name) {
  for (const Entry& entry : Zoo()) {
    if (entry.name == name) return &entry;
  }
  return UsageError("no model is called \"", name, "\"",
                    NearestHint(name, ZooNames()),
                    " (all: ", absl::StrJoin(ZooNames(), " "), ")");
}

absl::Status CheckTaken(const Entry& entry, const char* flag) {
  if (absl::c_linear_search(entry.takes, flag)) return absl::OkStatus();
  return UsageError(
      "--", flag, ": ", entry.name, " does not take it; it takes ",
      entry.takes.empty() ? "nothing"
                          : "--" + absl::StrJoin(entry.takes, " --"));
}

absl::Status CheckOptions(const Entry& entry, const ZooOptions& options) {
  for (const Size& size : kSizes) {
    const std::optional<int64_t>& given = options.*size.size;
    if (!given) continue;
    HT_RETURN_IF_ERROR(CheckTaken(entry, size.flag));
    const bool patches =
        size.size == &ZooOptions::image_size && entry.patch > 1;
    const int64_t least = patches ? entry.patch : size.least;
    if (*given < least || *given > size.most) {
      return UsageError("--", size.flag, " ", *given, ": expected ", least,
                        " to ", size.most);
    }
  }
  const int64_t size = options.image_size.value_or(0);
  if (size % entry.patch != 0) {
    return UsageError("--image-size ", size, ": expected a multiple of ",
                      entry.patch, " for ", entry.name);
  }
  for (const Word& word : Words()) {
    const std::string& given = options.*word.word;
    if (given.empty()) continue;
    HT_RETURN_IF_ERROR(CheckTaken(entry, word.flag));
    if (absl::c_linear_search(word.words, given)) continue;
    return UsageError("--", word.flag, " ", given, ": expected ",
                      absl::StrJoin(word.words, ", "),
                      NearestHint(given, word.words));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const Entry& entry : Zoo()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> ZooOptionNames(absl::string_view name) {
  const auto entry = Find(name);
  return entry.ok() ? (*entry)->takes : std::vector<std::string>();
}

std::string ZooStrategy(absl::string_view name) {
  const auto entry = Find(name);
  return entry.ok() ? absl::StrCat("models/", (*entry)->strategy, ".pbtxt")
                    : "";
}

absl::StatusOr<proto::Model> ZooModel(absl::string_view name,
                                      const ZooOptions& options) {
  HT_ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  HT_RETURN_IF_ERROR(CheckOptions(*entry, options));
  return entry->make(options);
}

}  // namespace halftone
