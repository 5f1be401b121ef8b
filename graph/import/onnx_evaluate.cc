// Evaluate of onnx_constant.h.
#include "graph/import/onnx_evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "graph/base/dtype.h"

namespace halftone {
namespace onnx_evaluate {
namespace {

// ---- Arithmetic on sizes.

// The dim without its coefficient.
Dim Symbols(const Dim& dim) {
  Dim symbols(1);
  dim.DivideBy(Dim(dim.coefficient()), &symbols);
  return symbols;
}

std::optional<Dim> Times(const Dim& a, const Dim& b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a.coefficient(), b.coefficient(), &product)) {
    return std::nullopt;
  }
  return a * b;
}

std::optional<Dim> Plus(const Dim& a, const Dim& b) {
  if (a.coefficient() == 0) return b;
  if (b.coefficient() == 0) return a;
  int64_t sum = 0;
  if (Symbols(a) != Symbols(b) ||
      __builtin_add_overflow(a.coefficient(), b.coefficient(), &sum)) {
    return std::nullopt;
  }
  return sum == 0 ? Dim(0) : Dim(sum) * Symbols(a);
}

std::optional<Dim> Minus(const Dim& a, const Dim& b) {
  const std::optional<Dim> negative = Times(b, Dim(-1));
  return negative.has_value() ? Plus(a, *negative) : std::nullopt;
}

// Towards zero, as C and ONNX divide.
std::optional<Dim> Over(const Dim& a, const Dim& b) {
  if (b.coefficient() == 0) return std::nullopt;
  if (a.is_constant() && b.is_constant()) {
    if (b.coefficient() == -1) return Times(a, b);
    return Dim(a.coefficient() / b.coefficient());
  }
  Dim quotient;
  if (b.coefficient() == -1 || !a.DivideBy(b, &quotient)) return std::nullopt;
  return quotient;
}

std::optional<Dim> Modulo(const Dim& a, const Dim& b) {
  if (!a.is_constant() || !b.is_constant() || b.coefficient() == 0) {
    return std::nullopt;
  }
  if (b.coefficient() == -1) return Dim(0);
  const int64_t rest = a.coefficient() % b.coefficient();
  const bool other_sign = rest != 0 && (rest < 0) != (b.coefficient() < 0);
  return Dim(other_sign ? rest + b.coefficient() : rest);
}

// -1, 0 or 1; nullopt: it depends on the batch, which is 1 or more.
std::optional<int> Compare(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (Symbols(a) == Symbols(b))
    return a.coefficient() < b.coefficient() ? -1 : 1;
  if (a.is_constant() && b.coefficient() > a.coefficient()) return -1;
  if (b.is_constant() && a.coefficient() > b.coefficient()) return 1;
  return std::nullopt;
}

// ---- Element by element.

struct Binary {
  double (*real)(double, double);
  std::optional<Dim> (*integer)(const Dim&, const Dim&);
};

std::optional<Dim> Least(const Dim& a, const Dim& b) {
  const std::optional<int> order = Compare(a, b);
  return order.has_value() ? std::optional<Dim>(*order < 0 ? a : b)
                           : std::nullopt;
}
std::optional<Dim> Greatest(const Dim& a, const Dim& b) {
  const std::optional<int> order = Compare(a, b);
  return order.has_value() ? std::optional<Dim>(*order > 0 ? a : b)
                           : std::nullopt;
}
template <bool (*test)(int)>
std::optional<Dim> Test(const Dim& a, const Dim& b) {
  const std::optional<int> order = Compare(a, b);
  return order.has_value() ? std::optional<Dim>(Dim(test(*order)))
                           : std::nullopt;
}
bool IsEqual(int order) { return order == 0; }
bool IsLess(int order) { return order < 0; }
bool IsGreater(int order) { return order > 0; }
bool IsLessOrEqual(int order) { return order <= 0; }
bool IsGreaterOrEqual(int order) { return order >= 0; }
std::optional<Dim> Both(const Dim& a, const Dim& b) {
  return Dim(a.coefficient() != 0 && b.coefficient() != 0);
}
std::optional<Dim> Either(const Dim& a, const Dim& b) {
  return Dim(a.coefficient() != 0 || b.coefficient() != 0);
}

const std::map<absl::string_view, Binary>& Binaries() {
  static const auto& all = *new std::map<absl::string_view, Binary>{
      {"Add", {[](double a, double b) { return a + b; }, Plus}},
      {"And", {nullptr, Both}},
      {"Div", {[](double a, double b) { return a / b; }, Over}},
      {"Equal",
       {[](double a, double b) { return a == b ? 1.0 : 0.0; }, Test<IsEqual>}},
      {"Greater",
       {[](double a, double b) { return a > b ? 1.0 : 0.0; }, Test<IsGreater>}},
      {"GreaterOrEqual",
       {[](double a, double b) { return a >= b ? 1.0 : 0.0; },
        Test<IsGreaterOrEqual>}},
      {"Less",
       {[](double a, double b) { return a < b ? 1.0 : 0.0; }, Test<IsLess>}},
      {"LessOrEqual",
       {[](double a, double b) { return a <= b ? 1.0 : 0.0; },
        Test<IsLessOrEqual>}},
      {"Max", {[](double a, double b) { return a > b ? a : b; }, Greatest}},
      {"Min", {[](double a, double b) { return a < b ? a : b; }, Least}},
      {"Mod", {nullptr, Modulo}},
      {"Mul", {[](double a, double b) { return a * b; }, Times}},
      {"Or", {nullptr, Either}},
      {"Pow", {[](double a, double b) { return std::pow(a, b); }, nullptr}},
      {"Sub", {[](double a, double b) { return a - b; }, Minus}},
  };
  return all;
}

bool IsTest(absl::string_view op) {
  return op == "Equal" || op == "Greater" || op == "Less" ||
         op == "GreaterOrEqual" || op == "LessOrEqual";
}

Result ApplyBinary(const OnnxConstant& a, const OnnxConstant& b,
                   absl::string_view op) {
  const Binary& binary = Binaries().at(op);
  const std::optional<Ints> dims = Broadcast(a.dims, b.dims);
  if (a.dtype != b.dtype || !dims.has_value() || KnownElements(*dims) < 0) {
    return std::nullopt;
  }
  OnnxConstant result;
  result.dtype = IsTest(op) ? DType::kBool : a.dtype;
  result.dims = *dims;
  const Ints from_a = Sources(*dims, a.dims), from_b = Sources(*dims, b.dims);
  for (size_t i = 0; i < from_a.size(); ++i) {
    if (!a.is_float()) {
      if (binary.integer == nullptr) return std::nullopt;
      const auto one = binary.integer(a.ints[from_a[i]], b.ints[from_b[i]]);
      if (!one.has_value()) return std::nullopt;
      result.ints.push_back(*one);
      continue;
    }
    if (binary.real == nullptr) return std::nullopt;
    const double one = binary.real(a.reals[from_a[i]], b.reals[from_b[i]]);
    if (IsTest(op)) {
      result.ints.emplace_back(static_cast<int64_t>(one));
    } else {
      result.reals.push_back(static_cast<float>(one));
    }
  }
  return result;
}

Result ApplyUnary(const OnnxConstant& x, absl::string_view op) {
  using Real = double (*)(double);
  static const auto& reals = *new std::map<absl::string_view, Real>{
      {"Abs", [](double a) { return std::abs(a); }},
      {"Ceil", [](double a) { return std::ceil(a); }},
      {"Cos", [](double a) { return std::cos(a); }},
      {"Exp", [](double a) { return std::exp(a); }},
      {"Floor", [](double a) { return std::floor(a); }},
      {"Log", [](double a) { return std::log(a); }},
      {"Neg", [](double a) { return -a; }},
      {"Reciprocal", [](double a) { return 1 / a; }},
      {"Sin", [](double a) { return std::sin(a); }},
      {"Sqrt", [](double a) { return std::sqrt(a); }},
  };
  OnnxConstant result = x;
  if (x.is_float()) {
    const auto found = reals.find(op);
    if (found == reals.end()) return std::nullopt;
    for (double& real : result.reals) {
      real = static_cast<float>(found->second(real));
    }
    return result;
  }
  for (Dim& one : result.ints) {
    std::optional<Dim> made;
    if (op == "Neg") made = Times(one, Dim(-1));
    if (op == "Not") made = Dim(one.coefficient() == 0);
    if (op == "Abs" && one.coefficient() >= 0) made = one;
    if (op == "Abs" && one.coefficient() < 0) made = Times(one, Dim(-1));
    if (!made.has_value()) return std::nullopt;
    one = *made;
  }
  return result;
}

Result Where(const OnnxConstant& which, const OnnxConstant& x,
             const OnnxConstant& y) {
  std::optional<Ints> dims = Broadcast(x.dims, y.dims);
  if (dims.has_value()) dims = Broadcast(*dims, which.dims);
  if (!dims.has_value() || KnownElements(*dims) < 0 || which.is_float() ||
      x.dtype != y.dtype) {
    return std::nullopt;
  }
  Ints ask = Sources(*dims, which.dims), other = Sources(*dims, y.dims);
  Result result = Take(x, *dims, Sources(*dims, x.dims));
  if (!result.has_value()) return std::nullopt;
  for (size_t i = 0; i < ask.size(); ++i) {
    if (which.ints[ask[i]].coefficient() != 0) continue;
    if (y.is_float()) {
      result->reals[i] = y.reals[other[i]];
    } else {
      result->ints[i] = y.ints[other[i]];
    }
  }
  return result;
}

// ---- Others.

Result Cast(const onnx::NodeProto& node, const Inputs& in) {
  const OnnxConstant& x = *in[0];
  const DType read = in.size() == 2
                         ? in[1]->dtype
                         : FromOnnx(static_cast<int32_t>(IntOf(node, "to", 0)));
  if (read == DType::kInvalid) return std::nullopt;
  OnnxConstant result;
  result.dtype = IsFloat(read) ? DType::kF32 : read;
  result.dims = x.dims;
  for (const Dim& one : x.ints) {
    if (result.is_float()) {
      if (!one.is_constant()) return std::nullopt;
      result.reals.push_back(static_cast<float>(one.coefficient()));
    } else if (result.dtype == DType::kBool) {
      result.ints.emplace_back(one.coefficient() != 0);
    } else {
      result.ints.push_back(one);
    }
  }
  for (const double real : x.reals) {
    if (result.is_float()) {
      result.reals.push_back(real);
    } else if (result.dtype == DType::kBool) {
      result.ints.emplace_back(real != 0);
    } else {
      if (!(std::abs(real) < 9e18)) return std::nullopt;
      result.ints.emplace_back(static_cast<int64_t>(real));
    }
  }
  return result;
}

Result ConstantOfShape(const onnx::NodeProto& node, const Inputs& in) {
  const auto dims = in[0]->Integers();
  if (!dims.has_value() || KnownElements(*dims) < 0) return std::nullopt;
  OnnxConstant value;
  value.dtype = DType::kF32;
  value.reals = {0};
  if (const onnx::AttributeProto* const attr = FindAttr(node, "value")) {
    const auto tensor = ReadOnnxTensor(attr->t(), "", "");
    if (!tensor.ok()) return std::nullopt;
    const Result given = ConstantOf(*tensor);
    if (!given.has_value() || given->elements() != 1) return std::nullopt;
    value = *given;
    value.dims.clear();
  }
  return Take(value, *dims, Ints(KnownElements(*dims), 0));
}

Result Clip(const onnx::NodeProto&, const Inputs& in) {
  Result x = *in[0];
  const char* const bounds[] = {"", "Max", "Min"};
  for (size_t i = 1; i < in.size() && i < 3; ++i) {
    if (in[i] != nullptr && x.has_value()) {
      x = ApplyBinary(*x, *in[i], bounds[i]);
    }
  }
  return x;
}

Result OneHot(const onnx::NodeProto& node, const Inputs& in) {
  const auto indices = in[0]->Integers(), depths = in[1]->Integers();
  const OnnxConstant& off_and_on = *in[2];
  if (!indices.has_value() || !depths.has_value() || depths->size() != 1 ||
      off_and_on.elements() != 2) {
    return std::nullopt;
  }
  const int64_t depth = (*depths)[0];
  const int64_t rank = static_cast<int64_t>(in[0]->dims.size());
  int64_t axis = IntOf(node, "axis", -1);
  if (axis < 0) axis += rank + 1;
  if (axis < 0 || axis > rank || depth < 0) return std::nullopt;
  Ints dims = in[0]->dims;
  dims.insert(dims.begin() + axis, depth);
  if (KnownElements(dims) < 0) return std::nullopt;
  int64_t inner = 1;
  for (int64_t i = axis; i < rank; ++i) inner *= in[0]->dims[i];
  Ints sources(KnownElements(dims), 0);
  for (size_t i = 0; i < indices->size(); ++i) {
    const int64_t index = (*indices)[i] + ((*indices)[i] < 0 ? depth : 0);
    if (index < 0 || index >= depth) continue;
    const int64_t at = static_cast<int64_t>(i);
    sources[(at / inner * depth + index) * inner + at % inner] = 1;
  }
  return Take(off_and_on, dims, sources);
}

Result Range(const onnx::NodeProto&, const Inputs& in) {
  OnnxConstant result;
  result.dtype = in[0]->dtype;
  for (const OnnxConstant* one : in) {
    if (one->elements() != 1 || one->dtype != result.dtype) return std::nullopt;
  }
  if (result.is_float()) {
    const double start = in[0]->reals[0], step = in[2]->reals[0];
    const double count = std::ceil((in[1]->reals[0] - start) / step);
    if (!(count <= kMostKnownElements)) return std::nullopt;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      result.reals.push_back(static_cast<float>(start + i * step));
    }
  } else {
    const auto start = in[0]->Integers(), end = in[1]->Integers(),
               step = in[2]->Integers();
    if (!start.has_value() || !end.has_value() || !step.has_value() ||
        (*step)[0] == 0) {
      return std::nullopt;
    }
    int64_t at = (*start)[0];
    while ((*step)[0] > 0 ? at < (*end)[0] : at > (*end)[0]) {
      result.ints.emplace_back(at);
      if (result.elements() > kMostKnownElements ||
          __builtin_add_overflow(at, (*step)[0], &at)) {
        return std::nullopt;
      }
    }
  }
  result.dims = {result.elements()};
  return result;
}

