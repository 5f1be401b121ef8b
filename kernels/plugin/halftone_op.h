// Ops of your own: a shared library that `halftone --op-library libmine.so`
// takes. This header is all that such a library needs: it includes the standard
// library and halftone_op_abi.h alone, and is C++14 or later, for g++, clang++
// and nvcc.
//
//   namespace ho = halftone::op;
//
//   void Twice(ho::Call& call) {
//     const float* x = call.Input<float>(0);
//     float* out = call.Output<float>(0);
//     for (int64_t i = 0; i < call.elements(); ++i) out[i] = 2 * x[i];
//   }
//
//   HALFTONE_OP_LIBRARY("twice", "1.0", library) {
//     library.Op("twice", "Out = 2 * X.")
//         .TypeVar("T", {ho::kF32})
//         .In("X", "T").Out("Out", "T")
//         .Amp(ho::kGray)
//         .Infer(ho::SameDims)
//         .Gradient(ho::GradientOp("twice").In("X", ho::OutGrad("Out"))
//                       .Out("Out", "X"))
//         .Kernel(ho::kCpu, {ho::kF32}, Twice);
//   }
//
//   g++ -std=c++17 -O2 -fPIC -shared -I DIR twice.cc -o libtwice.so
//
// where DIR holds kernels/plugin: a clone of Halftone, or include/halftone of
// an installed one.
//
// Exceptions of your code end in here and become errors of the op.
#ifndef HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_H_
#define HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "kernels/plugin/halftone_op_abi.h"

#if defined(__CUDACC__)
#define HALFTONE_OP_HOST_DEVICE __host__ __device__
#else
#define HALFTONE_OP_HOST_DEVICE
#endif

