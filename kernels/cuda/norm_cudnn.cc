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

BoundGraph ConvGradNormGraph(const ConvOp& conv) {
  Builder b;
  const TensorDesc& image = conv.image_desc;
  const TensorDesc vector = PerChannel(image, DType::kF32);
  const int grad = b.Input(conv.result_desc);
  const int filter = b.Input(conv.filter_desc);
  const int x = b.Input(image);
  const int mean = b.Input(vector);
  const int inv_std = b.Input(vector);
  const int scale = b.Input(vector);
  const int bias = b.Input(vector);
  const int a_grad = b.Internal(image);
  AddConvNode(Kind::kConvGradImage, conv.shape, {grad, filter}, a_grad,
              &b.graph());
  const int centred = b.Apply(Kind::kSubtract, {x, mean}, image);
  const int normal = b.Apply(Kind::kMultiply, {centred, inv_std}, image);
  const int scaled = b.Apply(Kind::kMultiply, {normal, scale}, image);
  const int norm = b.Apply(Kind::kAdd, {scaled, bias}, image);
  const int g = b.Output(image);
  b.graph().Add(Kind::kReluGrad, {a_grad, norm}, {g});
  std::vector<int> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(b.Output(vector));
  b.graph().Add(Kind::kNormGradSums, {g, x, mean, inv_std, scale}, sums);
  return b.Done();
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
