#include "graph/builder/model_builder.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace halftone {
namespace {

using Attrs = ModelBuilder::Attrs;

constexpr double kSqrt5 = 2.236068;  // as PyTorch users write it

struct SetAttr {
  proto::Attribute& attr;
  void operator()(bool value) const { attr.set_b(value); }
  void operator()(int64_t value) const { attr.set_i(value); }
  void operator()(double value) const { attr.set_f(value); }
  void operator()(const std::string& value) const { attr.set_s(value); }
  void operator()(const std::vector<int64_t>& values) const {
    attr.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<double>& values) const {
    attr.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) attr.add_strings(value);
  }
};

// `name` for all directions, unless it is the default.
void AddEach(const std::string& name, int64_t directions, int64_t value,
             int64_t default_value, Attrs* attrs) {
  if (value == default_value) return;
  attrs->emplace_back(name, std::vector<int64_t>(directions, value));
}

void AddWindow(const Window& window, Attrs* attrs) {
  AddEach("strides", window.directions, window.stride, 1, attrs);
  AddEach("paddings", window.directions, window.padding, 0, attrs);
}

Attrs PoolAttrs(const Window& window) {
  Attrs attrs;
  AddEach("ksize", window.directions, window.size, 0, &attrs);
  AddWindow(window, &attrs);
  return attrs;
}

// "pool2d", "conv3d_transpose".
std::string TypeOf(const std::string& what, const Window& window,
                   const std::string& suffix = "") {
  return what + std::to_string(window.directions) + "d" + suffix;
}

// a, b and the sizes of the window: dims of a filter.
std::vector<int64_t> FilterDims(int64_t a, int64_t b, const Window& window) {
  std::vector<int64_t> dims = {a, b};
  dims.insert(dims.end(), window.directions, window.size);
  return dims;
}

int64_t Elements(const Window& window) {
  int64_t elements = 1;
  for (int64_t i = 0; i < window.directions; ++i) elements *= window.size;
  return elements;
}

}  // namespace

proto::Init Constant(double value) {
  proto::Init init;
  init.set_constant(value);
  return init;
}

proto::Init Uniform(double bound) {
  proto::Init init;
  init.mutable_uniform()->set_bound(bound);
  return init;
}

proto::Init Normal(double std) {
  proto::Init init;
  init.mutable_normal()->set_std(std);
  return init;
}

proto::Init TruncatedNormal(double std) {
  proto::Init init;
  init.mutable_truncated_normal()->set_std(std);
  return init;
}

proto::Init KaimingNormal() {
  proto::Init init;
  init.mutable_kaiming_normal();
  return init;
}

proto::Init KaimingUniform(double a) {
  proto::Init init;
  init.mutable_kaiming_uniform()->set_a(a);
  return init;
}

proto::Init UniformBias(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return Uniform(std::round(bound * 1e6) / 1e6);
}

LayerInit NoBias() {
  LayerInit init;
  init.has_bias = false;
  return init;
}

ModelBuilder::ModelBuilder(const std::string& name) {
  model_.set_name(name);
  model_.set_format(1);
}

// ---- Parts.

std::string ModelBuilder::Feed(const std::string& name, proto::DataType dtype,
                               const std::vector<int64_t>& dims) {
  proto::Feed* feed = model_.add_feed();
  feed->set_name(name);
  if (dtype != proto::F32) feed->set_dtype(dtype);
  feed->mutable_dims()->Add(dims.begin(), dims.end());
  return name;
}

std::string ModelBuilder::Param(const std::string& name,
                                const std::vector<int64_t>& dims,
                                const proto::Init& init) {
  proto::Parameter* param = model_.add_param();
  param->set_name(name);
  param->mutable_dims()->Add(dims.begin(), dims.end());
  *param->mutable_init() = init;
  return name;
}

std::string ModelBuilder::Stat(const std::string& name, int64_t n,
                               double value) {
  proto::Parameter* stat = model_.add_stat();
  stat->set_name(name);
  stat->add_dims(n);
  *stat->mutable_init() = Constant(value);
  return name;
}

