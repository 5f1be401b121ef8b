// Activations: functions of one tensor, element by element, each with a
// gradient op of its own.
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

struct Setting {
  absl::string_view name;
  double value;  // default
  absl::string_view doc;
};

struct Activation {
  absl::string_view name, doc;
  absl::string_view gradient;  // XGrad, from
  absl::string_view slot;      // X or Out, and OutGrad
  absl::string_view whose_class{};
  std::vector<Setting> settings{};
  // What Infer asks beside equal dims.
  absl::Status (*check)(const InferContext& c) = nullptr;
  AmpClass amp = AmpClass::kGray;
};

constexpr double kMostBound = std::numeric_limits<float>::max();

absl::Status ExpectFinite(const InferContext& c) {
  for (const AttrSpec& attr : c.schema().attrs()) {
    HT_RETURN_IF_ERROR(ExpectRange(c, attr.name, -kMostBound, kMostBound));
  }
  return absl::OkStatus();
}
absl::Status CheckHardSwish(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectFinite(c));
  return c.Float("scale") != 0.0
             ? absl::OkStatus()
             : AttrMismatch(c, "scale", "a divisor other than 0");
}
absl::Status CheckSoftplus(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectFinite(c));
  return c.Float("beta") > 0.0 ? absl::OkStatus()
                               : AttrMismatch(c, "beta", "a number above 0");
}
absl::Status CheckRelu6(const InferContext& c) {
  return ExpectRange(c, "threshold", 0.0, kMostBound);
}
absl::Status ExpectOrder(const InferContext& c, absl::string_view low,
                         absl::string_view high) {
  if (c.Float(low) <= c.Float(high)) return absl::OkStatus();
  return AttrMismatch(c, low,
                      absl::StrCat("at most ", high, ", ", c.Float(high)));
}
absl::Status CheckClip(const InferContext& c) {
  return ExpectOrder(c, "min", "max");
}
absl::Status CheckHardTanh(const InferContext& c) {
  return ExpectOrder(c, "t_min", "t_max");
}
absl::Status CheckGelu(const InferContext& c) {
  return ExpectWord(c, "approximate", {"none", "tanh"});
}

// SameDims({..}, out) and what `check` says.
InferFunction Inference(std::vector<std::string> in, std::string out,
                        absl::Status (*check)(const InferContext& c)) {
  return
      [check, same = SameDims(std::move(in), std::move(out))](InferContext& c) {
        if (check != nullptr) HT_RETURN_IF_ERROR(check(c));
        return same(c);
      };
}

// The op and its gradient, with what `extend` gives to both.
template <typename Extend>
void Add(OpRegistry& registry, const Activation& a, const Extend& extend) {
  OpSchema forward =
      UnarySchema(a.name, absl::StrCat(a.doc, a.whose_class), a.amp);
  OpSchema backward = UnaryGradSchema(a.name, a.gradient, a.slot);
  for (OpSchema* schema : {&forward, &backward}) {
    for (const Setting& setting : a.settings) {
      schema->Attr(setting.name, setting.value, setting.doc);
    }
    extend(*schema);
  }
  const std::string slot(a.slot);
  forward.Infer(Inference({"X"}, "Out", a.check))
      .Grad(UnaryGrad(backward.name(), slot, slot == "Out"));
  backward.Infer(Inference({slot, "OutGrad"}, "XGrad", a.check));
  registry.Add(std::move(forward));
  registry.Add(std::move(backward));
}
void Add(OpRegistry& registry, const Activation& a) {
  Add(registry, a, [](OpSchema&) {});
}

// Of functions whose slope has no jumps, and of relu, whose jump is at 0.
void MarkLossy(OpSchema& schema) {
  const bool gradient = schema.inputs().size() == 2;
  if (gradient) schema.Lossy(schema.inputs()[0].name);
}

