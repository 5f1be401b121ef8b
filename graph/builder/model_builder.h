// Writes models layer by layer; the models of `halftone zoo` are made with it.
#ifndef HALFTONE_GRAPH_BUILDER_MODEL_BUILDER_H_
#define HALFTONE_GRAPH_BUILDER_MODEL_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/program.pb.h"

namespace halftone {

// Initialisers, as in the field `init` of a parameter.
proto::Init Constant(double value);
proto::Init Uniform(double bound);     // in [-bound, bound)
proto::Init Normal(double std);        // around 0
proto::Init KaimingNormal();           // std = sqrt(2 / fan_in)
proto::Init KaimingUniform(double a);  // a: negative slope
proto::Init TruncatedNormal(double std);
// PyTorch's for a bias: in +-1 / sqrt(fan_in), to six digits.
proto::Init UniformBias(int64_t fan_in);

// A window of a convolution or a pool, the same along each direction.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;      // convolutions only
  int64_t directions = 2;  // 3: of volumes, [N, C, D, H, W]
};

// How the parameters of a layer begin. What is not set is PyTorch's:
// kaiming_uniform of sqrt(5), so bounds of 1 / sqrt(fan_in), for the weight,
// UniformBias for the bias.
struct LayerInit {
  std::optional<proto::Init> weight;
  std::optional<proto::Init> bias;
  bool has_bias = true;
};
LayerInit NoBias();

// Recurrent layers (the op rnn): PyTorch's nn.LSTM, GRU and RNN.
struct Recurrent {
  std::string mode = "LSTM";  // GRU, RNN_TANH, RNN_RELU
  int64_t in = 1, hidden = 1, layers = 1;
  bool both_directions = false;
  double dropout = 0;  // between layers
  // Of all weights and biases; not set: PyTorch's, +-1 / sqrt(hidden).
  std::optional<proto::Init> init = {};
  std::string lengths = {};  // a value [B], i32 or i64; empty: all steps
};

// Values are known by their names. Each layer takes the name of its input and
// returns that of its output, which is its own name; its parameters are
// `<name>.w`, `<name>.b` ... Nothing is checked here: what compiles the model
// says what is wrong with it. Images are [N, C, H, W], weights of convolutions
// [O, C / groups, kh, kw], of products [in, out].
class ModelBuilder {
 public:
  using Value = std::string;
  // Slots and what they hold; attributes and their values (`ops OP` of the
  // command line lists them).
  struct Input {
    std::string slot;
    std::vector<Value> values;
  };
  using AttrValue =
      std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                   std::vector<double>, std::vector<std::string>>;
  using Attrs = std::vector<std::pair<std::string, AttrValue>>;

  explicit ModelBuilder(const std::string& name);

  // ---- Parts.
  // A dim of -1 is the batch.
  Value Feed(const std::string& name, proto::DataType dtype,
             const std::vector<int64_t>& dims);
  Value Param(const std::string& name, const std::vector<int64_t>& dims,
              const proto::Init& init);
  // A running statistic.
  Value Stat(const std::string& name, int64_t n, double value);
  // An op of one output, or the first of several, which is called `name`.
  Value Op(const std::string& type, const std::string& name,
           const std::vector<Input>& inputs, const Attrs& attrs = {},
           const std::string& out_slot = "Out");
  // An op of one input in slot X.
  Value Unary(const std::string& type, const std::string& name, const Value& x,
              const Attrs& attrs = {});
  // What the step makes smaller: the mean over `mean_over`'s elements, or over
  // the sum of `mask`.
  void Loss(const Value& loss, const Value& mean_over, const Value& mask = "");
  // Before or after Loss, whose `loss` is then the name of the weighted sum of
  // all parts, each a mean over the same count.
  void LossPart(const Value& loss, double weight = 1);
  // Of the loss's further means: what they are divided by.
  void Denominator(const Value& value);
  // A count and what it is a ratio of.
  void Metric(const std::string& name, const Value& count, const Value& over);
  void Output(const Value& value);
  proto::Model Take() { return std::move(model_); }

  // ---- Layers.
  // Feeds "image" (u8) and "label", and "x" = (image - mean) / std.
  Value Images(int64_t channels, int64_t size, const std::vector<double>& mean,
               const std::vector<double>& std);
  Value Conv(const std::string& name, const Value& x, int64_t in, int64_t out,
             const Window& window, const LayerInit& init = {});
  // The weight is [in, out / groups, kh, kw].
  Value ConvTranspose(const std::string& name, const Value& x, int64_t in,
                      int64_t out, const Window& window,
                      const LayerInit& init = {});
  // type: batch_norm or sync_batch_norm.
  Value BatchNorm(const std::string& name, const Value& x, int64_t channels,
                  const Attrs& attrs = {},
                  const std::string& type = "batch_norm");
  Value GroupNorm(const std::string& name, const Value& x, int64_t channels,
                  int64_t groups);
  Value Relu(const std::string& name, const Value& x);
  Value MaxPool(const std::string& name, const Value& x, const Window& window);
  Value AveragePool(const std::string& name, const Value& x,
                    const Window& window);
  Value GlobalAveragePool(const std::string& name, const Value& x);
  Value Flatten(const std::string& name, const Value& x);
  // p = 0 is no op.
  Value Dropout(const std::string& name, const Value& x, double p);
  // Stochastic depth: whole samples of x are dropped.
  Value DropSamples(const std::string& name, const Value& x, double p);
  Value Add(const std::string& name, const Value& x, const Value& y);
  // x * w + b; the op is called `name`, its result `result` if that is given.
  Value Linear(const std::string& name, const Value& x, int64_t in, int64_t out,
               const LayerInit& init = {}, const std::string& result = "");
  // Over the last dim, of n elements; parameters <name>.scale and <name>.bias.
  Value LayerNorm(const std::string& name, const Value& x, int64_t rank,
                  int64_t n, double epsilon);
  // The row of <name>.table [rows, width] for each of `ids`.
  Value Embedding(const std::string& name, const Value& ids, int64_t rows,
                  int64_t width, const proto::Init& init);
  // Of x [T, B, in], steps first; parameters <name>.weight_ih_l0 and so on, as
  // PyTorch calls them. Returns the result [T, B, directions x hidden], which
  // is called `name`, the last hidden states [layers x directions, B, hidden]
  // and, of an LSTM, the last cells.
  std::vector<Value> Rnn(const std::string& name, const Value& x,
                         const Recurrent& layers);
  // Equal parts of x along an axis; the op is called as the first.
  std::vector<Value> Split(const std::vector<std::string>& names,
                           const Value& x, int64_t axis);
  // Cross entropy "ce" with feed "label", its mean "loss", accuracy top1 (and
  // top5), and the logits as output.
  void Classify(const Value& logits, bool top5);

 private:
  proto::OpNode* AddOp(const std::string& type, const std::string& name,
                       const std::vector<Input>& inputs,
                       const std::string& out_slot);
  void AddMetric(const std::string& name, const Value& count,
                 const Value& logits, int64_t k);
  Value AddConv(const std::string& type, const std::string& name,
                const Value& x, const Window& window, bool has_bias);
  // Weight and bias [out].
  void LayerParams(const std::string& name, const std::vector<int64_t>& dims,
                   int64_t fan_in, int64_t out, const LayerInit& init);

  proto::Model model_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BUILDER_MODEL_BUILDER_H_