namespace halftone {
namespace op {

enum DType : int32_t { kF32 = 1, kF16, kBF16, kF64, kI32, kI64, kU8, kBool };
enum Kind : int32_t {
  kIsBool,
  kIsInt,
  kIsFloat,
  kIsString,
  kIsInts,
  kIsFloats
};
// The class for mixed precision. White: low precision; black: f32; gray: low
// where all its inputs are; clear: no arithmetic, follows its inputs.
enum Amp : int32_t { kWhite, kBlack, kGray, kClear };
enum SlotFlags : uint32_t {
  kOptional = 1,
  kList = 2,     // any number of values of one dtype
  kKeepF32 = 4,  // f32 at every level
};
enum OpFlags : uint32_t {
  // Works element by element: values of four dims may be channels-last, all
  // of them alike.
  kAnyLayout = 1,
  // Two ops with equal inputs differ (random numbers): they are not shared.
  kNoMerge = 2,
};
enum Source : int32_t {
  kInputValue,
  kOutputValue,
  kOutputGradient,
  kTemporary
};

constexpr const char kCpu[] = "cpu";
constexpr const char kCuda[] = "cuda";

// An error of your op, if it throws it.
class Error : public std::exception {
 public:
  explicit Error(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// 16-bit floats as they lie in memory; arithmetic is f32, rounded to nearest
// even once.
struct Half {
  uint16_t bits;
  Half() = default;
  HALFTONE_OP_HOST_DEVICE explicit Half(float value) {
    uint32_t f;
    memcpy(&f, &value, 4);
    const uint32_t sign = (f >> 16) & 0x8000;
    f &= 0x7fffffff;
    uint32_t result;
    if (f > 0x7f800000) {
      result = 0x7e00;  // not a number
    } else if (f >= 0x477ff000) {
      result = 0x7c00;  // rounds to infinity
    } else if (f >= 0x38800000) {
      result = (f - 0x38000000 + 0xfff + ((f >> 13) & 1)) >> 13;
    } else if (f < 0x33000000) {
      result = 0;
    } else {  // subnormal
      const uint32_t shift = 126 - (f >> 23);
      const uint32_t digits = (f & 0x7fffff) | 0x800000;
      result = digits >> shift;
      const uint32_t rest = digits & ((1u << shift) - 1);
      const uint32_t half = 1u << (shift - 1);
      if (rest > half || (rest == half && (result & 1))) ++result;
    }
    bits = static_cast<uint16_t>(sign | result);
  }
  HALFTONE_OP_HOST_DEVICE operator float() const {  // NOLINT: as a float does
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 31, digits = bits & 1023;
    if (exponent == 0) {
      const float tiny = static_cast<float>(digits) * 5.9604644775390625e-8f;
      return sign != 0 ? -tiny : tiny;
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    const uint32_t f = sign | (exponent << 23) | (digits << 13);
    float value;
    memcpy(&value, &f, 4);
    return value;
  }
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  HALFTONE_OP_HOST_DEVICE explicit BFloat16(float value) {
    uint32_t f;
    memcpy(&f, &value, 4);
    bits = (f & 0x7fffffff) > 0x7f800000
               ? static_cast<uint16_t>((f >> 16) | 64)
               : static_cast<uint16_t>((f + 0x7fff + ((f >> 16) & 1)) >> 16);
  }
  HALFTONE_OP_HOST_DEVICE operator float() const {  // NOLINT: as a float does
    const uint32_t f = static_cast<uint32_t>(bits) << 16;
    float value;
    memcpy(&value, &f, 4);
    return value;
  }
};

// Attributes of a call: name and kind are those of the declaration.
template <typename RawCall>
class CallAttrs {
 public:
  explicit CallAttrs(const RawCall* raw) : raw_(raw) {}
  bool Bool(const char* name) const { return Find(name, kIsBool).i != 0; }
  int64_t Int(const char* name) const { return Find(name, kIsInt).i; }
  double Float(const char* name) const { return Find(name, kIsFloat).f; }
  std::string Str(const char* name) const { return Find(name, kIsString).s; }
  std::vector<int64_t> Ints(const char* name) const {
    const HalftoneAttr& attr = Find(name, kIsInts);
    return std::vector<int64_t>(attr.ints, attr.ints + attr.size);
  }
  std::vector<double> Floats(const char* name) const {
    const HalftoneAttr& attr = Find(name, kIsFloats);
    return std::vector<double>(attr.floats, attr.floats + attr.size);
  }

 protected:
  const HalftoneAttr& Find(const char* name, Kind kind) const {
    for (int32_t i = 0; i < raw_->attr_count; ++i) {
      const HalftoneAttr& attr = raw_->attrs[i];
      if (std::strcmp(attr.name, name) == 0 && attr.kind == kind) return attr;
    }
    Refuse("no such attribute of this kind: ", name);
  }
  // The flat position of a slot's i-th value.
  int32_t Place(const int32_t* begin, int32_t slots, int slot, int i) const {
    if (slot >= 0 && slot < slots && i >= 0 &&
        begin[slot] + i < begin[slot + 1]) {
      return begin[slot] + i;
    }
    Refuse("no such value in slot ", std::to_string(slot).c_str());
  }
  [[noreturn]] static void Refuse(const char* what, const char* name) {
    throw Error(std::string(what) + name);
  }
  const RawCall* raw_;
};

// What a shape rule sees: slots by their position in the declaration.
class InferCall : public CallAttrs<HalftoneInferCall> {
 public:
  using CallAttrs::CallAttrs;
  int Inputs(int slot) const {
    return Count(raw_->input_begin, raw_->input_slots, slot);
  }
  int Outputs(int slot) const {
    return Count(raw_->output_begin, raw_->output_slots, slot);
  }
  const HalftoneType& Input(int slot, int i = 0) const {
    return raw_->inputs[Place(raw_->input_begin, raw_->input_slots, slot, i)];
  }
  // Rank and dims are to be set, the dtype is.
  HalftoneType& Output(int slot, int i = 0) const {
    return raw_
        ->outputs[Place(raw_->output_begin, raw_->output_slots, slot, i)];
  }
  void SetDims(int output_slot, const HalftoneType& like, int i = 0) const {
    HalftoneType& output = Output(output_slot, i);
    output.rank = like.rank;
    std::memcpy(output.dims, like.dims, sizeof(like.dims));
  }
  int output_slots() const { return raw_->output_slots; }

 private:
  static int Count(const int32_t* begin, int32_t slots, int slot) {
    if (slot >= 0 && slot < slots) return begin[slot + 1] - begin[slot];
    Refuse("no such slot: ", std::to_string(slot).c_str());
  }
};

inline bool operator==(const HalftoneDim& a, const HalftoneDim& b) {
  return a.coefficient == b.coefficient &&
         std::memcmp(a.power, b.power, sizeof(a.power)) == 0;
}
inline bool SameDimsOf(const HalftoneType& a, const HalftoneType& b) {
  bool same = a.rank == b.rank;
  for (int32_t i = 0; same && i < a.rank; ++i) same = a.dims[i] == b.dims[i];
  return same;
}
inline HalftoneDim Constant(int64_t size) { return HalftoneDim{size, {}}; }

// Every output has the dims of the first input.
inline void SameDims(InferCall& call) {
  for (int slot = 0; slot < call.output_slots(); ++slot) {
    for (int i = 0; i < call.Outputs(slot); ++i) {
      call.SetDims(slot, call.Input(0), i);
    }
  }
}

// What a kernel sees. It waits for nothing, and allocates nothing that a step
// would have to wait for; on a GPU it puts its work on stream(), which may be
// recorded as a graph. All buffers are the device's and contiguous.
class Call : public CallAttrs<HalftoneKernelCall> {
 public:
  using CallAttrs::CallAttrs;
  const HalftoneTensor& InputTensor(int slot, int i = 0) const {
    return raw_->inputs[Place(raw_->input_begin, raw_->input_slots, slot, i)];
  }
  const HalftoneTensor& OutputTensor(int slot, int i = 0) const {
    return raw_
        ->outputs[Place(raw_->output_begin, raw_->output_slots, slot, i)];
  }
  template <typename T>
  const T* Input(int slot, int i = 0) const {
    return static_cast<const T*>(InputTensor(slot, i).data);
  }
  template <typename T>
  T* Output(int slot, int i = 0) const {
    return static_cast<T*>(OutputTensor(slot, i).data);
  }
  int64_t elements() const { return OutputTensor(0).elements; }
  int threads() const { return raw_->threads; }
  void* stream() const { return raw_->stream; }
  void* workspace() const { return raw_->workspace; }
};

// Where an input of a gradient's op comes from.
struct From {
  Source source;
  const char* of;
};
inline From Input(const char* slot) { return {kInputValue, slot}; }
inline From Output(const char* slot) { return {kOutputValue, slot}; }
inline From OutGrad(const char* slot) { return {kOutputGradient, slot}; }
inline From Temporary(const char* name) { return {kTemporary, name}; }

// Names last as long as the library: string literals do.
class GradientOp {
 public:
  explicit GradientOp(const char* op) : raw_{} {
    raw_.op = op;
    raw_.same_attrs = 1;
  }
  GradientOp& In(const char* slot, From from) {
    inputs_.push_back({slot, from.source, from.of});
    return *this;
  }
  // The slot makes the gradient of an input of the op.
  GradientOp& Out(const char* slot, const char* gradient_of) {
    outputs_.push_back({slot, gradient_of, nullptr});
    return *this;
  }
  // The slot makes what a later op of the gradient reads.
  GradientOp& OutTemporary(const char* slot, const char* name) {
    outputs_.push_back({slot, nullptr, name});
    return *this;
  }
  const HalftoneGradOp& Finish() {
    raw_.inputs = inputs_.data();
    raw_.outputs = outputs_.data();
    raw_.input_count = static_cast<int32_t>(inputs_.size());
    raw_.output_count = static_cast<int32_t>(outputs_.size());
    return raw_;
  }

 private:
  HalftoneGradOp raw_;
  std::vector<HalftoneGradInput> inputs_;
  std::vector<HalftoneGradOutput> outputs_;
};

using InferFunction = std::function<void(InferCall&)>;
using KernelFunction = std::function<void(Call&)>;
using WorkspaceFunction = std::function<int64_t(Call&)>;

// Runs `body`; what it throws becomes the call's error. No exception crosses.
template <typename Body>
int32_t Guarded(char* error, size_t size, const Body& body) noexcept {
  const auto keep = [error, size](const char* text) {
    if (error == nullptr || size == 0) return;
    std::strncpy(error, text, size - 1);
    error[size - 1] = '\0';
  };
  try {
    body();
    return 0;
  } catch (const std::exception& thrown) {
    keep(thrown.what());
  } catch (...) {
    keep("it threw what is no std::exception");
  }
  return 1;
}

class OpDeclaration {
 public:
  OpDeclaration(const char* name, const char* doc) : raw_{} {
    raw_.name = name;
    raw_.doc = doc;
    raw_.version = 1;
    raw_.amp = -1;
  }
  OpDeclaration(const OpDeclaration&) = delete;

  // A dtype that slots share; kernels are for one dtype of each variable.
  OpDeclaration& TypeVar(const char* name, std::initializer_list<DType> dtypes,
                         const char* default_to = "") {
    lists_.emplace_back(dtypes.begin(), dtypes.end());
    type_vars_.push_back({name, lists_.back().data(),
                          static_cast<int32_t>(dtypes.size()), default_to});
    return *this;
  }
  OpDeclaration& In(const char* name, const char* type, const char* doc = "",
                    uint32_t flags = 0) {
    inputs_.push_back({name, type, doc, flags});
    return *this;
  }
  OpDeclaration& Out(const char* name, const char* type, const char* doc = "",
                     uint32_t flags = 0) {
    outputs_.push_back({name, type, doc, flags});
    return *this;
  }
  // Attributes with their defaults.
  OpDeclaration& Attr(const char* name, bool value, const char* doc) {
    HalftoneAttr& attr = AddAttr(name, kIsBool, doc);
    attr.i = value ? 1 : 0;
    return *this;
  }
  OpDeclaration& Attr(const char* name, int value, const char* doc) {
    return Attr(name, static_cast<int64_t>(value), doc);
  }
  OpDeclaration& Attr(const char* name, int64_t value, const char* doc) {
    AddAttr(name, kIsInt, doc).i = value;
    return *this;
  }
  OpDeclaration& Attr(const char* name, double value, const char* doc) {
    AddAttr(name, kIsFloat, doc).f = value;
    return *this;
  }
  OpDeclaration& Attr(const char* name, const char* value, const char* doc) {
    AddAttr(name, kIsString, doc).s = value;
    return *this;
  }
  OpDeclaration& Amp(op::Amp amp) {
    raw_.amp = amp;
    return *this;
  }
  OpDeclaration& Flags(uint32_t flags) {
    raw_.flags = flags;
    return *this;
  }
  // Grows when the op means something else than before.
  OpDeclaration& Version(int version) {
    raw_.version = version;
    return *this;
  }
  OpDeclaration& Infer(InferFunction infer) {
    infer_ = std::move(infer);
    raw_.data = &infer_;
    raw_.infer = [](const HalftoneInferCall* raw, void* data) -> int32_t {
      return Guarded(raw->error, raw->error_size, [raw, data] {
        InferCall call(raw);
        (*static_cast<InferFunction*>(data))(call);
      });
    };
    return *this;
  }
  // Ops that make gradients, in order; an op without is not differentiated.
  OpDeclaration& Gradient(GradientOp op) {
    gradient_ops_.push_back(std::move(op));
    return *this;
  }
  OpDeclaration& Kernel(const char* device, std::initializer_list<DType> dtypes,
                        KernelFunction run, WorkspaceFunction workspace = {},
                        bool deterministic = true) {
    lists_.emplace_back(dtypes.begin(), dtypes.end());
    functions_.push_back({std::move(run), std::move(workspace)});
    HalftoneKernel kernel{};
    kernel.device = device;
    kernel.dtypes = lists_.back().data();
    kernel.dtype_count = static_cast<int32_t>(dtypes.size());
    kernel.deterministic = deterministic ? 1 : 0;
    kernel.data = &functions_.back();
    if (functions_.back().run) kernel.run = Run;
    if (functions_.back().workspace) kernel.workspace = Workspace;
    kernels_.push_back(kernel);
    return *this;
  }

  const HalftoneOp& Finish() {
    for (GradientOp& op : gradient_ops_) gradient_.push_back(op.Finish());
    const auto put = [](auto& items, auto*& data, int32_t& count) {
      data = items.data();
      count = static_cast<int32_t>(items.size());
    };
    put(type_vars_, raw_.type_vars, raw_.type_var_count);
    put(inputs_, raw_.inputs, raw_.input_count);
    put(outputs_, raw_.outputs, raw_.output_count);
    put(attrs_, raw_.attrs, raw_.attr_count);
    put(gradient_, raw_.gradient, raw_.gradient_count);
    put(kernels_, raw_.kernels, raw_.kernel_count);
    return raw_;
  }

 private:
  struct Functions {
    KernelFunction run;
    WorkspaceFunction workspace;
  };
  static int32_t Run(const HalftoneKernelCall* raw, void* data) {
    return Guarded(raw->error, raw->error_size, [raw, data] {
      Call call(raw);
      static_cast<Functions*>(data)->run(call);
    });
  }
  static int32_t Workspace(const HalftoneKernelCall* raw, void* data,
                           int64_t* bytes) {
    return Guarded(raw->error, raw->error_size, [raw, data, bytes] {
      Call call(raw);
      *bytes = static_cast<Functions*>(data)->workspace(call);
    });
  }
  HalftoneAttr& AddAttr(const char* name, Kind kind, const char* doc) {
    HalftoneAttr attr{};
    attr.name = name;
    attr.kind = kind;
    attr.doc = doc;
    attrs_.push_back(attr);
    return attrs_.back();
  }

  HalftoneOp raw_;
  std::deque<std::vector<int32_t>> lists_;
  std::vector<HalftoneTypeVar> type_vars_;
  std::vector<HalftoneSlot> inputs_, outputs_;
  std::vector<HalftoneAttr> attrs_;
  std::vector<GradientOp> gradient_ops_;
  std::vector<HalftoneGradOp> gradient_;
  std::vector<HalftoneKernel> kernels_;
  std::deque<Functions> functions_;
  InferFunction infer_;
};

class Library {
 public:
  Library(const char* name, const char* version) : raw_{} {
    raw_.magic = HALFTONE_OP_MAGIC;
    raw_.abi = HALFTONE_OP_ABI;
    raw_.op_size = sizeof(HalftoneOp);
    raw_.kernel_size = sizeof(HalftoneKernel);
    raw_.grad_op_size = sizeof(HalftoneGradOp);
    raw_.call_size = sizeof(HalftoneKernelCall) + sizeof(HalftoneInferCall);
    raw_.type_size = sizeof(HalftoneType) + sizeof(HalftoneTensor);
    raw_.name = name;
    raw_.version = version;
  }
  OpDeclaration& Op(const char* name, const char* doc) {
    declarations_.emplace_back(name, doc);
    return declarations_.back();
  }
  // For HALFTONE_OP_LIBRARY.
  const HalftoneOpLibrary* Finish(void (*declare)(Library&)) noexcept {
    if (finished_) return &raw_;
    finished_ = true;
    if (Guarded(error_, sizeof(error_), [this, declare] {
          declare(*this);
          for (OpDeclaration& op : declarations_) ops_.push_back(op.Finish());
        }) != 0) {
      raw_.error = error_;
      return &raw_;
    }
    raw_.ops = ops_.data();
    raw_.op_count = static_cast<int32_t>(ops_.size());
    return &raw_;
  }

 private:
  HalftoneOpLibrary raw_;
  std::deque<OpDeclaration> declarations_;
  std::vector<HalftoneOp> ops_;
  char error_[512] = {};
  bool finished_ = false;
};

}  // namespace op
}  // namespace halftone

// Once in a library: its name, its version, and the body that declares its ops
// by `library.Op(...)`.
#define HALFTONE_OP_LIBRARY(name, version, library)                          \
  static void HalftoneDeclareOps(::halftone::op::Library& library);          \
  extern "C" __attribute__((visibility("default"))) const HalftoneOpLibrary* \
  HalftoneOpLibraryEntry(uint32_t) {                                         \
    static auto* const made = new ::halftone::op::Library(name, version);    \
    return made->Finish(HalftoneDeclareOps);                                 \
  }                                                                          \
  static void HalftoneDeclareOps(::halftone::op::Library& library)

#endif  // HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_H_
