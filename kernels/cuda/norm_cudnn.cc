#include "kernels/cuda/norm_cudnn.h"

#include <utility>

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Kind = CudnnNode::Kind;

// One number per channel of `image`.
TensorDesc PerChannel(const TensorDesc& image, DType dtype) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.dims = {image.dims[1]};
  return desc;
}

// Hands out the positions of a graph's inputs and outputs in their order.
class Builder {
 public:
  int Input(const TensorDesc& desc) { return bound_.Input(desc, inputs_++); }
  int Output(const TensorDesc& desc) { return bound_.Output(desc, outputs_++); }

  int Internal(const TensorDesc& like) { return bound_.Internal(like); }

  int Apply(Kind kind, std::vector<int> inputs, const TensorDesc& like) {
    const int to = Internal(like);
    bound_.graph.Add(kind, std::move(inputs), {to});
    return to;
  }
  // relu(image * scale + bias), with inputs of its own.
  int Prologue(const TensorDesc& image) {
    const TensorDesc vector = PerChannel(image, image.dtype);
    const int x = Input(image);
    const int scaled = Apply(Kind::kMultiply, {x, Input(vector)}, image);
    const int shifted = Apply(Kind::kAdd, {scaled, Input(vector)}, image);
    return Apply(Kind::kRelu, {shifted}, image);
  }

  CudnnGraph& graph() { return bound_.graph; }
  BoundGraph Done() { return std::move(bound_); }

 private:
  BoundGraph bound_;
  int inputs_ = 0, outputs_ = 0;
};

}  // namespace

BoundGraph NormConvGraph(const ConvOp& conv, bool prologue) {
  Builder b;
  const int image =
      prologue ? b.Prologue(conv.image_desc) : b.Input(conv.image_desc);
  const int filter = b.Input(conv.filter_desc);
  const int result = b.Output(conv.result_desc);
  AddConvNode(Kind::kConv, conv.shape, {image, filter}, result, &b.graph());
  const TensorDesc sums = PerChannel(conv.result_desc, DType::kF32);
  const int sum = b.Output(sums);
  const int squares = b.Output(sums);
  b.graph().Add(Kind::kChannelSums, {result}, {sum, squares});
  return b.Done();
}

BoundGraph NormConvGradFilterGraph(const ConvOp& conv) {
  Builder b;
  const int image = b.Prologue(conv.image_desc);
  const int grad = b.Input(conv.result_desc);
  AddConvNode(Kind::kConvGradFilter, conv.shape, {grad, image},
              b.Output(conv.filter_desc), &b.graph());
  return b.Done();
}

namespace {

// A norm in f32, made again of x, and what bn_grad_reduce reads of it.
struct NormAgain {
  int x, mean, inv_std, scale, result;

  NormAgain(Builder& b, const TensorDesc& image) {
    const TensorDesc vector = PerChannel(image, DType::kF32);
    x = b.Input(image);
    mean = b.Input(vector);
    inv_std = b.Input(vector);
    scale = b.Input(vector);
    const int bias = b.Input(vector);
    const int centred = b.Apply(Kind::kSubtract, {x, mean}, image);
    const int normal = b.Apply(Kind::kMultiply, {centred, inv_std}, image);
    const int scaled = b.Apply(Kind::kMultiply, {normal, scale}, image);
    result = b.Apply(Kind::kAdd, {scaled, bias}, image);
  }
  void AddSums(Builder& b, const TensorDesc& image, int g) const {
    std::vector<int> sums;
    for (int i = 0; i < 5; ++i) {
      sums.push_back(b.Output(PerChannel(image, DType::kF32)));
    }
    b.graph().Add(Kind::kNormGradSums, {g, x, mean, inv_std, scale}, sums);
  }
};

int ConvGradImage(Builder& b, const ConvOp& conv) {
  const int grad = b.Input(conv.result_desc);
  const int filter = b.Input(conv.filter_desc);
  const int a_grad = b.Internal(conv.image_desc);
  AddConvNode(Kind::kConvGradImage, conv.shape, {grad, filter}, a_grad,
              &b.graph());
  return a_grad;
}

}  // namespace

BoundGraph ConvGradNormGraph(const ConvOp& conv) {
  Builder b;
  const TensorDesc& image = conv.image_desc;
  const int a_grad = ConvGradImage(b, conv);
  const NormAgain norm(b, image);
  const int g = b.Output(image);
  b.graph().Add(Kind::kReluGrad, {a_grad, norm.result}, {g});
  norm.AddSums(b, image, g);
  return b.Done();
}

BoundGraph ConvGradAddNormGraph(const ConvOp& conv, const AddedToNorm& added) {
  Builder b;
  const TensorDesc& image = conv.image_desc;
  int a_grad = ConvGradImage(b, conv);
  if (added.gradient) {
    a_grad = b.Apply(Kind::kAdd, {a_grad, b.Input(image)}, image);
  }
  const NormAgain norm(b, image);
  std::vector<NormAgain> norms = {norm};
  if (added.norm) norms.emplace_back(b, image);
  const int y = added.norm ? norms[1].result : b.Input(image);
  const int sum = b.Apply(Kind::kAdd, {norm.result, y}, image);
  const int g = b.Output(image);
  b.graph().Add(Kind::kReluGrad, {a_grad, sum}, {g});
  for (const NormAgain& of : norms) of.AddSums(b, image, g);
  return b.Done();
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
