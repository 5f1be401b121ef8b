#include "tests/numerics/random_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/models/model_text.h"

namespace halftone {
namespace {

using runtime::Op;
using runtime::Param;

struct Value {
  std::string name;
  std::vector<int> dims;  // without the samples'
  double most = 1;  // about the largest magnitude; of exact models a bound
};

int Elements(const std::vector<int>& dims) {
  int elements = 1;
  for (const int dim : dims) elements *= dim;
  return elements;
}

// Two values in one slot.
std::string Both(const Value& a, const Value& b) {
  return absl::StrCat(a.name, "\" var: \"", b.name);
}

std::string Int(const std::string& name, int value) {
  return absl::StrCat("attr { name: '", name, "' i: ", value, " } ");
}
std::string Ints(const std::string& name, const std::vector<int>& values) {
  return absl::StrCat("attr { name: '", name, "' ints: [",
                      absl::StrJoin(values, ", "), "] } ");
}
std::string Float(const std::string& name, const std::string& value) {
  return absl::StrCat("attr { name: '", name, "' f: ", value, " } ");
}
std::string Word(const std::string& name, const std::string& value) {
  return absl::StrCat("attr { name: '", name, "' s: '", value, "' } ");
}

// What both kinds of models are made with.
class Writer {
 public:
  explicit Writer(Draws* draws) : draws_(*draws) {}

 protected:
  using Slots = std::vector<std::pair<std::string, std::string>>;

  std::string NewName() { return absl::StrCat("v", ++made_); }

  Value& Add(const std::string& type, const Slots& in, std::vector<int> dims,
             const std::string& attrs = "", const std::string& out = "Out") {
    values_.push_back({Inner(type, in, attrs, out), std::move(dims)});
    return values_.back();
  }
  // The value that the next op alone reads: it may be large.
  std::string Inner(const std::string& type, const Slots& in,
                    const std::string& attrs = "",
                    const std::string& out = "Out") {
    const std::string name = NewName();
    text_ += Op(type, in, out, name, attrs);
    return name;
  }

  void Feed(const std::string& name, const std::vector<int>& dims) {
    absl::StrAppend(&text_, "feed { name: '", name, "' dims: [-1",
                    dims.empty() ? "" : ", ", absl::StrJoin(dims, ", "),
                    "] }\n");
  }

  std::string NewParam(const std::vector<int>& dims, const std::string& init) {
    const std::string name = absl::StrCat("p", params_++);
    text_ += Param(name, absl::StrJoin(dims, ", "), init);
    return name;
  }

  // The latest value, or one before: then the chain branches.
  Value Pick() {
    return draws_.Below(10) < 7 ? values_.back() : draws_.Any(values_);
  }
  // Another one of these dims; itself where there is none.
  Value Like(const Value& x) {
    std::vector<Value> like;
    for (const Value& value : values_) {
      if (value.dims == x.dims && value.name != x.name) like.push_back(value);
    }
    return like.empty() ? x : draws_.Any(like);
  }

  Draws& draws_;
  std::string text_ = "name: 'random' format: 1\n";
  std::vector<Value> values_;

 private:
  int params_ = 0, made_ = 0;
};

class ModelWriter : public Writer {
 public:
  explicit ModelWriter(Draws* draws) : Writer(draws) {}

  RandomModel Make() {
    std::vector<int> dims = {4 + draws_.Below(6)};
    if (draws_.OneOf(2)) {
      const int size = 4 + draws_.Below(4);
      dims = {1 + draws_.Below(4), size, size};
    }
    Feed("x", dims);
    values_ = {{"x", dims}};
    for (int i = 2 + draws_.Below(10); i > 0; --i) {
      const double before = values_.back().most;
      AddOp();
      Bound(before);
    }
    End();
    return {std::move(text_), batch_norms_, kinks_};
  }

 private:
  // What sums and products have made too large for 16 bits, or for the rate,
  // is kept within 1 again. `before`: of the values that there were.
  void Bound(double before) {
    Value& last = values_.back();
    last.most = std::max(before, last.most);
    if (last.most <= kMost) return;
    const Value large = last;
    Add("tanh", {{"X", large.name}}, large.dims);
  }

  // Of a product over so many elements, whose result is of their order.
  std::string Uniform(int fan_in) {
    return absl::StrCat("uniform { bound: ", std::sqrt(3.0 / fan_in), " }");
  }

  void AddOp() {
    const Value x = Pick();
    const int kind = draws_.Below(12);
    if (kind < 3) return Product(x);
    if (kind < 6) return Activation(x);
    if (kind < 8) return Binary(x);
    if (kind < 9) return Norm(x);
    if (kind < 10) return Move(x);
    x.dims.size() == 3 ? Picture(x) : Row(x);
  }

