// Writes models layer by layer.
#ifndef HALFTONE_GRAPH_IO_ZOO_BUILDER_H_
#define HALFTONE_GRAPH_IO_ZOO_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/program.pb.h"

namespace halftone {

// A convolution's window; square throughout.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding = 0;
};

// Each layer takes the name of its input and returns that of its output,
// which is its own name; its parameters are `<name>.w`, `<name>.b` ...
// Tensors are NCHW, weights OIHW or [in, out].
class ZooBuilder {
 public:
  using Slots = std::vector<std::pair<std::string, std::string>>;

  explicit ZooBuilder(const std::string& name);

  // Feeds "image" (u8) and "label", and "x" = (image - mean) / std.
  std::string Images(int64_t channels, int64_t size, std::vector<double> mean,
                     std::vector<double> std);
  // PyTorch's initialisers: kaiming_uniform of sqrt(5), so bounds of
  // 1 / sqrt(fan_in), for weight and bias.
  std::string Conv(const std::string& name, const std::string& x, int64_t in,
                   int64_t out, const Window& window, bool bias);
  // Normal with standard deviation sqrt(2 / fan_in), the bias 0: for deep
  // networks of rectifiers.
  std::string DeepConv(const std::string& name, const std::string& x,
                       int64_t in, int64_t out, const Window& window,
                       bool bias);
  std::string BatchNorm(const std::string& name, const std::string& x,
                        int64_t channels);
  std::string Relu(const std::string& name, const std::string& x);
  std::string MaxPool(const std::string& name, const std::string& x,
                      const Window& window);
  std::string GlobalAveragePool(const std::string& name, const std::string& x);
  std::string Flatten(const std::string& name, const std::string& x);
  std::string Dropout(const std::string& name, const std::string& x, double p);
  std::string Add(const std::string& name, const std::string& x,
                  const std::string& y);
  // x * w + b in one op that is called `name`; its result is called `result`.
  std::string Linear(const std::string& name, const std::string& result,
                     const std::string& x, int64_t in, int64_t out);
  // x * w, called `name`, and the sum with b, called `result`.
  std::string LinearAndAdd(const std::string& name, const std::string& result,
                           const std::string& x, int64_t in, int64_t out);
  // Cross entropy "ce", its mean "loss", accuracy top1 (and top5), output.
  void Classify(const std::string& logits, bool top5);

  proto::Model Take() { return std::move(model_); }

 private:
  proto::Parameter* Param(const std::string& name, std::vector<int64_t> dims);
  void UniformParam(const std::string& name, int64_t n, int64_t fan_in);
  void ConstantParam(proto::Parameter* param, const std::string& name,
                     int64_t n, double value);
  proto::OpNode* ConvOp(const std::string& name, const std::string& x,
                        const Window& window, bool bias);
  void LinearParams(const std::string& name, int64_t in, int64_t out);
  void AddMetric(const std::string& name, const std::string& var,
                 const std::string& logits, int64_t k);
  // Slots as (slot, value) pairs.
  proto::OpNode* Op(const std::string& type, const Slots& in,
                    const std::string& out_slot, const std::string& out);
  static proto::Attribute* Attr(proto::OpNode* op, const std::string& name);
  // `name` for both directions, unless it is the default.
  static void Pair(proto::OpNode* op, const std::string& name, int64_t value,
                   int64_t default_value);

  proto::Model model_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_ZOO_BUILDER_H_
