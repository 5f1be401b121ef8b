// OpSchema: the single source of truth for an op. Documentation, AMP lists,
// kernel keys and coverage tables are derived from it. One chained
// declaration per op in graph/ops/<family>.cc:
//
//   registry.Add(OpSchema("matmul")
//       .Doc("Out = X * Y (+ Bias); batched over leading dims.")
//       .TypeVar("T", kFloatTypes)
//       .TypeVar("TOut", kFloatTypes, /*default_to=*/"T")
//       .In("X", "T", "[..., M, K]").In("Y", "T", "[..., K, N]")
//       .In("Bias", "T", "[N]", kOptional)
//       .Out("Out", "TOut", "[..., M, N]")
//       .Attr("trans_x", false, "transpose the last two dims of X")
//       .Infer(InferMatmul).Grad(GradMatmul)
//       .Amp(AmpClass::kWhite).Accumulate(DType::kF32));
#ifndef HALFTONE_GRAPH_SCHEMA_OP_SCHEMA_H_
#define HALFTONE_GRAPH_SCHEMA_OP_SCHEMA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"
#include "graph/ir/attr.h"
#include "graph/ir/decision.h"
#include "graph/schema/word_index.h"

namespace halftone {

class InferContext;  // graph/schema/infer_context.h
class GradContext;   // graph/schema/grad_context.h
class Block;
class Dim;
struct Op;

enum class AmpClass : uint8_t { kWhite, kBlack, kGray, kClear };
absl::string_view Name(AmpClass c);  // "white", "black", "gray", "clear"

using DTypeSet = absl::InlinedVector<DType, 8>;
extern const DTypeSet& kFloatTypes;  // f32 f16 bf16
extern const DTypeSet& kLowTypes;    // f16 bf16
extern const DTypeSet& kAnyTypes;    // all

struct TypeVar {
  std::string name;
  DTypeSet allowed;
  // For a variable that no input binds: the variable or dtype ("T", "f32")
  // that it takes unless the op's stored output type says otherwise.
  std::string default_to;
};

enum SlotFlags : uint32_t {
  kRequired = 0,
  kOptional = 1u << 0,
  kList = 1u << 1,        // any number of values of one dtype (0 too)
  kKeepF32 = 1u << 2,     // f32 at every level ("Batch norm FP32")
  kShapeOnly = 1u << 3,   // only dims are read: no storage, no liveness
  kContiguous = 1u << 4,  // members of the list lie side by side in memory
  kMixed = 1u << 5,       // list members may differ in dtype (fusion only)
  kLossy = 1u << 6,       // see OpSchema::Lossy
};

struct Slot {
  std::string name;
  std::string type;  // a type variable's name, or a fixed dtype ("i64")
  std::string doc;   // shape and meaning
  uint32_t flags = 0;
  // Input slots: the implicit feed or cell ("@seed") that fills the slot when
  // the model leaves it out. Output slots: index+1 of the input slot whose
  // storage the output may reuse (MayAlias), member by member; 0 for none.
  std::string implicit;
  int may_alias = 0;
  // What `type` names: a type variable's index, or -1 and the fixed dtype.
  // Set at registration.
  int type_var = -1;
  DType fixed{};

  bool optional() const { return flags & kOptional; }
  bool list() const { return flags & kList; }
  bool keep_f32() const { return flags & kKeepF32; }
  bool shape_only() const { return flags & kShapeOnly; }
  bool contiguous() const { return flags & kContiguous; }
  bool mixed() const { return flags & kMixed; }
  bool lossy() const { return flags & kLossy; }
};

struct AttrSpec {
  std::string name;
  AttrValue default_value;  // its alternative is the attribute's kind
  bool required = false;
  std::string doc;
};

// What an op's time goes to, for profiles and cost models.
enum class Work : uint8_t {
  kElements,    // moving and mapping elements
  kProduct,     // of matrices, convolutions among them; in backward a gradient
  kDataGrad,    // a product that makes the gradient of data,
  kWeightGrad,  // or of weights, in any case
  kNorm,
  kCast,
};

// Multiplications and additions of an op whose types are known.
using FlopsOf = Dim (*)(const Block& block, const Op& op);

// How choose-layout may lay out an op's 4-d tensors.
enum class LayoutRule : uint8_t {
  kRowMajor,        // row-major operands only
  kAny,             // element-wise: any layout, the same for all 4-d operands
  kChannelsLastOk,  // lead slot and outputs may be channels_last
};

class OpSchema {
 public:
  explicit OpSchema(absl::string_view name) : name_(name) {}