  void Product(const Value& x) {
    if (x.dims.size() == 3) return Convolution(x);
    if (x.dims.size() != 1) return Flatten(x);
    const int width = x.dims[0], out = 2 + draws_.Below(9);
    Slots in = {{"X", x.name}, {"Y", NewParam({width, out}, Uniform(width))}};
    if (draws_.OneOf(2)) {
      in.push_back({"Bias", NewParam({out}, "uniform { bound: 0.3 }")});
    }
    Add("matmul", in, {out});
  }

  void Convolution(const Value& x) {
    const int channels = x.dims[0], kernel = draws_.OneOf(2) ? 1 : 3;
    const int size = x.dims[1], stride = size > 3 && draws_.OneOf(4) ? 2 : 1;
    const int groups = channels % 2 == 0 && draws_.OneOf(4) ? 2 : 1;
    const int out = groups * (1 + draws_.Below(4));
    const int pad = kernel / 2, in_group = channels / groups;
    Slots in = {{"Input", x.name},
                {"Filter", NewParam({out, in_group, kernel, kernel},
                                    Uniform(in_group * kernel * kernel))}};
    if (draws_.OneOf(2)) {
      in.push_back({"Bias", NewParam({out}, "uniform { bound: 0.3 }")});
    }
    const int to = (size + 2 * pad - kernel) / stride + 1;
    Add("conv2d", in, {out, to, to},
        Ints("strides", {stride, stride}) + Ints("paddings", {pad, pad}) +
            Int("groups", groups),
        "Output");
  }

  void Activation(const Value& x) {
    static const auto* const types = new std::vector<std::string>{
        "relu",   "tanh",  "sigmoid",      "gelu",      "silu",
        "swish",  "mish",  "softplus",     "hard_tanh", "hard_swish",
        "relu6",  "elu",   "hard_sigmoid", "erf",       "leaky_relu",
        "square", "scale", "abs",          "sin",       "exp",
        "atan"};
    const std::string type = draws_.Any(*types);
    kinks_ |= absl::StrContains(type, "relu") ||
              absl::StartsWith(type, "hard_") || type == "abs";
    if (type == "exp" || type == "square") {  // of what is within -1 and 1
      Add("tanh", {{"X", x.name}}, x.dims);
      Add(type, {{"X", values_.back().name}}, x.dims);
    } else if (type == "scale") {
      Add(type, {{"X", x.name}}, x.dims,
          Float("scale", draws_.OneOf(2) ? "-0.75" : "1.25") +
              Float("bias", "0.125"));
    } else {
      Add(type, {{"X", x.name}}, x.dims);
    }
  }

  void Binary(const Value& x) {
    static const auto* const types = new std::vector<std::string>{
        "elementwise_add", "elementwise_add", "elementwise_sub",
        "elementwise_mul", "elementwise_max", "elementwise_min"};
    const Value other = Like(x);
    const double most = std::max({2.0, x.most, other.most});
    std::string y = other.name, attrs;
    if (draws_.OneOf(3)) {  // one number a channel
      y = NewParam({x.dims[0]}, "uniform { low: 0.5 high: 1.5 }");
      attrs = Int("axis", 1);
    }
    if (draws_.OneOf(6)) {
      Add("sum", {{"X", Both(x, Like(x))}}, x.dims).most = 2 * x.most;
      return;
    }
    const std::string type = draws_.Any(*types);
    kinks_ |= type == "elementwise_max" || type == "elementwise_min";
    Add(type, {{"X", x.name}, {"Y", y}}, x.dims, attrs).most =
        type == "elementwise_mul" ? most * most : 2 * most;
  }

  void Norm(const Value& x) {
    const std::string epsilon = Float("epsilon", "0.1");
    const auto affine = [this](int n, Slots in) {
      in.push_back({"Scale", NewParam({n}, "uniform { low: 0.5 high: 1.5 }")});
      in.push_back({"Bias", NewParam({n}, "uniform { bound: 0.3 }")});
      return in;
    };
    const int kind = draws_.Below(4);
    if (kind == 0) {
      Add("layer_norm", affine(Elements(x.dims), {{"X", x.name}}), x.dims,
          epsilon, "Y");
    } else if (kind == 1 && x.dims.size() == 3) {
      Add("group_norm", affine(x.dims[0], {{"X", x.name}}), x.dims, epsilon,
          "Y");
    } else if (kind == 1) {
      Add("rms_norm", {{"X", x.name}}, x.dims, epsilon, "Y");
    } else {
      BatchNorm(x, affine(x.dims[0], {{"X", x.name}}), epsilon);
    }
  }

