// Each method against the formula written out, in all combinations of
// storage.
#include <cmath>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<double>;

float Round(DType dtype, float x) {
  if (dtype == DType::kF16) return static_cast<float>(half(x));
  if (dtype == DType::kBF16) return static_cast<float>(bfloat16(x));
  return x;
}

Values Rounded(DType dtype, Values values) {
  for (double& v : values) v = Round(dtype, static_cast<float>(v));
  return values;
}

// One parameter element and its state.
struct Element {
  float p, s0, s1;
};
using Formula = std::function<Element(Element, float g)>;

struct Case {
  std::string op;
  std::vector<std::string> states;  // slots
  std::vector<std::pair<std::string, AttrValue>> attrs;
  Formula formula;
};

constexpr float kRate = 0.1f, kInvScale = 1.0f / 1024, kClip = 0.7f;
constexpr int kApplied = 4;

Case Sgd() {
  return {"sgd", {}, {{"weight_decay", 0.01}}, [](Element e, float g) {
            g += 0.01f * e.p;
            e.p -= kRate * g;
            return e;
          }};
}
Case Momentum(bool nesterov) {
  return {"momentum",
          {"Velocity"},
          {{"use_nesterov", nesterov}},
          [nesterov](Element e, float g) {
            e.s0 = 0.9f * e.s0 + g;
            e.p -= kRate * (nesterov ? g + 0.9f * e.s0 : e.s0);
            return e;
          }};
}
Case Adam(bool decoupled) {
  return {
      decoupled ? "adamw" : "adam",
      {"Moment1", "Moment2"},
      {{"weight_decay", 0.01}},
      [decoupled](Element e, float g) {
        if (decoupled) {
          e.p *= 1 - kRate * 0.01f;
        } else {
          g += 0.01f * e.p;
        }
        const float b1 = 0.9f, b2 = 0.999f;
        e.s0 = b1 * e.s0 + static_cast<float>(1 - 0.9) * g;
        e.s1 = b2 * e.s1 + static_cast<float>(1 - 0.999) * (g * g);
        const float c1 = static_cast<float>(1 - std::pow(0.9, kApplied + 1));
        const float c2 = static_cast<float>(1 - std::pow(0.999, kApplied + 1));
        const float m_hat = e.s0 / c1, v_hat = e.s1 / c2;
        e.p -= kRate * m_hat / (std::sqrt(v_hat) + 1e-8f);
        return e;
      }};
}

struct Storage {
  DType p, g, low;  // low: kInvalid for none
};

// Two parameters, of 5 elements and of more than a block.
constexpr int64_t kSizes[] = {5, 2500};

struct Update {
  Update(const Case& c, const Storage& storage, bool reject, bool in_place)
      : run(c.op) {
    for (int64_t n : kSizes) {
      params.push_back(Rounded(storage.p, Draws(n)));
      grads.push_back(Rounded(storage.g, Draws(n, -2000, 2000)));
      run.In("Param", {storage.p, {n}, params.back()});
      run.In("Grad", {storage.g, {n}, grads.back()});
      run.Out("ParamOut");
      if (storage.low != DType::kInvalid) run.Out("LowOut");
    }
    for (const std::string& state : c.states) {
      const std::string out = state + "Out";
      for (int64_t n : kSizes) {
        run.In(state, F32({n}, Rounded(DType::kF32, Draws(n, 0, 1))));
        run.Out(out);
      }
      if (in_place) run.Alias(out, state);
    }
    if (in_place) run.Alias("ParamOut", "Param");
    run.In("LearningRate", Scalar(kRate));
    if (c.states.size() == 2) run.In("Applied", I64({}, {kApplied}));
    run.In("FoundInf", Scalar(reject, DType::kBool));
    run.In("InvScale", Scalar(kInvScale)).In("ClipFactor", Scalar(kClip));
    if (storage.low != DType::kInvalid) run.Bind("L", storage.low);
    for (const auto& attr : c.attrs) run.Attr(attr.first, attr.second);
    run.Threads(2);
  }
  KernelRun run;
  std::vector<Values> params, grads;
};

