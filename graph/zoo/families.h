// The families of the zoo's models: each a function of the options, with
// what was published where none is given.
#ifndef HALFTONE_GRAPH_ZOO_FAMILIES_H_
#define HALFTONE_GRAPH_ZOO_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder/model_builder.h"
#include "graph/zoo/zoo.h"
#include "proto/program.pb.h"

namespace halftone {
namespace zoo {

using Value = ModelBuilder::Value;

// Images of ImageNet's mean and standard deviation, of pixels 0 to 255.
Value ImageNet(ModelBuilder& b, int64_t size);
// x * w, called `name`, and the sum with b, called `result`.
Value LinearAndAdd(ModelBuilder& b, const std::string& name,
                   const std::string& result, const Value& x, int64_t in,
                   int64_t out);

// ---- Small ones, of 28 x 28 grey pixels.
proto::Model MnistConvnet();
proto::Model Mlp();
proto::Model SmallResnet();

// ---- Classifiers of images.
// He et al. 2015, version 1.5: a bottleneck halves the image in its 3x3.
// blocks: of each of the four layers.
proto::Model ResNet(const std::string& name, const std::vector<int>& blocks,
                    bool bottleneck, const ZooOptions& options);
// Simonyan and Zisserman 2014; convs: of each of the five stages.
proto::Model Vgg(const std::string& name, const std::vector<int>& convs,
                 bool batch_norm, const ZooOptions& options);
// Sandler et al. 2018. Layers are named as torchvision's, here and below.
proto::Model MobileNetV2(const ZooOptions& options);
// Huang et al. 2016.
proto::Model DenseNet121(const ZooOptions& options);
// Tan and Le 2019, without stochastic depth.
proto::Model EfficientNetB0(const ZooOptions& options);

// ---- A class for each pixel or voxel.
struct UNetSizes {
  int64_t image_size, channels, width;
};
// Ronneberger et al. 2015 (directions 2) and Cicek et al. 2016 (3), with
// padding and norms; halved `depth` times. The logits are [N, sizes...,
// classes].
proto::Model UNet(const std::string& name, int64_t directions, int64_t depth,
                  const UNetSizes& sizes, const ZooOptions& options);

// ---- Transformers. Heads have 64 channels.
// Dosovitskiy et al. 2020, of patches of 16 x 16.
proto::Model VisionTransformer(const std::string& name, int64_t width,
                               const ZooOptions& options);
// Devlin et al. 2018; classification unless options.head says otherwise.
proto::Model Bert(const std::string& name, int64_t layers, int64_t width,
                  const ZooOptions& options);
// Radford et al. 2019: the next token of each, of 1,024.
proto::Model Gpt2(const std::string& name, int64_t layers, int64_t width,
                  const ZooOptions& options);

// ---- Recurrent nets, with PyTorch's names.
// Zaremba et al. 2014, the medium one: the next word of each, of 10,000.
proto::Model LstmLanguageModel(const ZooOptions& options);
// A class for each text, of 20,000 words: two layers that read both ways, the
// last states of which are classified. Samples have feed "length" words.
proto::Model LstmClassifier(const ZooOptions& options);

}  // namespace zoo
}  // namespace halftone

#endif  // HALFTONE_GRAPH_ZOO_FAMILIES_H_