  void BatchNorm(const Value& x, Slots in, const std::string& attrs) {
    batch_norms_ = true;
    const std::string name = NewName();
    for (const char* stat : {"Mean", "Variance"}) {
      absl::StrAppend(&text_, "stat { name: '", name, ".", stat, "' dims: [",
                      x.dims[0], "] init { constant: ", stat[0] == 'V',
                      " } }\n");
      in.push_back({stat, absl::StrCat(name, ".", stat)});
    }
    Add("batch_norm", in, x.dims, attrs, "Y");
  }

  void Flatten(const Value& x) {
    Add("flatten", {{"X", x.name}}, {Elements(x.dims)});
  }

  // What moves elements and computes nothing.
  void Move(const Value& x) {
    const int kind = draws_.Below(5);
    if (kind == 0) {
      std::vector<int> dims = x.dims;
      dims[0] *= 2;
      Add("concat", {{"X", Both(x, Like(x))}}, dims, Int("axis", 1));
    } else if (kind == 1 && x.dims[0] > 3) {
      std::vector<int> dims = x.dims;
      dims[0] = 2;
      Add("slice", {{"Input", x.name}}, dims,
          Ints("axes", {1}) + Ints("starts", {1}) + Ints("ends", {3}));
    } else if (kind == 2 && x.dims.size() == 3) {
      Add("transpose", {{"X", x.name}}, {x.dims[0], x.dims[2], x.dims[1]},
          Ints("axis", {0, 1, 3, 2}));
    } else if (kind == 3 && x.dims.size() == 1 && x.dims[0] % 4 == 0) {
      Add("reshape", {{"X", x.name}}, {x.dims[0] / 4, 2, 2},
          Ints("shape", {0, x.dims[0] / 4, 2, 2}));
    } else {
      Flatten(x);
    }
  }

  std::string Pooling() {
    const bool avg = draws_.OneOf(2);
    kinks_ |= !avg;
    return avg ? "avg" : "max";
  }

  void Picture(const Value& x) {
    const int size = x.dims[1];
    const int kind = draws_.Below(4);
    if (kind == 0) {
      Add("reduce_mean", {{"X", x.name}}, {x.dims[0]}, Ints("dim", {2, 3}));
    } else if (kind == 1 && size > 2) {  // windows that overlap
      const int to = (size - 1) / 2 + 1;
      Add("pool2d", {{"X", x.name}}, {x.dims[0], to, to},
          Word("pooling_type", Pooling()) + Ints("ksize", {3, 3}) +
              Ints("strides", {2, 2}) + Ints("paddings", {1, 1}));
    } else if (size > 1) {
      Add("pool2d", {{"X", x.name}}, {x.dims[0], size / 2, size / 2},
          Word("pooling_type", Pooling()) + Ints("ksize", {2, 2}) +
              Ints("strides", {2, 2}));
    } else {
      Flatten(x);
    }
  }

  void Row(const Value& x) {
    const int kind = draws_.Below(4);
    if (kind == 0) {
      Add("softmax", {{"X", x.name}}, x.dims);
    } else if (kind == 1) {
      Add("dropout", {{"X", x.name}}, x.dims, Float("p", "0.25"));
    } else if (kind == 2) {
      const std::string sums = Inner("cumsum", {{"X", x.name}}, Int("axis", 1));
      Add("scale", {{"X", sums}}, x.dims,
          Float("scale", absl::StrCat(1.0 / x.dims[0])));
    } else {
      const std::string sum =
          Inner("reduce_sum", {{"X", x.name}},
                Ints("dim", {1}) + "attr { name: 'keep_dim' b: true } ");
      Add("scale", {{"X", sum}}, {1},
          Float("scale", absl::StrCat(1.0 / x.dims[0])));
    }
  }

  void End() {
    const Value last = values_.back();
    if (last.dims.size() != 1) Flatten(last);
    const Value row = values_.back();
    const int width = row.dims[0], out = 3 + draws_.Below(4);
    Add("matmul",
        {{"X", row.name}, {"Y", NewParam({width, out}, Uniform(width))}},
        {out});
    const std::string logits = values_.back().name;
    std::string over;
    if (draws_.OneOf(3)) {
      Feed("y", {out});
      over = Add(draws_.OneOf(2) ? "square_error_cost" : "huber_loss",
                 {{"X", logits}, {"Y", "y"}}, {out})
                 .name;
    } else {
      text_ += "feed { name: 'label' dtype: I64 dims: [-1] }\n";
      over = Add("softmax_with_cross_entropy",
                 {{"Logits", logits}, {"Label", "label"}}, {}, "", "Loss")
                 .name;
    }
    const std::string loss = Add("mean", {{"X", over}}, {}).name;
    absl::StrAppend(&text_, "loss { var: '", loss, "' mean_over: '", over,
                    "' }\noutput: '", logits, "'\n");
  }

