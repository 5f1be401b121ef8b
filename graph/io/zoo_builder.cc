#include "graph/io/zoo_builder.h"

#include <cmath>

namespace halftone {
namespace {

constexpr double kSqrt5 = 2.236068;  // as PyTorch users write it

}  // namespace

ZooBuilder::ZooBuilder(const std::string& name) {
  model_.set_name(name);
  model_.set_format(1);
}

// ---- Parts.

proto::Parameter* ZooBuilder::Param(const std::string& name,
                                    std::vector<int64_t> dims) {
  proto::Parameter* param = model_.add_param();
  param->set_name(name);
  for (int64_t dim : dims) param->add_dims(dim);
  return param;
}

// As many digits as a reader likes: the bound of an initialiser.
void ZooBuilder::UniformParam(const std::string& name, int64_t n,
                              int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  Param(name, {n})->mutable_init()->mutable_uniform()->set_bound(
      std::round(bound * 1e6) / 1e6);
}

void ZooBuilder::ConstantParam(proto::Parameter* param, const std::string& name,
                               int64_t n, double value) {
  param->set_name(name);
  param->add_dims(n);
  param->mutable_init()->set_constant(value);
}

proto::OpNode* ZooBuilder::Op(const std::string& type, const Slots& in,
                              const std::string& out_slot,
                              const std::string& out) {
  proto::OpNode* op = model_.add_op();
  op->set_type(type);
  for (const auto& [slot, value] : in) {
    proto::SlotVars* vars = op->add_in();
    vars->set_slot(slot);
    vars->add_var(value);
  }
  proto::SlotVars* vars = op->add_out();
  vars->set_slot(out_slot);
  vars->add_var(out);
  return op;
}

proto::Attribute* ZooBuilder::Attr(proto::OpNode* op, const std::string& name) {
  proto::Attribute* attr = op->add_attr();
  attr->set_name(name);
  return attr;
}

void ZooBuilder::Pair(proto::OpNode* op, const std::string& name, int64_t value,
                      int64_t default_value) {
  if (value == default_value) return;
  proto::Attribute* attr = Attr(op, name);
  attr->add_ints(value);
  attr->add_ints(value);
}

// ---- Layers.

std::string ZooBuilder::Images(int64_t channels, int64_t size,
                               std::vector<double> mean,
                               std::vector<double> std) {
  proto::Feed* image = model_.add_feed();
  image->set_name("image");
  image->set_dtype(proto::U8);
  for (int64_t dim : {int64_t{-1}, channels, size, size}) image->add_dims(dim);
  proto::Feed* label = model_.add_feed();
  label->set_name("label");
  label->set_dtype(proto::I64);
  label->add_dims(-1);
  proto::OpNode* op = Op("image_normalize", {{"X", "image"}}, "Out", "x");
  const auto set = [op](const char* name, const std::vector<double>& values) {
    if (values.size() == 1) {
      Attr(op, name)->set_f(values[0]);
    } else if (!values.empty()) {
      proto::Attribute* attr = Attr(op, name);
      for (double value : values) attr->add_floats(value);
    }
  };
  set("mean", mean);
  set("std", std);
  return "x";
}

proto::OpNode* ZooBuilder::ConvOp(const std::string& name, const std::string& x,
                                  const Window& window, bool bias) {
  Slots in = {{"Input", x}, {"Filter", name + ".w"}};
  if (bias) in.emplace_back("Bias", name + ".b");
  proto::OpNode* op = Op("conv2d", in, "Output", name);
  Pair(op, "strides", window.stride, 1);
  Pair(op, "paddings", window.padding, 0);
  return op;
}

std::string ZooBuilder::Conv(const std::string& name, const std::string& x,
                             int64_t in, int64_t out, const Window& window,
                             bool bias) {
  Param(name + ".w", {out, in, window.size, window.size})
      ->mutable_init()
      ->mutable_kaiming_uniform()
      ->set_a(kSqrt5);
  if (bias) {
    UniformParam(name + ".b", out, in * window.size * window.size);
  }
  ConvOp(name, x, window, bias);
  return name;
}

std::string ZooBuilder::DeepConv(const std::string& name, const std::string& x,
                                 int64_t in, int64_t out, const Window& window,
                                 bool bias) {
  Param(name + ".w", {out, in, window.size, window.size})
      ->mutable_init()
      ->mutable_kaiming_normal();
  if (bias) ConstantParam(model_.add_param(), name + ".b", out, 0);
  ConvOp(name, x, window, bias);
  return name;
}

std::string ZooBuilder::BatchNorm(const std::string& name, const std::string& x,
                                  int64_t channels) {
  ConstantParam(model_.add_param(), name + ".scale", channels, 1);
  ConstantParam(model_.add_param(), name + ".bias", channels, 0);
  ConstantParam(model_.add_stat(), name + ".mean", channels, 0);
  ConstantParam(model_.add_stat(), name + ".var", channels, 1);
  Op("batch_norm",
     {{"X", x},
      {"Scale", name + ".scale"},
      {"Bias", name + ".bias"},
      {"Mean", name + ".mean"},
      {"Variance", name + ".var"}},
     "Y", name);
  return name;
}

std::string ZooBuilder::Relu(const std::string& name, const std::string& x) {
  Op("relu", {{"X", x}}, "Out", name);
  return name;
}

std::string ZooBuilder::MaxPool(const std::string& name, const std::string& x,
                                const Window& window) {
  proto::OpNode* op = Op("pool2d", {{"X", x}}, "Out", name);
  Pair(op, "ksize", window.size, 0);
  Pair(op, "strides", window.stride, 1);
  Pair(op, "paddings", window.padding, 0);
  return name;
}

std::string ZooBuilder::GlobalAveragePool(const std::string& name,
                                          const std::string& x) {
  proto::OpNode* op = Op("pool2d", {{"X", x}}, "Out", name);
  Attr(op, "pooling_type")->set_s("avg");
  Attr(op, "global_pooling")->set_b(true);
  return name;
}

std::string ZooBuilder::Flatten(const std::string& name, const std::string& x) {
  Op("flatten", {{"X", x}}, "Out", name);
  return name;
}

std::string ZooBuilder::Dropout(const std::string& name, const std::string& x,
                                double p) {
  Attr(Op("dropout", {{"X", x}}, "Out", name), "p")->set_f(p);
  return name;
}

std::string ZooBuilder::Add(const std::string& name, const std::string& x,
                            const std::string& y) {
  Op("elementwise_add", {{"X", x}, {"Y", y}}, "Out", name);
  return name;
}

void ZooBuilder::LinearParams(const std::string& name, int64_t in,
                              int64_t out) {
  Param(name + ".w", {in, out})
      ->mutable_init()
      ->mutable_kaiming_uniform()
      ->set_a(kSqrt5);
  UniformParam(name + ".b", out, in);
}

std::string ZooBuilder::Linear(const std::string& name,
                               const std::string& result, const std::string& x,
                               int64_t in, int64_t out) {
  LinearParams(name, in, out);
  proto::OpNode* op =
      Op("matmul", {{"X", x}, {"Y", name + ".w"}, {"Bias", name + ".b"}}, "Out",
         result);
  if (name != result) op->set_name(name);
  return result;
}

std::string ZooBuilder::LinearAndAdd(const std::string& name,
                                     const std::string& result,
                                     const std::string& x, int64_t in,
                                     int64_t out) {
  LinearParams(name, in, out);
  Op("matmul", {{"X", x}, {"Y", name + ".w"}}, "Out", name);
  return Add(result, name, name + ".b");
}

void ZooBuilder::AddMetric(const std::string& name, const std::string& var,
                           const std::string& logits, int64_t k) {
  proto::OpNode* op =
      Op("correct_count", {{"X", logits}, {"Label", "label"}}, "Out", var);
  Attr(op, "k")->set_i(k);
  proto::Metric* metric = model_.add_metric();
  metric->set_name(name);
  metric->set_var(var);
  metric->set_over("label");
}

void ZooBuilder::Classify(const std::string& logits, bool top5) {
  Op("softmax_with_cross_entropy", {{"Logits", logits}, {"Label", "label"}},
     "Loss", "ce");
  Op("mean", {{"X", "ce"}}, "Out", "loss");
  AddMetric("top1", "correct", logits, 1);
  if (top5) AddMetric("top5", "correct5", logits, 5);
  model_.mutable_loss()->set_var("loss");
  model_.mutable_loss()->set_mean_over("ce");
  model_.add_output(logits);
}

}  // namespace halftone
