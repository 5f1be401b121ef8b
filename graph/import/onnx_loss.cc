#include "graph/import/onnx_loss.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

using Inputs = std::vector<std::pair<const char*, std::string>>;
using AttrValues = std::vector<std::pair<std::string, AttrValue>>;

// The label that PyTorch's cross entropy leaves out unless told otherwise.
constexpr int64_t kIgnored = -100;

class LossAdder {
 public:
  LossAdder(std::string value, OnnxGraph* graph)
      : value_(std::move(value)), graph_(*graph) {}

  // Of a class for each place beside the axis.
  void CrossEntropy(int64_t axis) {
    const TensorType type = graph_.TypeOf(value_);
    Dims dims = type.dims;
    const int rank = type.rank();
    if (rank < 2) return Refuse("expected logits of two dims or more");
    const int64_t classes = axis < 0 ? axis + rank : axis;
    if (classes < 1 || classes >= rank) {
      return Refuse(absl::StrCat("--class-axis ", axis, " is no dim behind ",
                                 "the first of ", Shown(type)));
    }
    std::string logits = value_;
    if (rank > 2) {
      absl::StrAppend(&from_, ", classes are dim ", classes, " of ", value_,
                      " ", Shown(type), " (another: --class-axis)");
    }
    if (classes != rank - 1) {  // ours are the last
      std::vector<int64_t> order;
      for (int i = 0; i < rank; ++i) {
        if (i != classes) order.push_back(i);
      }
      order.push_back(classes);
      logits = Op("transpose", {{"X", value_}}, "logits", {{"axis", order}});
    }
    dims.erase(dims.begin() + classes);
    Label(proto::I64, dims);
    const std::string count =
        Op("correct_count", {{"X", logits}, {"Label", label_}}, "correct");
    const std::string counted = Counted();
    MaskedMean(Op("softmax_with_cross_entropy",
                  {{"Logits", logits}, {"Label", label_}}, "ce",
                  {{"ignore_index", kIgnored}}, "Loss"),
               counted);
    proto::Metric& metric = *graph_.model().add_metric();
    metric.set_name("top1");
    metric.set_var(count);
    metric.set_over(counted);
  }

  void SquaredError() {
    Label(proto::F32, graph_.TypeOf(value_).dims);
    const std::string error =
        Op("elementwise_sub", {{"X", value_}, {"Y", label_}}, "error");
    Mean(Op("square", {{"X", error}}, "se"));
  }

  void BinaryCrossEntropy() {
    Label(proto::F32, graph_.TypeOf(value_).dims);
    Mean(Op("sigmoid_cross_entropy_with_logits",
            {{"X", BeforeSigmoid()}, {"Label", label_}}, "bce"));
  }

  const absl::Status& status() const { return status_; }
  const std::string& from() const { return from_; }

 private:
  std::string Shown(const TensorType& type) const {
    return ToString(type, {"B"});
  }

  void Refuse(absl::string_view why) {
    if (status_.ok()) status_ = ModelError(why);
  }

  std::string Op(const char* type, const Inputs& inputs, const char* wish,
                 const AttrValues& attrs = {}, const char* slot = "Out") {
    if (!status_.ok()) return "";
    proto::OpNode node;
    node.set_type(type);
    for (const auto& [name, value] : inputs) {
      proto::SlotVars& in = *node.add_in();
      in.set_slot(name);
      in.add_var(value);
    }
    const std::string name = graph_.Unused(wish);
    node.add_out()->set_slot(slot);
    node.mutable_out(0)->add_var(name);
    status_ = graph_.AddOp(std::move(node), attrs);
    return name;
  }

  void Label(proto::DataType dtype, const Dims& dims) {
    if (!status_.ok()) return;
    proto::Feed feed;
    feed.set_dtype(dtype);
    for (const Dim& dim : dims) {
      if (!dim.is_constant() &&
          (feed.dims_size() > 0 || dim != graph_.Batch())) {
        return Refuse("expected the batch as its first dim alone");
      }
      feed.add_dims(dim.is_constant() ? dim.coefficient() : -1);
    }
    status_ = graph_.AddFeed("label", std::move(feed), &label_);
  }

  // What a sigmoid makes the value of, else the value.
  std::string BeforeSigmoid() const {
    for (const proto::OpNode& op : graph_.model().op()) {
      if (op.type() == "sigmoid" && op.out(0).var(0) == value_) {
        return op.in(0).var(0);
      }
    }
    return value_;
  }

  // 1 for each label that counts, 0 for one that is ignored.
  std::string Counted() {
    const std::string ignored = Op("fill_constant", {}, "ignored",
                                   {{"shape", std::vector<int64_t>{1}},
                                    {"dtype", DType::kI64},
                                    {"value", static_cast<double>(kIgnored)}});
    const std::string counts =
        Op("not_equal", {{"X", label_}, {"Y", ignored}}, "counts");
    return Op("cast", {{"X", counts}}, "counted", {{"to", DType::kF32}});
  }

  // Of what is 0 where the mask is. A sum of all, or one element over the share
  // that counts, might be too large for f16; the mean, and what defines the
  // loss, are f32 at every level.
  void MaskedMean(const std::string& of, const std::string& mask) {
    const std::string share = Op("mean", {{"X", mask}}, "share");
    const std::string mean = Op("mean", {{"X", of}}, "ce.mean");
    SetLoss(Op("elementwise_div", {{"X", mean}, {"Y", share}}, "loss"), of);
    graph_.model().mutable_loss()->set_mask(mask);
  }

  void Mean(const std::string& of) {
    SetLoss(Op("mean", {{"X", of}}, "loss"), of);
  }

  void SetLoss(const std::string& var, const std::string& mean_over) {
    proto::Loss& loss = *graph_.model().mutable_loss();
    loss.set_var(var);
    loss.set_mean_over(mean_over);
  }

  const std::string value_;
  OnnxGraph& graph_;
  std::string label_;
  std::string from_ = "--loss";
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::string> AddOnnxLoss(const std::string& wish,
                                        std::optional<int64_t> class_axis,
                                        const std::string& file,
                                        OnnxGraph* graph) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(wish, absl::MaxSplits(':', 1));
  const auto& [kind, name] = parts;
  const std::vector<std::string> kinds = {"bce", "cross_entropy", "mse"};
  if (name.empty() ||
      (kind != kinds[0] && kind != kinds[1] && kind != kinds[2])) {
    return UsageError("--loss ", wish, ": expected cross_entropy:VALUE, ",
                      "mse:VALUE or bce:VALUE", NearestHint(kind, kinds));
  }
  if (class_axis.has_value() && kind != "cross_entropy") {
    return UsageError("--class-axis: --loss ", wish, " has no classes");
  }
  OnnxValue* const found = graph->Find(name);
  if (found == nullptr || found->name.empty()) {
    std::vector<std::string> names;
    for (const proto::OpNode& op : graph->model().op()) {
      names.push_back(op.out(0).var(0));
    }
    return ModelError(file, ": --loss ", wish, ": no node makes ", name,
                      NearestHint(name, names));
  }
  if (!IsFloat(graph->TypeOf(found->name).dtype)) {
    return ModelError(file, ": --loss ", wish, ": expected floats");
  }
  LossAdder adder(found->name, graph);
  if (kind == "cross_entropy") adder.CrossEntropy(class_axis.value_or(1));
  if (kind == "mse") adder.SquaredError();
  if (kind == "bce") adder.BinaryCrossEntropy();
  if (adder.status().ok()) return adder.from();
  return Annotate(adder.status(), absl::StrCat(file, ": --loss ", wish));
}

}  // namespace halftone