proto::OpNode* ModelBuilder::AddOp(const std::string& type,
                                   const std::string& name,
                                   const std::vector<Input>& inputs,
                                   const std::string& out_slot) {
  proto::OpNode* op = model_.add_op();
  op->set_type(type);
  for (const Input& input : inputs) {
    if (input.values.empty()) continue;
    proto::SlotVars* vars = op->add_in();
    vars->set_slot(input.slot);
    for (const Value& value : input.values) vars->add_var(value);
  }
  proto::SlotVars* vars = op->add_out();
  vars->set_slot(out_slot);
  vars->add_var(name);
  return op;
}

std::string ModelBuilder::Op(const std::string& type, const std::string& name,
                             const std::vector<Input>& inputs,
                             const Attrs& attrs, const std::string& out_slot) {
  proto::OpNode* op = AddOp(type, name, inputs, out_slot);
  for (const auto& [attr_name, value] : attrs) {
    proto::Attribute* attr = op->add_attr();
    attr->set_name(attr_name);
    std::visit(SetAttr{*attr}, value);
  }
  return name;
}

std::string ModelBuilder::Unary(const std::string& type,
                                const std::string& name, const Value& x,
                                const Attrs& attrs) {
  return Op(type, name, {{"X", {x}}}, attrs);
}

void ModelBuilder::Loss(const Value& loss, const Value& mean_over,
                        const Value& mask) {
  model_.mutable_loss()->set_var(loss);
  model_.mutable_loss()->set_mean_over(mean_over);
  if (!mask.empty()) model_.mutable_loss()->set_mask(mask);
}

void ModelBuilder::LossPart(const Value& loss, double weight) {
  proto::LossPart* part = model_.mutable_loss()->add_part();
  part->set_var(loss);
  if (weight != 1) part->set_weight(weight);
}

void ModelBuilder::Denominator(const Value& value) {
  model_.mutable_loss()->add_denominator(value);
}

void ModelBuilder::Metric(const std::string& name, const Value& count,
                          const Value& over) {
  proto::Metric* metric = model_.add_metric();
  metric->set_name(name);
  metric->set_var(count);
  metric->set_over(over);
}

void ModelBuilder::Output(const Value& value) { model_.add_output(value); }

// ---- Layers.

std::string ModelBuilder::Images(int64_t channels, int64_t size,
                                 const std::vector<double>& mean,
                                 const std::vector<double>& std) {
  Feed("image", proto::U8, {-1, channels, size, size});
  Feed("label", proto::I64, {-1});
  Attrs attrs;
  const auto set = [&attrs](const char* name,
                            const std::vector<double>& values) {
    if (values.size() == 1) {
      attrs.emplace_back(name, values[0]);
    } else if (!values.empty()) {
      attrs.emplace_back(name, values);
    }
  };
  set("mean", mean);
  set("std", std);
  return Unary("image_normalize", "x", "image", attrs);
}

void ModelBuilder::LayerParams(const std::string& name,
                               const std::vector<int64_t>& dims, int64_t fan_in,
                               int64_t out, const LayerInit& init) {
  Param(name + ".w", dims, init.weight.value_or(KaimingUniform(kSqrt5)));
  if (!init.has_bias) return;
  Param(name + ".b", {out}, init.bias.value_or(UniformBias(fan_in)));
}

std::string ModelBuilder::AddConv(const std::string& type,
                                  const std::string& name, const Value& x,
                                  const Window& window, bool has_bias) {
  std::vector<Input> inputs = {{"Input", {x}}, {"Filter", {name + ".w"}}};
  if (has_bias) inputs.push_back({"Bias", {name + ".b"}});
  Attrs attrs;
  AddWindow(window, &attrs);
  if (window.groups != 1) attrs.emplace_back("groups", window.groups);
  return Op(type, name, inputs, attrs, "Output");
}

