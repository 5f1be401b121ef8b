#include "graph/import/neutral.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/import/unneeded.h"
#include "graph/io/model_values.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

// Whatever their value: who made the op, where and how fast it runs, whether
// for training or not (our compiler makes both), random numbers' seeds (ours
// come from the run's).
constexpr absl::string_view kSilent[] = {
    "deterministic",
    "epmap",
    "exhaustive_search",
    "fix_seed",
    "force_cpu",
    "height_sections",
    "infer_flags",
    "is_distributed",
    "is_sparse",
    "is_test",
    "mkldnn_data_type",
    "name",
    "numeric_stable_mode",
    "op_callstack",
    "op_device",
    "op_namescope",
    "op_role",
    "op_role_var",
    "place_type",
    "remote_prefetch",
    "seed",
    "slot",
    "sorted",
    "table_names",
    "trainer_id",
    "use_addto",
    "use_cudnn",
    "use_mkldnn",
    "use_onednn",
    "use_quantizer",
    "with_quant_attr",
    "workspace_size_MB",
};

// With these values, as TextOf writes them.
struct Neutral {
  absl::string_view name, value;
};
constexpr Neutral kNeutral[] = {
    {"Scale_in", "1"},
    {"Scale_in_eltwise", "1"},
    {"Scale_out", "1"},
    {"Scale_weights", "[1]"},
    {"Scale_x", "1"},
    {"Scale_y", "1"},
    {"alpha", "1"},
    {"axis", "-1"},
    {"data_format", "\"AnyLayout\""},
    {"data_format", "\"NCHW\""},
    {"data_format", "\"NCDHW\""},
    {"data_format", "\"NCL\""},
    {"data_layout", "\"NCHW\""},
    {"data_layout", "\"NCDHW\""},
    {"force_fp32_output", "false"},
    {"fuse_activation", "\"\""},
    {"fuse_alpha", "0"},
    {"fuse_beta", "0"},
    {"fuse_relu", "false"},
    {"fuse_relu_before_depthwise_conv", "false"},
    {"fuse_residual_connection", "false"},
    {"fuse_with_relu", "false"},
    {"in_dtype", "-1"},
    {"largest", "true"},
    {"out_dtype", "-1"},
    {"padding_algorithm", "\"EXPLICIT\""},
    {"scale_out", "1"},
    {"scale_x", "1"},
    {"scale_y", "[1]"},
    {"soft_label", "false"},
    {"threshold", "6"},
    {"trainable_statistics", "false"},
    {"use_global_stats", "false"},
    {"use_softmax", "true"},
};

// What Paddle's ops keep for their gradients, and statistics that are written
// to where they were read.
constexpr absl::string_view kOutputs[] = {
    "DropoutState",  "Mask",        "MeanOut",   "Reserve",
    "ReserveSpace",  "Residual",    "SavedMean", "SavedStd",
    "SavedVariance", "VarianceOut", "XShape",
};

template <typename List>
bool Contains(const List& list, absl::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

template <typename Members, typename Drop>
void DropIf(Members* members, const Drop& drop) {
  members->erase(std::remove_if(members->begin(), members->end(), drop),
                 members->end());
}

// Values that something of the model names; what is a statistic is no value of
// an op, which updates it by itself.
absl::flat_hash_set<std::string> ReadValues(const proto::Model& model) {
  absl::flat_hash_set<std::string> read = WantedValues(model);
  for (const proto::OpNode& op : model.op()) {
    for (const proto::SlotVars& in : op.in()) {
      read.insert(in.var().begin(), in.var().end());
    }
  }
  for (const proto::Parameter& stat : model.stat()) read.erase(stat.name());
  return read;
}

}  // namespace

bool ChangesNothing(absl::string_view name, const AttrValue* value) {
  if (Contains(kSilent, name)) return true;
  if (value == nullptr) return false;
  const std::string text = TextOf(*value);
  return std::any_of(std::begin(kNeutral), std::end(kNeutral),
                     [&](const Neutral& one) {
                       return one.name == name && one.value == text;
                     });
}

std::string TextOf(const AttrValue& value) {
  const auto join = [](const auto& list) {
    return absl::StrCat("[", absl::StrJoin(list, ", "), "]");
  };
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value)) return absl::StrCat(*i);
  if (const auto* f = std::get_if<double>(&value)) return ExactDouble(*f);
  if (const auto* s = std::get_if<std::string>(&value)) {
    return absl::StrCat("\"", *s, "\"");
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    return join(*ints);
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
    std::vector<std::string> words;
    for (const double number : *floats) words.push_back(ExactDouble(number));
    return join(words);
  }
  if (const auto* words = std::get_if<std::vector<std::string>>(&value)) {
    return join(*words);
  }
  return std::string(Name(std::get<DType>(value)));
}

std::vector<std::string> DropNeutral(proto::Model* const model) {
  // Found when it is first asked for: most models have no such outputs.
  std::optional<absl::flat_hash_set<std::string>> read;
  std::map<std::string, int> ops;
  for (proto::OpNode& op : *model->mutable_op()) {
    const OpSchema* schema = Ops().Find(op.type());
    if (schema == nullptr) continue;
    DropIf(op.mutable_attr(), [&](const proto::Attribute& attr) {
      if (schema->FindAttr(AttrName(*schema, attr.name())) >= 0) return false;
      const absl::StatusOr<AttrValue> value = FromProto(attr);
      if (!value.ok() || !ChangesNothing(attr.name(), &*value)) return false;
      ++ops[attr.name()];
      return true;
    });
    DropIf(op.mutable_out(), [&](const proto::SlotVars& out) {
      if (schema->FindOutput(out.slot()) >= 0) return false;
      if (!Contains(kOutputs, out.slot())) return false;
      if (!read.has_value()) read = ReadValues(*model);
      if (std::any_of(
              out.var().begin(), out.var().end(),
              [&](const std::string& v) { return read->contains(v); })) {
        return false;
      }
      ++ops[out.slot()];
      return true;
    });
  }
  std::vector<std::string> dropped;
  for (const auto& [name, count] : ops) {
    dropped.push_back(
        absl::StrCat(name, " (", count, count == 1 ? " op)" : " ops)"));
  }
  return dropped;
}

}  // namespace halftone