void RegisterLines(OpRegistry& registry) {
  Add(registry,
      {"relu", "Out = max(X, 0).", "OutGrad where Out > 0, else 0", "Out"},
      MarkLossy);
  Add(registry, {"relu6",
                 "Out = min(max(X, 0), threshold).",
                 "OutGrad where 0 < Out < threshold, else 0",
                 "Out",
                 kClassOfPaddle,
                 {{"threshold", 6.0, "greatest value"}},
                 CheckRelu6});
  Add(registry, {"leaky_relu",
                 "Out = X where X > 0, else alpha * X.",
                 "OutGrad where X > 0, else alpha * OutGrad",
                 "X",
                 kClassOfPaddle,
                 {{"alpha", 0.02, "slope below 0"}},
                 ExpectFinite});
  Add(registry,
      {"brelu",
       "Hard tanh: Out = X kept within [t_min, t_max].",
       "OutGrad where t_min < X < t_max, else 0",
       "X",
       kClassOfAutocast,
       {{"t_min", 0.0, "least value"}, {"t_max", 24.0, "greatest value"}},
       CheckHardTanh});
  Add(registry,
      {"hard_tanh",
       "Out = X kept within [t_min, t_max]: brelu with other defaults.",
       "OutGrad where t_min < X < t_max, else 0",
       "X",
       kClassOfAutocast,
       {{"t_min", -1.0, "least value"}, {"t_max", 1.0, "greatest value"}},
       CheckHardTanh});
  Add(registry,
      {"hard_sigmoid",
       "Out = slope * X + offset, kept within [0, 1].",
       "slope * OutGrad where 0 < Out < 1, else 0",
       "Out",
       kClassOfAutocast,
       {{"slope", 0.2, "of the line"}, {"offset", 0.5, "its value at 0"}},
       ExpectFinite});
  Add(registry,
      {"clip",
       "Out = X kept within [min, max].",
       "OutGrad where min < X < max, else 0",
       "X",
       "",
       {},
       CheckClip},
      [](OpSchema& schema) {
        schema.RequiredAttr("min", AttrKind::kFloat, "least value")
            .RequiredAttr("max", AttrKind::kFloat, "greatest value");
      });
}

// Dims of the bits of a relu: a byte for eight channels. nullopt: 8 does not
// divide them.
std::optional<Dims> BitsDims(const TensorType& image) {
  Dims dims = image.dims;
  if (dims.size() < 2 || !dims[1].DivideBy(Dim(8), &dims[1])) {
    return std::nullopt;
  }
  return dims;
}

absl::Status InferReluBits(InferContext& c) {
  const std::optional<Dims> dims = BitsDims(c.Input("Out"));
  if (!dims) {
    return SlotMismatch(c, "Out", "[N, C, ...] with a C that 8 divides");
  }
  c.SetOutput("Bits", *dims);
  return absl::OkStatus();
}

absl::Status InferReluGradBits(InferContext& c) {
  const TensorType& grad = c.Input("OutGrad");
  const std::optional<Dims> dims = BitsDims(grad);
  if (!dims) {
    return SlotMismatch(c, "OutGrad", "[N, C, ...] with a C that 8 divides");
  }
  HT_RETURN_IF_ERROR(ExpectDims(c, "Bits", *dims, "those of relu_bits"));
  c.SetOutput("XGrad", grad.dims);
  return absl::OkStatus();
}

// What relu_grad reads of Out, in one bit per element: keep-relu-bits. With
// channels innermost the bits lie as the elements do.
void RegisterReluBits(OpRegistry& registry) {
  registry.Add(OpSchema("relu_bits")
                   .Doc("Where a gradient gets through a relu: bit k of "
                        "Bits[n, c, ...] is set unless Out[n, 8 c + k, ...] "
                        "<= 0.")
                   .TypeVar("T", kFloatTypes)
                   .In("Out", "T", "of relu, [N, C, ...]; 8 divides C")
                   .Out("Bits", "u8", "[N, C / 8, ...]")
                   .Infer(InferReluBits)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kGray)
                   .Layout(LayoutRule::kAny));
  registry.Add(OpSchema("relu_grad_bits")
                   .Doc("The gradient of relu: XGrad = OutGrad where the bit "
                        "of relu_bits is set, else 0.")
                   .TypeVar("T", kFloatTypes)
                   .In("Bits", "u8", "of relu_bits, [N, C / 8, ...]")
                   .In("OutGrad", "T", "[N, C, ...]; 8 divides C")
                   .Out("XGrad", "T", "the same dims")
                   .Infer(InferReluGradBits)
                   .NoGrad()
                   .Internal()
                   .Amp(AmpClass::kGray)
                   .Layout(LayoutRule::kAny));
}