std::string ModelBuilder::Conv(const std::string& name, const Value& x,
                               int64_t in, int64_t out, const Window& window,
                               const LayerInit& init) {
  const int64_t channels = in / window.groups;
  LayerParams(name, FilterDims(out, channels, window),
              channels * Elements(window), out, init);
  return AddConv(TypeOf("conv", window), name, x, window, init.has_bias);
}

std::string ModelBuilder::ConvTranspose(const std::string& name, const Value& x,
                                        int64_t in, int64_t out,
                                        const Window& window,
                                        const LayerInit& init) {
  const int64_t channels = out / window.groups;
  LayerParams(name, FilterDims(in, channels, window),
              channels * Elements(window), out, init);
  return AddConv(TypeOf("conv", window, "_transpose"), name, x, window,
                 init.has_bias);
}

std::string ModelBuilder::BatchNorm(const std::string& name, const Value& x,
                                    int64_t channels, const Attrs& attrs,
                                    const std::string& type) {
  Param(name + ".scale", {channels}, Constant(1));
  Param(name + ".bias", {channels}, Constant(0));
  Stat(name + ".mean", channels, 0);
  Stat(name + ".var", channels, 1);
  return Op(type, name,
            {{"X", {x}},
             {"Scale", {name + ".scale"}},
             {"Bias", {name + ".bias"}},
             {"Mean", {name + ".mean"}},
             {"Variance", {name + ".var"}}},
            attrs, "Y");
}

std::string ModelBuilder::GroupNorm(const std::string& name, const Value& x,
                                    int64_t channels, int64_t groups) {
  Param(name + ".scale", {channels}, Constant(1));
  Param(name + ".bias", {channels}, Constant(0));
  return Op(
      "group_norm", name,
      {{"X", {x}}, {"Scale", {name + ".scale"}}, {"Bias", {name + ".bias"}}},
      {{"groups", groups}}, "Y");
}

std::string ModelBuilder::Relu(const std::string& name, const Value& x) {
  return Unary("relu", name, x);
}

std::string ModelBuilder::MaxPool(const std::string& name, const Value& x,
                                  const Window& window) {
  return Unary(TypeOf("pool", window), name, x, PoolAttrs(window));
}

std::string ModelBuilder::AveragePool(const std::string& name, const Value& x,
                                      const Window& window) {
  Attrs attrs = {{"pooling_type", std::string("avg")}};
  for (auto& attr : PoolAttrs(window)) attrs.push_back(std::move(attr));
  return Unary(TypeOf("pool", window), name, x, attrs);
}

std::string ModelBuilder::GlobalAveragePool(const std::string& name,
                                            const Value& x) {
  return Unary(
      "pool2d", name, x,
      {{"pooling_type", std::string("avg")}, {"global_pooling", true}});
}

std::string ModelBuilder::Flatten(const std::string& name, const Value& x) {
  return Unary("flatten", name, x);
}

std::string ModelBuilder::Dropout(const std::string& name, const Value& x,
                                  double p) {
  return p == 0 ? x : Unary("dropout", name, x, {{"p", p}});
}

std::string ModelBuilder::DropSamples(const std::string& name, const Value& x,
                                      double p) {
  return p == 0 ? x : Unary("dropout_nd", name, x, {{"p", p}});
}

std::string ModelBuilder::Add(const std::string& name, const Value& x,
                              const Value& y) {
  return Op("elementwise_add", name, {{"X", {x}}, {"Y", {y}}});
}

std::string ModelBuilder::Linear(const std::string& name, const Value& x,
                                 int64_t in, int64_t out, const LayerInit& init,
                                 const std::string& result) {
  LayerParams(name, {in, out}, in, out, init);
  std::vector<Input> inputs = {{"X", {x}}, {"Y", {name + ".w"}}};
  if (init.has_bias) inputs.push_back({"Bias", {name + ".b"}});
  const std::string& made = result.empty() ? name : result;
  proto::OpNode* op = AddOp("matmul", made, inputs, "Out");
  if (name != made) op->set_name(name);
  return made;
}