void ExpectFormula(const Case& c, const Storage& storage, bool reject,
                   bool in_place) {
  Update update(c, storage, reject, in_place);
  for (int member = 0; member < 2; ++member) {
    const int64_t n = kSizes[member];
    const Values p = update.run.Get("ParamOut", member);
    const Values state = Draws(n, 0, 1);
    std::vector<Values> states;
    for (const std::string& slot : c.states) {
      states.push_back(update.run.Get(slot + "Out", member));
    }
    Values low(n);
    if (storage.low != DType::kInvalid) low = update.run.Get("LowOut", member);
    for (int64_t i = 0; i < n; ++i) {
      const float s = static_cast<float>(state[i]);
      Element e = {static_cast<float>(update.params[member][i]), s, s};
      const float g = static_cast<float>(update.grads[member][i]);
      if (!reject) e = c.formula(e, g * kInvScale * kClip);
      e.p = Round(storage.p, e.p);
      ASSERT_EQ(p[i], e.p) << c.op << " element " << i;
      for (size_t k = 0; k < states.size(); ++k) {
        ASSERT_EQ(states[k][i], k == 0 ? e.s0 : e.s1);
      }
      if (storage.low == DType::kInvalid) continue;
      ASSERT_EQ(low[i], Round(storage.low, e.p));
    }
  }
}