  // ---- Declaration.
  OpSchema& Doc(absl::string_view doc);
  OpSchema& TypeVar(absl::string_view name, DTypeSet allowed,
                    absl::string_view default_to = "");
  OpSchema& In(absl::string_view name, absl::string_view type,
               absl::string_view doc, uint32_t flags = kRequired);
  // An input filled from "@seed" and the like when the model leaves it out.
  OpSchema& ImplicitIn(absl::string_view name, absl::string_view type,
                       absl::string_view well_known, uint32_t flags = 0);
  OpSchema& Out(absl::string_view name, absl::string_view type,
                absl::string_view doc, uint32_t flags = kRequired);
  // The named output may reuse the named input's storage.
  OpSchema& MayAlias(absl::string_view output, absl::string_view input);
  // Where backward reads the named input, noise of mean zero in it makes noise
  // in gradients and nothing worse: products are added up with it, or nothing
  // but its sign is read, which compressed groups keep of what has zeros.
  OpSchema& Lossy(absl::string_view input);
  // The default's alternative gives the kind: bool, int64_t (ints), double,
  // std::string, vectors, DType.
  OpSchema& Attr(absl::string_view name, AttrValue default_value,
                 absl::string_view doc);
  OpSchema& RequiredAttr(absl::string_view name, AttrKind kind,
                         absl::string_view doc);
  // "stream", an int: which stream of random numbers the op draws from. What
  // differs in that alone has one type, one kernel, one kind (TypeKey).
  OpSchema& StreamAttr(absl::string_view doc);
  OpSchema& Infer(std::function<absl::Status(InferContext&)> infer);
  OpSchema& Grad(std::function<absl::Status(GradContext&)> grad);
  OpSchema& NoGrad();
  OpSchema& Amp(AmpClass amp_class);
  // A class of its own where a string attribute has a value: pool2d is gray
  // where pooling_type is "avg".
  OpSchema& AmpWhere(absl::string_view attr, absl::string_view value,
                     AmpClass amp_class);
  OpSchema& Accumulate(DType dtype);
  OpSchema& Costs(Work work, FlopsOf flops = nullptr) {
    work_ = work;
    flops_ = flops;
    return *this;
  }
  OpSchema& Layout(LayoutRule rule);
  // The eval entry has this op in its place: `to` takes the inputs of the
  // same slot names and the attributes of the same names; outputs map by
  // name, or as given. "identity": the op goes, its first output is its
  // first input (dropout).
  OpSchema& ToTest(absl::string_view to);
  OpSchema& Guarded();    // every output is select(FoundInf, old, new)
  OpSchema& NoMerge();    // never shared or folded (random ops)
  OpSchema& SplitOnly();  // has no kernel: a lower pass always splits it
  // Passes alone make it: a model that holds it is refused.
  OpSchema& Internal() {
    internal_ = true;
    return *this;
  }
  OpSchema& ElementWise();  // out[i] depends on in[i] of broadcast operands
  // The first output holds the first input's elements in their order (reshape):
  // wherever their bytes are the same the planner may let both share storage;
  // the kernel copies only where they differ.
  OpSchema& View() {
    view_ = true;
    return *this;
  }
  OpSchema& Version(int version);

  // ---- Reading.
  const std::string& name() const { return name_; }
  const std::string& doc() const { return doc_; }
  absl::Span<const halftone::TypeVar> type_vars() const { return type_vars_; }
  absl::Span<const Slot> inputs() const { return inputs_; }
  absl::Span<const Slot> outputs() const { return outputs_; }
  absl::Span<const AttrSpec> attrs() const { return attrs_; }
  // -1: none.
  int FindInput(absl::string_view name) const {
    return input_words_.Find(name);
  }
  int FindOutput(absl::string_view name) const {
    return output_words_.Find(name);
  }
  int FindAttr(absl::string_view name) const { return attr_words_.Find(name); }
  int FindTypeVar(absl::string_view name) const;    // -1: none (a fixed dtype)
  int stream_attr() const { return stream_attr_; }  // -1: none
  bool requires_attrs() const { return requires_attrs_; }
  bool has_grad() const { return static_cast<bool>(grad_); }
  AmpClass amp(const Op& op) const;
  AmpClass amp() const { return amp_; }
  std::optional<DType> accumulate() const { return accumulate_; }
  Work work() const { return work_; }
  FlopsOf flops() const { return flops_; }  // null: not worth counting
  LayoutRule layout() const { return layout_; }
  const std::string& to_test() const { return to_test_; }
  bool guarded() const { return guarded_; }
  bool no_merge() const { return no_merge_; }
  bool split_only() const { return split_only_; }
  bool internal() const { return internal_; }
  bool element_wise() const { return element_wise_; }
  bool view() const { return view_; }
  int version() const { return version_; }

  absl::Status RunInfer(InferContext& context) const;
  absl::Status RunGrad(GradContext& context) const;

  // Fills in the slots' type_var and fixed; before Check.
  void ResolveSlotTypes();
  // What is missing for registration: Doc, Infer, a Grad decision, an Amp
  // class, known type variables in slots.
  absl::Status Check() const;

 private:
  absl::Status CheckTypeVars() const;
  absl::Status CheckSlot(const Slot& slot) const;

  std::string name_, doc_;
  std::vector<halftone::TypeVar> type_vars_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<AttrSpec> attrs_;
  WordIndex input_words_, output_words_, attr_words_;  // of those
  int stream_attr_ = -1;
  bool requires_attrs_ = false;
  std::function<absl::Status(InferContext&)> infer_;
  std::function<absl::Status(GradContext&)> grad_;
  bool no_grad_ = false;
  AmpClass amp_ = AmpClass::kGray;
  bool amp_set_ = false;
  int amp_where_attr_ = -1;
  std::string amp_where_value_;
  AmpClass amp_where_class_ = AmpClass::kGray;
  std::optional<DType> accumulate_;
  Work work_ = Work::kElements;
  FlopsOf flops_ = nullptr;
  LayoutRule layout_ = LayoutRule::kRowMajor;
  std::string to_test_;
  bool guarded_ = false, no_merge_ = false, split_only_ = false;
  bool element_wise_ = false, view_ = false, internal_ = false;
  int version_ = 1;
};

// Attribute access with the schema's default; CHECKs name and kind.
const AttrValue& GetAttr(const Op& op, absl::string_view name);
// The explicitly set value of the schema's `index`-th attribute, or null.
const AttrValue* FindSetAttr(AttrSpan attrs, int index);
template <typename T>
const T& AttrAs(const Op& op, absl::string_view name) {
  return std::get<T>(GetAttr(op, name));
}
// Sets an attribute of the schema's kind (CHECKed).
void SetAttr(const OpSchema& schema, absl::string_view name, AttrValue value,
             AttrList* attrs);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_OP_SCHEMA_H_