// Of all elements.
Result ReduceAll(const onnx::NodeProto& node, const Inputs& in) {
  const auto axes = AxesOf(node, in, "axes", 1);
  const size_t rank = in[0]->dims.size();
  if (in[0]->elements() == 0 || rank > 1 ||
      (axes.has_value() && axes->size() != rank)) {
    return std::nullopt;
  }
  const std::string how = node.op_type() == "ReduceProd"  ? "Mul"
                          : node.op_type() == "ReduceSum" ? "Add"
                          : node.op_type() == "ReduceMax" ? "Max"
                                                          : "Min";
  Result result;
  for (int64_t i = 0; i < in[0]->elements(); ++i) {
    const Result one = Take(*in[0], {}, {i});
    result = i == 0 ? one : ApplyBinary(*result, *one, how);
    if (!result.has_value()) return std::nullopt;
  }
  if (IntOf(node, "keepdims", 1) != 0) result->dims.assign(rank, 1);
  return result;
}

// The places of what is not 0: a row for each dim.
Result NonZero(const onnx::NodeProto&, const Inputs& in) {
  const OnnxConstant& x = *in[0];
  if (x.dims.empty()) return std::nullopt;
  Ints found;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const bool is_zero = x.is_float() ? x.reals[i] == 0 : x.ints[i] == Dim(0);
    if (!is_zero) found.push_back(i);
  }
  OnnxConstant result;
  result.dtype = DType::kI64;
  result.dims = {static_cast<int64_t>(x.dims.size()),
                 static_cast<int64_t>(found.size())};
  if (KnownElements(result.dims) < 0) return std::nullopt;
  int64_t inner = x.elements();
  for (const int64_t dim : x.dims) {
    inner /= std::max<int64_t>(1, dim);
    for (const int64_t i : found) result.ints.emplace_back(i / inner % dim);
  }
  return result;
}

