// What an op's Infer sees and sets: input types and attributes in, output
// dims out. Dtypes follow from the slots' type variables and are set by the
// caller; Infer sets dims (and layout where it is not row-major).
#ifndef HALFTONE_GRAPH_SCHEMA_INFER_CONTEXT_H_
#define HALFTONE_GRAPH_SCHEMA_INFER_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/error.h"
#include "graph/ir/attr.h"
#include "graph/ir/type.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/slot_types.h"

namespace halftone {

class InferContext {
 public:
  // `inputs[s]` are the types of slot s, which outlive it. `output_counts[s]`
  // is the number of values of output slot s (1, 0 for an optional one left
  // out, n for lists).
  InferContext(const OpSchema& schema, absl::string_view op_name,
               const SlotTypes& inputs, AttrSpan attrs,
               std::vector<int> output_counts,
               absl::Span<const std::string> symbols)
      : schema_(schema),
        op_name_(op_name),
        inputs_(inputs),
        attrs_(attrs),
        symbols_(symbols) {
    for (int count : output_counts) outputs_.emplace_back(count);
  }

  const OpSchema& schema() const { return schema_; }
  bool HasInput(absl::string_view slot) const;
  // The type of a slot that holds exactly one value.
  const TensorType& Input(absl::string_view slot) const;
  TypeList InputList(absl::string_view slot) const;
  const AttrValue& Attr(absl::string_view name) const;
  bool Bool(absl::string_view name) const { return std::get<bool>(Attr(name)); }
  int64_t Int(absl::string_view name) const {
    return std::get<int64_t>(Attr(name));
  }
  double Float(absl::string_view name) const {
    return std::get<double>(Attr(name));
  }
  const std::string& Str(absl::string_view name) const {
    return std::get<std::string>(Attr(name));
  }
  const std::vector<int64_t>& Ints(absl::string_view name) const {
    return std::get<std::vector<int64_t>>(Attr(name));
  }

  // The number of values of an output slot.
  int OutputCount(absl::string_view slot) const;
  // Sets the dims of an output slot's i-th value; ignored if absent.
  void SetOutput(absl::string_view slot, Dims dims, int i = 0);
  void SetOutputLayout(absl::string_view slot, halftone::Layout layout,
                       int i = 0);
  bool LayoutIsSet(int output_slot, int i) const;
  bool SetsLayouts() const { return !set_layouts_.empty(); }

  const std::vector<std::vector<TensorType>>& outputs() const {
    return outputs_;
  }
  std::vector<std::vector<TensorType>>& outputs() { return outputs_; }

  // "conv1 (conv2d): slot Input: expected ..., found f32[B,1,28,28]".
  absl::Status SlotError(absl::string_view slot,
                         absl::string_view expected) const;
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ModelError(op_name_, " (", schema_.name(), "): ", parts...);
  }
  std::string Print(const TensorType& type) const {
    return ToString(type, symbols_);
  }

 private:
  const OpSchema& schema_;
  std::string op_name_;
  const SlotTypes& inputs_;
  AttrSpan attrs_;
  std::vector<std::vector<TensorType>> outputs_;
  absl::Span<const std::string> symbols_;
  // By output slot and member, whether Infer chose the layout; none: of none.
  std::vector<std::vector<bool>> set_layouts_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_INFER_CONTEXT_H_