class UpdateTest : public ::testing::TestWithParam<int> {
 protected:
  Case Method() const {
    switch (GetParam()) {
      case 0:
        return Sgd();
      case 1:
      case 2:
        return Momentum(GetParam() == 2);
      default:
        return Adam(GetParam() == 4);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, UpdateTest, ::testing::Range(0, 5));

TEST_P(UpdateTest, FormulaInAllStorages) {
  const DType f32 = DType::kF32, f16 = DType::kF16, bf16 = DType::kBF16;
  const DType none = DType::kInvalid;
  for (const Storage& storage :
       {Storage{f32, f32, none}, Storage{f32, f16, f16},
        Storage{f32, bf16, bf16}, Storage{f32, f32, f16},
        Storage{f16, f16, none}, Storage{bf16, bf16, none}}) {
    for (bool in_place : {false, true}) {
      ExpectFormula(Method(), storage, /*reject=*/false, in_place);
    }
  }
}

TEST_P(UpdateTest, ARejectedStepChangesNothing) {
  const Storage storage = {DType::kF32, DType::kF16, DType::kF16};
  for (bool in_place : {false, true}) {
    ExpectFormula(Method(), storage, /*reject=*/true, in_place);
  }
}

TEST(SgdTest, ClampsTheGradient) {
  KernelRun run("sgd");
  run.In("Param", F32({3}, {0, 0, 0})).In("Grad", F32({3}, {5, -5, 0.25}));
  run.Out("ParamOut").In("LearningRate", Scalar(1));
  run.In("FoundInf", Scalar(0, DType::kBool)).Attr("clip_value", 0.5);
  EXPECT_THAT(run.Get("ParamOut"), ElementsAre(-0.5, 0.5, -0.25));
}

// Norms are sums over pieces, which any number of threads shares: the same
// bits.
TEST(NormUpdateTest, ThreadsDoNotChangeBits) {
  const auto run = [](const std::string& op, int threads) {
    KernelRun run(op);
    const bool lamb = op == "lamb";
    const int64_t kMembers[] = {70001, 3, 33000};
    for (int64_t n : kMembers) {
      run.In("Param", F32({n}, Draws(n))).In("Grad", F16({n}, Draws(n, -4, 4)));
      run.In(lamb ? "Moment1" : "Velocity", F32({n}, Draws(n)));
      if (lamb) run.In("Moment2", F32({n}, Draws(n, 0, 1)));
      run.Out("ParamOut").Out("LowOut");
      run.Out(lamb ? "Moment1Out" : "VelocityOut");
      if (lamb) run.Out("Moment2Out");
    }
    run.In("LearningRate", Scalar(0.1)).In("FoundInf", Scalar(0, DType::kBool));
    if (lamb) run.In("Applied", I64({}, {kApplied}));
    run.Attr("weight_decay", 0.01).Bind("L", DType::kF16).Threads(threads);
    std::string bytes;
    for (int member = 0; member < 3; ++member) {
      bytes += run.Bytes("ParamOut", member);
      bytes += run.Bytes("LowOut", member);
    }
    return bytes;
  };
  for (const char* op : {"lars", "lamb"}) {
    const std::string one = run(op, 1);
    EXPECT_EQ(run(op, 2), one) << op;
    EXPECT_EQ(run(op, 5), one) << op;
  }
}

// ---- The learning rate.

struct Schedule {
  double base, total, warm;
};

double RateAt(int64_t applied, const Schedule& s,
              const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  KernelRun run("learning_rate");
  run.In("Applied", I64({}, {static_cast<double>(applied)}));
  run.In("Schedule", F32({3}, {s.base, s.total, s.warm}));
  for (const auto& attr : attrs) run.Attr(attr.first, attr.second);
  return run.Value("Out");
}

using Floats = std::vector<double>;

TEST(LearningRateTest, WarmsUpLinearly) {
  const Schedule s = {0.5, 100, 4};
  EXPECT_EQ(RateAt(0, s, {}), 0.125);
  EXPECT_EQ(RateAt(3, s, {}), 0.5);
  EXPECT_EQ(RateAt(50, s, {}), 0.5);
}

// Whole steps, rounded up: each below the next, and none above the base.
TEST(LearningRateTest, AFractionalWarmUpNeverOvershoots) {
  const Schedule s = {0.5, 100, 2.1};
  EXPECT_EQ(RateAt(0, s, {}), static_cast<float>(0.5 / 3));
  EXPECT_EQ(RateAt(1, s, {}), static_cast<float>(0.5 * 2 / 3));
  EXPECT_EQ(RateAt(2, s, {}), 0.5);
  EXPECT_EQ(RateAt(3, s, {}), 0.5);
  for (double warm = 0.015625; warm < 8; warm += 0.015625) {
    for (int64_t step = 0; step < 10; ++step) {
      EXPECT_LE(RateAt(step, {0.5, 100, warm}, {}), 0.5) << warm;
    }
  }
}

// What comes after it begins at its end.
TEST(LearningRateTest, PoliciesBeginAfterTheWholeSteps) {
  const Schedule s = {1, 110, 9.5};
  EXPECT_EQ(RateAt(9, s, {{"policy", std::string("linear")}}), 1);
  EXPECT_EQ(RateAt(10, s, {{"policy", std::string("linear")}}), 1);
  EXPECT_EQ(RateAt(60, s, {{"policy", std::string("linear")}}), 0.5);
  EXPECT_EQ(
      RateAt(12, s, {{"policy", std::string("exponential")}, {"gamma", 0.5}}),
      0.25);
}

TEST(LearningRateTest, Policies) {
  const Schedule s = {1, 110, 10};
  const auto policy = [](const char* name) {
    return std::make_pair(std::string("policy"), AttrValue(std::string(name)));
  };
  EXPECT_EQ(RateAt(10, s, {policy("cosine")}), 1);
  EXPECT_NEAR(RateAt(60, s, {policy("cosine")}), 0.5, 1e-7);
  EXPECT_NEAR(RateAt(60, s, {policy("cosine"), {"min_ratio", 0.2}}), 0.6, 1e-7);
  EXPECT_EQ(RateAt(500, s, {policy("cosine"), {"min_ratio", 0.25}}), 0.25);
  EXPECT_EQ(RateAt(60, s, {policy("linear")}), 0.5);
  EXPECT_EQ(RateAt(110, s, {policy("linear"), {"min_ratio", 0.25}}), 0.25);
  EXPECT_EQ(RateAt(60, s, {policy("poly"), {"power", 2.0}}), 0.25);
  EXPECT_EQ(RateAt(12, s, {policy("exponential"), {"gamma", 0.5}}), 0.25);
}

TEST(LearningRateTest, PiecewiseByFractionsOrSteps) {
  const Schedule s = {1, 100, 0};
  const std::vector<std::pair<std::string, AttrValue>> fractions = {
      {"policy", std::string("piecewise")},
      {"boundaries", Floats{0.5, 0.75}},
      {"values", Floats{1, 0.5, 0.25}}};
  EXPECT_EQ(RateAt(49, s, fractions), 1);
  EXPECT_EQ(RateAt(50, s, fractions), 0.5);
  EXPECT_EQ(RateAt(75, s, fractions), 0.25);
  const std::vector<std::pair<std::string, AttrValue>> steps = {
      {"policy", std::string("piecewise")},
      {"boundaries", Floats{30}},
      {"values", Floats{1, 0.5}}};
  EXPECT_EQ(RateAt(29, s, steps), 1);
  EXPECT_EQ(RateAt(30, s, steps), 0.5);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