// Of the elements of a list.
Result CumSum(const onnx::NodeProto& node, const Inputs& in) {
  const OnnxConstant& x = *in[0];
  if (x.dims.size() != 1 || IntOf(node, "exclusive", 0) != 0 ||
      IntOf(node, "reverse", 0) != 0) {
    return std::nullopt;
  }
  OnnxConstant result = x;
  for (int64_t i = 1; i < x.elements(); ++i) {
    if (x.is_float()) {
      result.reals[i] = static_cast<float>(result.reals[i - 1] + x.reals[i]);
      continue;
    }
    const std::optional<Dim> sum = Plus(result.ints[i - 1], x.ints[i]);
    if (!sum.has_value()) return std::nullopt;
    result.ints[i] = *sum;
  }
  return result;
}

Result Same(const onnx::NodeProto&, const Inputs& in) { return *in[0]; }

const Rules& Others() {
  static const auto& all = *new Rules{
      {"Cast", {Cast, 1}},           {"CastLike", {Cast, 2}},
      {"Clip", {Clip, 1}},           {"ConstantOfShape", {ConstantOfShape, 1}},
      {"CumSum", {CumSum, 2}},       {"NonZero", {NonZero, 1}},
      {"Identity", {Same, 1}},       {"OneHot", {OneHot, 3}},
      {"Range", {Range, 3}},         {"ReduceMax", {ReduceAll, 1}},
      {"ReduceMin", {ReduceAll, 1}}, {"ReduceProd", {ReduceAll, 1}},
      {"ReduceSum", {ReduceAll, 1}},
  };
  return all;
}

