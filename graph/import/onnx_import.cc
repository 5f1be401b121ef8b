#include "graph/import/onnx_import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/import/onnx_loss.h"
#include "graph/import/onnx_ops.h"
#include "graph/import/onnx_parts.h"
#include "graph/import/refusals.h"
#include "graph/import/unneeded.h"

namespace halftone {
namespace {

using onnx::NodeProto;
using onnx::ValueInfoProto;

constexpr absl::string_view kConstant = "Constant";

// How many are not trained and have no initialiser that makes them.
int64_t ConstantsOfFile(const proto::Model& model,
                        const std::vector<OnnxWeight>& weights) {
  absl::flat_hash_set<std::string> constants;
  for (const proto::Parameter& param : model.param()) {
    if (!param.trainable()) constants.insert(param.name());
  }
  return std::count_if(
      weights.begin(), weights.end(), [&](const OnnxWeight& weight) {
        if (!constants.contains(weight.name)) return false;
        const auto known = ConstantOf(weight.tensor);
        return !known.has_value() || !known->Uniform().has_value();
      });
}

class Importer {
 public:
  Importer(const OnnxFile& file, const OnnxOptions& options)
      : file_(file),
        source_(file.model.graph()),
        options_(options),
        graph_(file) {}

  absl::StatusOr<OnnxModel> Run();

 private:
  void Describe();
  // `raw`: as OnnxFile has it; empty: the bytes are with the tensors.
  void AddInitializers(const onnx::GraphProto& graph,
                       absl::Span<const absl::string_view> raw);
  void AddFeeds();
  void AddFeed(const ValueInfoProto& input);
  // Nodes in an order in which what they read is there; those of a cycle are
  // refused.
  std::vector<int> Order();
  void ImportNode(const NodeProto& node, const std::string& place);
  // A branch in the place of its node, if it is known which; false: it is not.
  bool TakeBranch(const NodeProto& node, const std::string& place);
  void LoseOutputs(const NodeProto& node);
  // Whether all it reads is there; what is lost has been told already.
  bool InputsAreThere(const NodeProto& node, const std::string& place);
  // As a value that is known; false: it is none.
  bool IsComputed(const NodeProto& node, const std::string& place);
  bool TakeConstant(const NodeProto& node, const std::string& place);
  absl::Status SetOutputs();
  // Whether an output has no samples where those of the batch were.
  bool LosesBatch(const ValueInfoProto& output, const TensorType& type) const;
  // What to do where a batch that --dims has opened is in the way.
  std::string OfClosedBatch() const;
  void Count();