std::string ModelBuilder::LayerNorm(const std::string& name, const Value& x,
                                    int64_t rank, int64_t n, double epsilon) {
  Param(name + ".scale", {n}, Constant(1));
  Param(name + ".bias", {n}, Constant(0));
  return Op(
      "layer_norm", name,
      {{"X", {x}}, {"Scale", {name + ".scale"}}, {"Bias", {name + ".bias"}}},
      {{"begin_norm_axis", rank - 1}, {"epsilon", epsilon}}, "Y");
}

std::string ModelBuilder::Embedding(const std::string& name, const Value& ids,
                                    int64_t rows, int64_t width,
                                    const proto::Init& init) {
  Param(name + ".table", {rows, width}, init);
  return Op("lookup_table_v2", name,
            {{"W", {name + ".table"}}, {"Ids", {ids}}});
}

std::vector<std::string> ModelBuilder::Rnn(const std::string& name,
                                           const Value& x,
                                           const Recurrent& layers) {
  const int64_t directions = layers.both_directions ? 2 : 1;
  const bool lstm = layers.mode == "LSTM";
  const int64_t rows = (lstm                   ? 4
                        : layers.mode == "GRU" ? 3
                                               : 1) *
                       layers.hidden;
  const proto::Init init = layers.init.value_or(UniformBias(layers.hidden));
  std::vector<Value> weights, biases;
  for (int64_t layer = 0; layer < layers.layers; ++layer) {
    const int64_t in = layer == 0 ? layers.in : directions * layers.hidden;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string end =
          absl::StrCat("_l", layer, direction == 1 ? "_reverse" : "");
      const auto add = [&](const char* which, std::vector<int64_t> dims) {
        return Param(absl::StrCat(name, ".", which, end), dims, init);
      };
      weights.push_back(add("weight_ih", {rows, in}));
      weights.push_back(add("weight_hh", {rows, layers.hidden}));
      biases.push_back(add("bias_ih", {rows}));
      biases.push_back(add("bias_hh", {rows}));
    }
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  std::vector<Input> inputs = {{"Input", {x}}, {"WeightList", weights}};
  if (!layers.lengths.empty()) {
    inputs.push_back({"SequenceLength", {layers.lengths}});
  }
  Attrs attrs = {{"mode", layers.mode}, {"hidden_size", layers.hidden}};
  if (layers.layers > 1) attrs.emplace_back("num_layers", layers.layers);
  if (layers.both_directions) attrs.emplace_back("is_bidirec", true);
  if (layers.dropout > 0) attrs.emplace_back("dropout_prob", layers.dropout);
  Op("rnn", name, inputs, attrs);
  std::vector<Value> results = {name, name + ".hidden"};
  if (lstm) results.push_back(name + ".cell");
  proto::SlotVars* state = model_.mutable_op(model_.op_size() - 1)->add_out();
  state->set_slot("State");
  for (size_t i = 1; i < results.size(); ++i) state->add_var(results[i]);
  return results;
}

std::vector<std::string> ModelBuilder::Split(
    const std::vector<std::string>& names, const Value& x, int64_t axis) {
  Unary("split", names[0], x, {{"axis", axis}});
  proto::SlotVars* out =
      model_.mutable_op(model_.op_size() - 1)->mutable_out(0);
  for (size_t i = 1; i < names.size(); ++i) out->add_var(names[i]);
  return names;
}

void ModelBuilder::AddMetric(const std::string& name, const Value& count,
                             const Value& logits, int64_t k) {
  Op("correct_count", count, {{"X", {logits}}, {"Label", {"label"}}},
     {{"k", k}});
  Metric(name, count, "label");
}

void ModelBuilder::Classify(const Value& logits, bool top5) {
  Op("softmax_with_cross_entropy", "ce",
     {{"Logits", {logits}}, {"Label", {"label"}}}, {}, "Loss");
  Unary("mean", "loss", "ce");
  AddMetric("top1", "correct", logits, 1);
  if (top5) AddMetric("top5", "correct5", logits, 5);
  Loss("loss", "ce");
  Output(logits);
}

}  // namespace halftone