// Null: none by that name.
const Rule* FindRule(absl::string_view op) {
  for (const Rules* rules : {&Moves(), &Others()}) {
    const auto found = rules->find(op);
    if (found != rules->end()) return &found->second;
  }
  return nullptr;
}

Result Compute(const onnx::NodeProto& node, const Inputs& inputs) {
  const std::string& op = node.op_type();
  if (node.output_size() != 1 || inputs.empty()) return std::nullopt;
  const Rule* const rule = FindRule(op);
  const size_t needs = rule != nullptr ? rule->needs : 1;
  if (inputs.size() < needs) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool needed = i < needs || op == "Concat";
    if (needed && inputs[i] == nullptr) return std::nullopt;
  }
  if (rule != nullptr) return rule->make(node, inputs);
  const auto there = [&](size_t count) {
    return inputs.size() == count &&
           std::count(inputs.begin(), inputs.end(), nullptr) == 0;
  };
  if (op == "Where") {
    if (!there(3)) return std::nullopt;
    return Where(*inputs[0], *inputs[1], *inputs[2]);
  }
  if (Binaries().count(op) > 0) {
    if (!there(2)) return std::nullopt;
    return ApplyBinary(*inputs[0], *inputs[1], op);
  }
  return there(1) ? ApplyUnary(*inputs[0], op) : std::nullopt;
}

}  // namespace
}  // namespace onnx_evaluate

std::optional<OnnxConstant> Evaluate(
    const onnx::NodeProto& node,
    const std::vector<const OnnxConstant*>& inputs) {
  return onnx_evaluate::Compute(node, inputs);
}

}  // namespace halftone