  const OnnxFile& file_;
  const onnx::GraphProto& source_;
  const OnnxOptions& options_;
  OnnxGraph graph_;
  Refusals refusals_, notes_;
  absl::flat_hash_set<std::string> read_;
  std::map<std::string, std::string> feeds_;  // ours by ONNX's name
  int64_t computed_ = 0;                      // nodes
  int64_t elements_ = 0;                      // that they have made
  OnnxModel result_;
};

std::string PlaceOf(int index, const NodeProto& node) {
  const std::string& called = !node.name().empty()     ? node.name()
                              : node.output_size() > 0 ? node.output(0)
                                                       : node.op_type();
  return absl::StrCat("node ", index, " (", called, ")");
}

// What a node reads, and the nodes of its own graphs: those of a branch may
// read whatever is there.
void ForEachRead(const NodeProto& node,
                 absl::FunctionRef<void(const std::string&)> call) {
  for (const std::string& input : node.input()) call(input);
  for (const onnx::AttributeProto& attr : node.attribute()) {
    for (const NodeProto& one : attr.g().node()) ForEachRead(one, call);
    for (const ValueInfoProto& out : attr.g().output()) call(out.name());
  }
}

void Importer::Describe() {
  ImportedModel& imported = result_.imported;
  imported.model.file = file_.path;
  imported.ops = source_.node_size();
  imported.from = absl::StrCat("onnx opset ", file_.opset);
  std::string by = file_.model.producer_name();
  if (!by.empty()) {
    by = absl::StrCat(" of ", by, by.empty() ? "" : " ",
                      file_.model.producer_version());
  }
  imported.source = absl::StrCat("ONNX opset ", file_.opset, by, ", ",
                                 WithCommas(imported.ops), " nodes");
  imported.no_loss = "no --loss (cross_entropy:VALUE, mse:VALUE, bce:VALUE)";
}

void Importer::AddInitializers(const onnx::GraphProto& graph,
                               absl::Span<const absl::string_view> raw) {
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const onnx::TensorProto& tensor = graph.initializer(i);
    OnnxValue value;
    value.tensor = &tensor;
    value.raw = raw.empty() ? absl::string_view() : raw[i];
    value.initializer = true;
    if (graph_.Add(tensor.name(), std::move(value))) continue;
    refusals_.Add("initialiser", "two definitions",
                  absl::StrCat("two are called ", tensor.name()),
                  absl::StrCat("initialiser ", i));
  }
  if (graph.sparse_initializer_size() > 0) {
    refusals_.Add("initialiser", "is sparse",
                  graph.sparse_initializer(0).values().name());
  }
}

void Importer::AddFeed(const ValueInfoProto& input) {
  const std::string what = absl::StrCat("input ", input.name());
  const auto lose = [&](const std::string& why) {
    refusals_.Add(what, why, "the graph's inputs");
    OnnxValue lost;
    lost.lost = true;
    graph_.Add(input.name(), std::move(lost));
  };
  const onnx::TypeProto& type = input.type();
  if (!type.has_tensor_type()) return lose("it is no tensor");
  const int32_t elem = type.tensor_type().elem_type();
  const DType dtype = FromOnnx(elem);
  if (dtype == DType::kInvalid) {
    return lose(absl::StrCat("its dtype is ", NameOfOnnxType(elem)));
  }
  proto::Feed feed;
  feed.set_dtype(ProtoOf(dtype));
  const auto given = options_.dims.find(input.name());
  const std::string first =
      "; the batch (-1) has to be the first dim, in PyTorch batch_first=True";
  if (given != options_.dims.end()) {
    const std::vector<int64_t>& dims = given->second;
    if (dims.size() > 1 &&
        std::find(dims.begin() + 1, dims.end(), -1) != dims.end()) {
      return lose(absl::StrCat("--dims ", absl::StrJoin(dims, ","), first));
    }
    feed.mutable_dims()->Add(dims.begin(), dims.end());
    const auto& own = type.tensor_type().shape().dim();
    if (!dims.empty() && dims[0] == -1 && !own.empty() &&
        own[0].dim_value() > 0) {
      const int64_t was = graph_.batch_was();
      if (was != 0 && was != own[0].dim_value()) {
        return lose(absl::StrCat("--dims opens a batch of ", own[0].dim_value(),
                                 ", that of another input was ", was));
      }
      graph_.OpenBatchOf(own[0].dim_value());
    }
  } else {
    const std::string advice =
        absl::StrCat("; give them with --dims ", input.name(), "=-1,...");
    if (!type.tensor_type().has_shape()) {
      return lose(absl::StrCat("its dims are not known", advice));
    }
    for (const auto& dim : type.tensor_type().shape().dim()) {
      const bool known = dim.has_dim_value() && dim.dim_value() > 0;
      if (dim.has_dim_value() && dim.dim_value() == 0) {
        return lose("it has no elements");
      }
      if (!known && feed.dims_size() > 0) {
        return lose(absl::StrCat(
            "dim ", feed.dims_size(), " (",
            dim.dim_param().empty() ? "?" : dim.dim_param(), ") is not known",
            feed.dims(0) == -1 ? advice : first));
      }
      feed.add_dims(known ? dim.dim_value() : -1);
    }
  }
  OnnxValue value;
  const absl::Status status =
      graph_.AddFeed(input.name(), std::move(feed), &value.name);
  if (!status.ok()) return lose(std::string(status.message()));
  feeds_[input.name()] = value.name;
  if (graph_.Add(input.name(), std::move(value))) return;
  refusals_.Add(what, "two definitions of it", "the graph's inputs");
}

void Importer::AddFeeds() {
  for (const ValueInfoProto& input : source_.input()) {
    // Older files name initialisers among the inputs.
    const OnnxValue* const there = graph_.Find(input.name());
    if (there != nullptr && there->initializer) continue;
    AddFeed(input);
  }
  for (const auto& [name, dims] : options_.dims) {
    if (feeds_.count(name) > 0 || graph_.Find(name) != nullptr) continue;
    refusals_.Add(absl::StrCat("--dims ", name), "the graph has no such input",
                  "the graph's inputs");
  }
}

std::vector<int> Importer::Order() {
  // By value: the node that makes it. The first of two; the second is refused
  // where it is imported.
  absl::flat_hash_map<absl::string_view, int> makers;
  const int count = source_.node_size();
  for (int i = 0; i < count; ++i) {
    for (const std::string& output : source_.node(i).output()) {
      if (!output.empty()) makers.try_emplace(output, i);
    }
  }
  std::vector<int> waits(count, 0), order;
  std::vector<std::vector<int>> readers(count);
  std::set<int> ready;
  for (int i = 0; i < count; ++i) {
    std::set<int> before;
    ForEachRead(source_.node(i), [&](const std::string& input) {
      const auto maker = makers.find(input);
      if (maker != makers.end()) before.insert(maker->second);
    });
    waits[i] = static_cast<int>(before.size());
    for (const int maker : before) readers[maker].push_back(i);
    if (before.empty()) ready.insert(i);
  }
  while (!ready.empty()) {
    const int next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const int reader : readers[next]) {
      if (--waits[reader] == 0) ready.insert(reader);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (waits[i] == 0) continue;
    refusals_.Add(source_.node(i).op_type(), "cycle",
                  "it reads what is made of its own output",
                  PlaceOf(i, source_.node(i)));
  }
  return order;
}

void Importer::LoseOutputs(const NodeProto& node) {
  for (const std::string& output : node.output()) {
    OnnxValue* const there = graph_.Find(output);
    if (there != nullptr) {
      there->lost = true;
      continue;
    }
    OnnxValue lost;
    lost.lost = true;
    graph_.Add(output, std::move(lost));
  }
}

bool Importer::InputsAreThere(const NodeProto& node, const std::string& place) {
  bool there = true;
  for (const std::string& input : node.input()) {
    if (input.empty()) continue;
    const OnnxValue* const value = graph_.Find(input);
    if (value == nullptr) {
      refusals_.Add(node.op_type(), "input",
                    absl::StrCat("nothing makes its input ", input), place);
    }
    there = there && value != nullptr && !value->lost;
  }
  return there;
}

bool Importer::TakeConstant(const NodeProto& node, const std::string& place) {
  if (node.op_type() != kConstant || node.output_size() != 1) return false;
  OnnxValue value;
  if (const auto* tensor = FindAttr(node, "value")) {
    value.tensor = &tensor->t();
  } else {
    OnnxConstant constant;
    const onnx::AttributeProto* attr = nullptr;
    if ((attr = FindAttr(node, "value_float")) != nullptr) {
      constant.reals = {attr->f()};
    } else if ((attr = FindAttr(node, "value_floats")) != nullptr) {
      constant.reals.assign(attr->floats().begin(), attr->floats().end());
      constant.dims = {constant.elements()};
    } else if ((attr = FindAttr(node, "value_int")) != nullptr) {
      constant.ints = {Dim(attr->i())};
    } else if ((attr = FindAttr(node, "value_ints")) != nullptr) {
      constant.ints.assign(attr->ints().begin(), attr->ints().end());
      constant.dims = {static_cast<int64_t>(constant.ints.size())};
    } else {
      return false;
    }
    const bool real = absl::StartsWith(attr->name(), "value_float");
    constant.dtype = real ? DType::kF32 : DType::kI64;
    constant.dims.resize(std::min<size_t>(constant.dims.size(), 1));
    if (real && !constant.dims.empty()) {
      constant.dims[0] = static_cast<int64_t>(constant.reals.size());
    }
    value.constant = std::move(constant);
  }
  if (!graph_.Add(node.output(0), std::move(value))) {
    refusals_.Add(node.op_type(), "two definitions",
                  absl::StrCat("two definitions of ", node.output(0)), place);
  }
  return true;
}

bool Importer::IsComputed(const NodeProto& node, const std::string& place) {
  if (TakeConstant(node, place)) return true;
  std::optional<OnnxConstant> made;
  const bool shape = node.op_type() == "Shape", size = node.op_type() == "Size";
  if ((shape || size) && node.input_size() == 1 && node.output_size() == 1 &&
      graph_.Find(node.input(0)) != nullptr) {
    const auto type = graph_.TypeOf(graph_.Find(node.input(0)));
    if (!type.ok()) return false;
    std::vector<Dim> dims(type->dims.begin(), type->dims.end());
    if (size) {
      made = ListOf({type->Elements()});
      made->dims.clear();
    } else {
      const int64_t rank = type->rank();
      const auto bound = [&](absl::string_view name, int64_t otherwise) {
        const onnx::AttributeProto* const attr = FindAttr(node, name);
        int64_t at = attr == nullptr ? otherwise : attr->i();
        if (at < 0) at = at < -rank ? 0 : at + rank;
        return std::min(at, rank);
      };
      const int64_t start = bound("start", 0), end = bound("end", rank);
      made = ListOf({dims.begin() + std::min(start, end), dims.begin() + end});
    }
  } else {
    std::vector<const OnnxConstant*> inputs;
    OnnxConstant like;
    const bool is_like = node.op_type() == "CastLike";
    bool any = false;
    for (const std::string& input : node.input()) {
      inputs.push_back(nullptr);
      if (input.empty()) continue;
      OnnxValue* const value = graph_.Find(input);
      const bool type_alone = inputs.size() == 2 && is_like;
      if (type_alone && value != nullptr && !graph_.Folds(value)) {
        const auto type = graph_.TypeOf(value);
        if (!type.ok()) return false;
        like.dtype = type->dtype;
        inputs.back() = &like;
        continue;
      }
      // What counts is not trained, though floats of the file are.
      const bool counts = node.op_type() == "Range" && graph_.Known(value);
      if (!counts && !graph_.Folds(value)) return false;
      inputs.back() = graph_.Known(value);
      any = true;
    }
    if (any) made = Evaluate(node, inputs);
  }
  if (!made.has_value()) return false;
  // A file of a few bytes per node may ask for a gigabyte.
  constexpr int64_t kMost = int64_t{1} << 24;
  elements_ += made->elements();
  if (elements_ > kMost) {
    refusals_.Add("the graph", "too much of it is computed at import", place);
    made->ints.clear();
    made->reals.clear();
    LoseOutputs(node);
    return true;
  }
  OnnxValue value;
  value.constant = std::move(made);
  if (!graph_.Add(node.output(0), std::move(value))) {
    refusals_.Add(node.op_type(), "two definitions",
                  absl::StrCat("two definitions of ", node.output(0)), place);
  }
  return true;
}

bool Importer::TakeBranch(const NodeProto& node, const std::string& place) {
  if (node.input_size() != 1 || node.input(0).empty()) return false;
  OnnxValue* const which = graph_.Find(node.input(0));
  const OnnxConstant* const known =
      graph_.Folds(which) ? graph_.Known(which) : nullptr;
  if (known == nullptr || !known->Uniform().has_value()) return false;
  const onnx::AttributeProto* const branch =
      FindAttr(node, *known->Uniform() != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr || branch->g().output_size() != node.output_size()) {
    return false;
  }
  AddInitializers(branch->g(), {});
  for (int i = 0; i < branch->g().node_size(); ++i) {
    const NodeProto& one = branch->g().node(i);
    ImportNode(one, absl::StrCat(place, ", ", PlaceOf(i, one)));
  }
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = branch->g().output(i).name();
    OnnxValue* const made = graph_.Find(name);
    if (made == nullptr) {
      refusals_.Add(node.op_type(), "output",
                    absl::StrCat("nothing makes ", name), place);
      LoseOutputs(node);
      return true;
    }
    // One parameter, whoever reads it.
    if (made->tensor != nullptr) (void)graph_.Materialize(name, made);
    if (graph_.Add(node.output(i), *made)) continue;
    refusals_.Add(node.op_type(), "two definitions",
                  absl::StrCat("two definitions of ", node.output(i)), place);
  }
  return true;
}