void RegisterCurves(OpRegistry& registry) {
  Add(registry, {"tanh", "Out = tanh(X).", "OutGrad * (1 - Out * Out)", "Out"},
      MarkLossy);
  Add(registry,
      {"sigmoid", "Out = 1 / (1 + exp(-X)).", "OutGrad * Out * (1 - Out)",
       "Out"},
      MarkLossy);
  Add(registry, {"elu",
                 "Out = X where X > 0, else alpha * (exp(X) - 1).",
                 "OutGrad where X > 0, else OutGrad * alpha * exp(X)",
                 "X",
                 kClassOfAutocast,
                 {{"alpha", 1.0, "-Out far below 0"}},
                 ExpectFinite});
  Add(registry,
      {"softplus",
       "Out = ln(1 + exp(beta * X)) / beta; X where beta * X > threshold.",
       "OutGrad / (1 + exp(-beta * X)); OutGrad where beta * X > threshold",
       "X",
       kClassOfPaddle,
       {{"beta", 1.0, "factor of the exponent"},
        {"threshold", 20.0, "where Out is X itself"}},
       CheckSoftplus,
       AmpClass::kBlack});
}

// X times something between 0 and 1.
void RegisterGates(OpRegistry& registry) {
  Add(registry,
      {"silu", "Out = X / (1 + exp(-X)).",
       "OutGrad * s * (1 + X * (1 - s)), s = 1 / (1 + exp(-X))", "X",
       kClassOfAutocast},
      MarkLossy);
  Add(registry,
      {"swish",
       "Out = X / (1 + exp(-beta * X)).",
       "OutGrad * s * (1 + beta * X * (1 - s)), s = 1 / (1 + exp(-beta * X))",
       "X",
       kClassOfAutocast,
       {{"beta", 1.0, "factor of the exponent"}},
       ExpectFinite},
      MarkLossy);
  Add(registry,
      {"hard_swish",
       "Out = X * min(max(X + offset, 0), threshold) / scale.",
       "OutGrad * threshold / scale where X + offset >= threshold, OutGrad * "
       "(2 X + offset) / scale where it is above 0, else 0",
       "X",
       kClassOfAutocast,
       {{"threshold", 6.0, "greatest factor of X, times scale"},
        {"scale", 6.0, "divisor"},
        {"offset", 3.0, "-X where Out becomes 0"}},
       CheckHardSwish});
  Add(registry,
      {"mish",
       "Out = X * tanh(softplus(X)); X * tanh(X) where X > threshold.",
       "OutGrad times the slope of that",
       "X",
       kClassOfAutocast,
       {{"threshold", 20.0, "where softplus(X) is X itself"}},
       ExpectFinite});
  Add(registry,
      {"gelu",
       "Out = X * Phi(X).",
       "OutGrad * (Phi(X) + X * Phi'(X))",
       "X",
       "",
       {},
       CheckGelu},
      [](OpSchema& schema) {
        MarkLossy(schema);
        schema.Attr("approximate", "none",
                    "none: Phi is the normal distribution's function; tanh: "
                    "Phi(X) = (1 + tanh(sqrt(2 / pi) * (X + 0.044715 X^3))) "
                    "/ 2");
      });
}

}  // namespace

void RegisterActivation(OpRegistry& registry) {
  RegisterLines(registry);
  RegisterReluBits(registry);
  RegisterCurves(registry);
  RegisterGates(registry);
}

}  // namespace ops
}  // namespace halftone