  static constexpr double kMost = 8;
  bool batch_norms_ = false, kinks_ = false;
};

// Sums of products of whole numbers, far below 2^24, to which f32 holds them
// all: values are at most kMost, and the loss is at most kSteepest times as
// steep in any of them, whatever clips them on the way; so gradients are at
// most their product times the 8 samples.
class ExactWriter : public Writer {
 public:
  explicit ExactWriter(Draws* draws) : Writer(draws) {}

  RandomModel Make() {
    const int width = 3 + draws_.Below(4);
    Feed("x", {width});
    values_ = {{"x", {width}}};
    Add("round", {{"X", "x"}}, {width});  // -1, 0 and 1
    for (int i = 2 + draws_.Below(8); i > 0; --i) AddOp();
    Product(values_.back());  // whatever was drawn, there is a parameter
    const Value last = values_.back();
    const std::string sum =
        Add("reduce_sum", {{"X", last.name}}, {}, Ints("dim", {1})).name;
    const std::string loss = Add("mean", {{"X", sum}}, {}).name;
    absl::StrAppend(&text_, "loss { var: '", loss, "' mean_over: '", sum,
                    "' }\n");
    return {std::move(text_), false, false};
  }

 private:
  static constexpr double kMost = 256, kSteepest = 4096;

  // Whether an op that is so steep can be added. The last product and the sum
  // behind it are: of 9 elements, by 2, to 5.
  bool Steepens(double by) {
    if (steepness_ * by * (2 * 9) * 5 > kSteepest) return false;
    steepness_ *= by;
    return true;
  }

  std::string Whole() {
    return absl::StrCat("constant: ", draws_.Any<int>({-2, -1, 1, 2}));
  }

  void AddOp() {
    Value x = Pick();
    if (x.name == "x") x = values_[1];
    const int width = x.dims[0];
    switch (draws_.Below(7)) {
      case 0:
      case 1:
        if (Steepens(2 * width)) Product(x);
        return;
      case 2: {
        if (!Steepens(2)) return;
        Value& made =
            Add("elementwise_mul",
                {{"X", x.name}, {"Y", NewParam({width}, Whole())}}, {width});
        made.most = 2 * x.most;
        return Bound();
      }
      case 3:
        return Two(x);
      case 4:
        Add("relu", {{"X", x.name}}, {width}).most = x.most;
        return;
      case 5:
        if (width > 3) {
          Add("slice", {{"Input", x.name}}, {width - 1},
              Ints("axes", {1}) + Ints("starts", {1}) + Ints("ends", {width}))
              .most = x.most;
        }
        return;
      default:
        if (!Steepens(2)) return;
        Add("scale", {{"X", x.name}}, {width}, Float("scale", "-2")).most =
            2 * x.most;
        return Bound();
    }
  }

  // A matrix whose rows differ, of two parameters.
  void Product(const Value& x) {
    const int width = x.dims[0], out = 2 + draws_.Below(4);
    const int above = 1 + draws_.Below(width - 1);
    const Value a = {NewParam({above, out}, Whole()), {}};
    const Value b = {NewParam({width - above, out}, Whole()), {}};
    const std::string matrix = NewName() + ".w";
    text_ += Op("concat", {{"X", Both(a, b)}}, "Out", matrix, Int("axis", 0));
    Add("matmul", {{"X", x.name}, {"Y", matrix}}, {out}).most =
        2 * width * x.most;
    Bound();
  }

  void Two(const Value& x) {
    Value y = Like(x);
    if (y.name == "x") y = x;
    const std::string type =
        draws_.Any<std::string>({"elementwise_add", "elementwise_sub",
                                 "elementwise_max", "elementwise_mul"});
    const bool product = type == "elementwise_mul";
    if (!Steepens(product ? x.most + y.most : 2)) return;
    Add(type, {{"X", x.name}, {"Y", y.name}}, x.dims).most =
        product ? x.most * y.most : x.most + y.most;
    Bound();
  }

  // What has become too large is kept within 1 again.
  void Bound() {
    const Value last = values_.back();
    if (last.most <= kMost) return;
    Add("clip", {{"X", last.name}}, last.dims,
        Float("min", "-1") + Float("max", "1"))
        .most = 1;
  }

  double steepness_ = 1;
};

}  // namespace

RandomModel MakeRandomModel(Draws* draws) { return ModelWriter(draws).Make(); }

RandomModel MakeExactModel(Draws* draws) { return ExactWriter(draws).Make(); }

}  // namespace halftone