void Importer::ImportNode(const NodeProto& node, const std::string& place) {
  const bool ours = node.domain().empty() || node.domain() == "ai.onnx";
  const OnnxRule* const rule = ours ? FindOnnxRule(node.op_type()) : nullptr;
  const bool there = InputsAreThere(node, place);
  if (ours && there && IsComputed(node, place)) {
    ++computed_;
    return;
  }
  if (ours && there && node.op_type() == "If" && TakeBranch(node, place)) {
    return;
  }
  if (rule == nullptr) {
    const bool computes = node.op_type() == "Shape" ||
                          node.op_type() == "Size" ||
                          node.op_type() == kConstant;
    if (!computes || there) {
      const std::string what =
          ours ? node.op_type()
               : absl::StrCat(node.domain(), ".", node.op_type());
      refusals_.Add(what,
                    computes ? "its value is not known at import"
                             : absl::StrCat("no such op",
                                            NearestOnnxRule(node.op_type())),
                    place);
    }
    return LoseOutputs(node);
  }
  if (!there) return LoseOutputs(node);
  if (node.output_size() == 0) {
    refusals_.Add(node.op_type(), "it has no output", place);
    return;
  }
  OnnxNode view(node, file_.opset, &graph_, &read_);
  rule->convert(view, *rule);
  if (!view.failed()) view.CheckTaken();
  if (!view.failed()) {
    if (view.through_f32()) notes_.Add(node.op_type(), kThroughF32, place);
    return;
  }
  std::string kind, why;
  for (const Refusal& refusal : view.refusals()) {
    absl::StrAppend(&kind, refusal.kind, "\n");
    absl::StrAppend(&why, why.empty() ? "" : ", ", refusal.kind, refusal.found);
  }
  refusals_.Add(node.op_type(), kind, why, place);
  LoseOutputs(node);
}

bool Importer::LosesBatch(const ValueInfoProto& output,
                          const TensorType& type) const {
  const auto& declared = output.type().tensor_type().shape().dim();
  return graph_.batch_was() > 0 && !declared.empty() &&
         declared[0].dim_value() == graph_.batch_was() && type.rank() > 0 &&
         type.dims[0].is_constant();
}

std::string Importer::OfClosedBatch() const {
  return absl::StrCat("; the graph is one of ", graph_.batch_was(),
                      graph_.batch_was() == 1 ? " sample" : " samples",
                      ": more can be opened of one of 1, all of one exported "
                      "with its batch open (dynamic_shapes, dynamic_axes)");
}

absl::Status Importer::SetOutputs() {
  for (const ValueInfoProto& output : source_.output()) {
    OnnxValue* const value = graph_.Find(output.name());
    if (value == nullptr) {
      return ModelError(file_.path, ": output ", output.name(),
                        ": no node makes it");
    }
    if (value->lost) continue;
    const auto name =
        graph_.Materialize(absl::StrCat(output.name(), ".value"), value);
    if (!name.ok()) {
      return Annotate(name.status(),
                      absl::StrCat(file_.path, ": output ", output.name()));
    }
    if (LosesBatch(output, graph_.TypeOf(*name))) {
      return ModelError(file_.path, ": output ", output.name(), " is ",
                        ToString(graph_.TypeOf(*name), {"B"}),
                        ", without the batch that --dims has opened",
                        OfClosedBatch());
    }
    // A name that stands for another value, or for none that an op makes.
    const bool made =
        graph_.block().FindValue(*name).valid() &&
        graph_.block().value(graph_.block().FindValue(*name)).op().valid();
    std::string shown = *name;
    if (!made || *name != output.name()) {
      proto::OpNode node;
      node.set_type("assign");
      node.add_in()->set_slot("X");
      node.mutable_in(0)->add_var(*name);
      shown = graph_.Unused(output.name());
      node.add_out()->set_slot("Out");
      node.mutable_out(0)->add_var(shown);
      HT_RETURN_IF_ERROR(graph_.AddOp(std::move(node), {}));
    }
    const auto& outputs = graph_.model().output();
    if (std::find(outputs.begin(), outputs.end(), shown) == outputs.end()) {
      graph_.model().add_output(shown);
    }
  }
  return absl::OkStatus();
}

void Importer::Count() {
  ImportedModel& imported = result_.imported;
  imported.notes = notes_.Lines();
  if (computed_ > 0) {
    imported.left_out["computed at import"] = computed_;
  }
  absl::flat_hash_set<std::string> kept;
  for (const proto::Feed& feed : graph_.model().feed()) {
    kept.insert(feed.name());
  }
  for (const auto& [name, ours] : feeds_) {
    if (!kept.contains(ours)) imported.unread_feeds.push_back(name);
  }
}

absl::StatusOr<OnnxModel> Importer::Run() {
  Describe();
  AddInitializers(source_, file_.raw);
  AddFeeds();
  for (const NodeProto& node : source_.node()) {
    ForEachRead(node, [&](const std::string& input) { read_.insert(input); });
  }
  for (const ValueInfoProto& output : source_.output()) {
    read_.insert(output.name());
  }
  for (const int index : Order()) {
    const NodeProto& node = source_.node(index);
    ImportNode(node, PlaceOf(index, node));
  }
  const absl::Status refused = refusals_.ToStatus(file_.path);
  if (!refused.ok() && graph_.batch_was() > 0) {
    return ModelError(refused.message(), "\n  --dims opened the batch",
                      OfClosedBatch());
  }
  HT_RETURN_IF_ERROR(refused);
  ImportedModel& imported = result_.imported;
  graph_.model().set_name(options_.name);
  graph_.model().set_format(kModelFormat);
  HT_RETURN_IF_ERROR(SetOutputs());
  if (!options_.loss.empty()) {
    HT_ASSIGN_OR_RETURN(
        imported.loss_from,
        AddOnnxLoss(options_.loss, options_.class_axis, file_.path, &graph_));
  }
  DropUnneeded(&graph_.model());
  HT_RETURN_IF_ERROR(JoinParts(&graph_));
  DropUnneeded(&graph_.model());
  Count();
  result_.weights = graph_.Finish();
  *imported.model.model = std::move(graph_.model());
  imported.constants_of_file =
      ConstantsOfFile(*imported.model.model, result_.weights);
  HT_RETURN_IF_ERROR(BuildProgram(imported.model).status());
  return std::move(result_);
}

}  // namespace

absl::StatusOr<OnnxModel> ImportOnnx(const OnnxFile& file,
                                     const OnnxOptions& options) {
  return Importer(file, options).Run();
}

}  // namespace halftone
