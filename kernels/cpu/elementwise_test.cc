// Literal numbers of every op are in tests/ops; here: broadcasting in all its
// forms, long vectors, threads.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::NanSensitiveDoubleEq;
using ::testing::Pointwise;
using Dims = std::vector<int64_t>;

int64_t Count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t dim : dims) n *= dim;
  return n;
}

// What the bits of a 16-bit dtype are worth.
double ValueOf(DType dtype, uint16_t bits) {
  half f16;
  bfloat16 bf16;
  f16.bits = bf16.bits = bits;
  return static_cast<double>(dtype == DType::kF16 ? static_cast<float>(f16)
                                                  : static_cast<float>(bf16));
}

// x + 2 y element by element; y's dims go with x's from `first` on.
std::vector<double> Expected(const Dims& x_dims, const std::vector<double>& x,
                             const Dims& y_dims, const std::vector<double>& y,
                             int first) {
  std::vector<double> out(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = static_cast<int>(x_dims.size()) - 1; d >= 0; --d) {
      const int64_t index = rest % x_dims[d];
      rest /= x_dims[d];
      const int own = d - first;
      if (own < 0 || own >= static_cast<int>(y_dims.size())) continue;
      at += (y_dims[own] == 1 ? 0 : index) * stride;
      stride *= y_dims[own];
    }
    out[i] = x[i] + y[at];
  }
  return out;
}

// Integers below 2^10: their sums are exact in every float type but bf16.
std::vector<double> Integers(int64_t n, int seed) {
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<double>((i * 7 + seed) % 101);
  }
  return values;
}

void ExpectBroadcast(const Dims& x_dims, const Dims& y_dims, int64_t axis,
                     Layout layout = Layout::kRowMajor) {
  const std::vector<double> x = Integers(Count(x_dims), 3);
  const std::vector<double> y = Integers(Count(y_dims), 5);
  const int first = axis == -1 ? static_cast<int>(x_dims.size() - y_dims.size())
                               : static_cast<int>(axis);
  const auto expected = Expected(x_dims, x, y_dims, y, first);
  for (DType dtype : {DType::kF32, DType::kF16}) {
    for (int threads : {1, 3}) {
      KernelRun run("elementwise_add");
      run.In("X", {dtype, x_dims, x, layout});
      const bool same_rank = y_dims.size() == 4 && layout != Layout::kRowMajor;
      run.In("Y", {dtype, y_dims, y, same_rank ? layout : Layout::kRowMajor});
      run.Attr("axis", axis).Threads(threads);
      EXPECT_EQ(run.Get("Out"), expected) << ::testing::PrintToString(y_dims);
    }
  }
}

TEST(BroadcastTest, SameDims) {
  ExpectBroadcast({3, 700, 31}, {3, 700, 31}, -1);
}
TEST(BroadcastTest, Scalars) {
  ExpectBroadcast({40, 1031}, {}, -1);
  ExpectBroadcast({40, 1031}, {1}, -1);
  ExpectBroadcast({40, 1031}, {1, 1}, -1);
  ExpectBroadcast({}, {}, -1);
}
TEST(BroadcastTest, Rows) {
  ExpectBroadcast({64, 10}, {10}, -1);
  ExpectBroadcast({5, 1024}, {1024}, 1);
  ExpectBroadcast({5, 3000}, {3000}, -1);
  ExpectBroadcast({1, 10}, {10}, -1);
}
TEST(BroadcastTest, Columns) { ExpectBroadcast({300, 77}, {300, 1}, -1); }
TEST(BroadcastTest, Channels) {
  ExpectBroadcast({4, 16, 28, 28}, {16}, 1);
  ExpectBroadcast({4, 16, 7, 7}, {16, 1, 1}, -1);
  ExpectBroadcast({4, 16, 7, 7}, {1, 16, 1, 1}, -1);
  ExpectBroadcast({2, 3, 4, 5}, {3, 4, 5}, 1);
}
TEST(BroadcastTest, ChannelsLast) {
  const Layout last = Layout::kChannelsLast;
  ExpectBroadcast({4, 16, 28, 28}, {16}, 1, last);
  ExpectBroadcast({4, 16, 7, 7}, {4, 16, 7, 7}, -1, last);
  ExpectBroadcast({2, 3, 4, 5}, {1, 3, 1, 1}, -1, last);
  ExpectBroadcast({2, 3, 4, 5}, {3, 4, 5}, 1, last);
  ExpectBroadcast({2, 3, 4, 5}, {5}, -1, last);
}
TEST(BroadcastTest, TrailingOnesAreDropped) {
  ExpectBroadcast({2, 3, 4}, {3, 1}, 1);
}
TEST(BroadcastTest, Empty) {
  ExpectBroadcast({0, 3}, {3}, -1);
  ExpectBroadcast({2, 0, 4}, {0, 4}, -1);
}

TEST(BroadcastTest, FirstOperandRepeats) {
  KernelRun run("elementwise_sub");
  run.In("X", F32({1, 3}, {1, 2, 3})).In("Y", F32({2, 1}, {10, 20}));
  EXPECT_THAT(run.Get("Out"), ElementsAre(-9, -8, -7, -19, -18, -17));
  // Runs of one number, of either operand, have loops of their own.
  const std::vector<double> numbers = Integers(500, 3),
                            elements = Integers(500 * 77, 5);
  for (DType dtype : {DType::kF32, DType::kF16}) {
    for (bool first : {false, true}) {
      KernelRun sub("elementwise_sub");
      const Tensor column = {dtype, {500, 1}, numbers};
      const Tensor rows = {dtype, {500, 77}, elements};
      sub.In("X", first ? column : rows).In("Y", first ? rows : column);
      std::vector<double> expected(elements);
      for (size_t i = 0; i < elements.size(); ++i) {
        expected[i] = (elements[i] - numbers[i / 77]) * (first ? -1 : 1);
      }
      EXPECT_EQ(sub.Threads(3).Get("Out"), expected);
    }
  }
}

TEST(ElementwiseTest, RoundsOnce) {
  // 2049 is not a half: the sum is rounded to even, the square overflows.
  KernelRun sum("elementwise_add");
  sum.In("X", F16({2}, {2048, 2048})).In("Y", F16({2}, {1, 3}));
  EXPECT_THAT(sum.Get("Out"), ElementsAre(2048, 2052));
  KernelRun square("square");
  square.In("X", F16({2}, {256, -3}));
  EXPECT_THAT(square.Get("Out"),
              ElementsAre(std::numeric_limits<double>::infinity(), 9));
}

TEST(ElementwiseTest, NaNsStay) {
  const double nan = std::nan("");
  for (const char* op : {"relu", "tanh", "sigmoid", "exp", "log", "square",
                         "sqrt", "abs", "scale"}) {
    KernelRun run(op);
    run.In("X", F32({1}, {nan}));
    EXPECT_TRUE(std::isnan(run.Value("Out"))) << op;
  }
}

// Of 16 bits it has a shorter form (kernels/functors/gelu.h), that adds little
// to their rounding: results are the exact ones' neighbours.
TEST(ElementwiseTest, GeluOfAllNumbersOfSixteenBits) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const double unit = dtype == DType::kF16 ? 0x1p-10 : 0x1p-7;
    const double least = dtype == DType::kF16 ? 0x1p-24 : 0x1p-133;
    std::vector<double> x;
    for (int bits = 0; bits < 0x10000; ++bits) {
      const double value = ValueOf(dtype, static_cast<uint16_t>(bits));
      if (std::isfinite(value)) x.push_back(value);
    }
    KernelRun run("gelu");
    run.In("X", {dtype, {static_cast<int64_t>(x.size())}, x}).Threads(3);
    const std::vector<double> out = run.Get("Out");
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = x[i] * 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
      const int exponent = exact == 0 ? -200 : std::ilogb(exact);
      const double most = std::max(least, std::ldexp(unit, exponent));
      ASSERT_NEAR(out[i], exact, 0.57 * most) << x[i];
    }
  }
}

TEST(ElementwiseTest, BitsDoNotDependOnThreads) {
  for (const char* op : {"tanh", "exp", "sigmoid", "erf", "gelu"}) {
    std::string bytes[2];
    for (int threads : {1, 4}) {
      KernelRun run(op);
      run.In("X", F16({100001}, Draws(100001))).Threads(threads);
      bytes[threads / 4] = run.Bytes("Out");
    }
    EXPECT_EQ(bytes[0], bytes[1]) << op;
  }
}

// Long functions of large tensors of 16 bits, or parts of them, are looked up
// (low_table.h).
TEST(ElementwiseTest, LookUpsGiveTheBitsOfArithmetic) {
  struct Case {
    const char* op;
    std::vector<const char*> inputs = {"X"};
    const char* out = "Out";
    std::vector<std::pair<const char*, AttrValue>> attrs;
  };
  const std::string by_tanh = "tanh",
                    logits = "sigmoid_cross_entropy_with_logits";
  const std::string logits_grad = logits + "_grad";
  std::vector<Case> cases = {
      {"pow", {"X"}, "Out", {{"factor", 2.5}}},
      {"gelu", {"X"}, "Out", {{"approximate", by_tanh}}},
      {"gelu_grad", {"X", "OutGrad"}, "XGrad", {{"approximate", by_tanh}}},
      {"kldiv_loss", {"X", "Target"}, "Loss"},
      {logits.c_str(), {"X", "Label"}},
      {logits_grad.c_str(), {"X", "Label", "OutGrad"}, "XGrad"}};
  for (const char* op : {"tanh", "log", "sin", "cos", "atan", "erf", "elu",
                         "silu", "swish", "softplus", "mish"}) {
    cases.push_back({op});
  }
  for (const char* op :
       {"elu_grad", "softplus_grad", "mish_grad", "gelu_grad"}) {
    cases.push_back({op, {"X", "OutGrad"}, "XGrad"});
  }
  constexpr int64_t kPatterns = 1 << 16, kParts = 8, kMore = 13;
  constexpr int64_t kAll = kPatterns + kMore;
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    std::vector<double> patterns;
    for (int64_t i = 0; i < kAll; ++i) {
      patterns.push_back(ValueOf(dtype, static_cast<uint16_t>(i)));
    }
    const std::vector<double> draws = Draws(kAll);
    const auto run_of = [&](const Case& c, int64_t from, int64_t to) {
      KernelRun run(c.op);
      const bool is_key_last = c.out == std::string("Loss");
      for (const char* slot : c.inputs) {
        const bool is_key =
            slot == std::string(is_key_last ? c.inputs.back() : "X");
        const std::vector<double>& values = is_key ? patterns : draws;
        run.In(
            slot,
            {dtype, {to - from}, {values.begin() + from, values.begin() + to}});
      }
      for (const auto& attr : c.attrs) run.Attr(attr.first, attr.second);
      return run.Threads(3).Get(c.out);
    };
    for (const Case& c : cases) {
      std::vector<double> computed;
      for (int64_t k = 0; k < kParts; ++k) {
        const int64_t end = kPatterns * (k + 1) / kParts;
        const std::vector<double> part =
            run_of(c, kPatterns * k / kParts, k + 1 == kParts ? kAll : end);
        computed.insert(computed.end(), part.begin(), part.end());
      }
      EXPECT_THAT(run_of(c, 0, kAll),
                  Pointwise(NanSensitiveDoubleEq(), computed))
          << c.op;
    }
  }
}

TEST(ElementwiseTest, ScaleBeforeAndAfterBias) {
  KernelRun after("scale");
  after.In("X", F32({2}, {1, 2})).Attr("scale", 3.0).Attr("bias", 1.0);
  EXPECT_THAT(after.Get("Out"), ElementsAre(4, 7));
  KernelRun before("scale");
  before.In("X", F32({2}, {1, 2})).Attr("scale", 3.0).Attr("bias", 1.0);
  before.Attr("bias_after_scale", false);
  EXPECT_THAT(before.Get("Out"), ElementsAre(6, 9));
}

TEST(SumTest, AddsInF32AndRoundsOnce) {
  // In halves 2048 + 1 + 1 would stay 2048.
  KernelRun run("sum");
  for (double x : {2048.0, 1.0, 1.0}) run.In("X", F16({1}, {x}));
  EXPECT_THAT(run.Get("Out"), ElementsAre(2050));
  KernelRun wide("sum");
  for (double x : {2048.0, 1.0}) wide.In("X", F16({1}, {x}));
  wide.Bind("TOut", DType::kF32);
  EXPECT_THAT(wide.Get("Out"), ElementsAre(2049));
}

TEST(SumTest, LongAndThreaded) {
  const int64_t n = 70001;
  KernelRun run("sum");
  run.In("X", F32({n}, Integers(n, 1))).In("X", F32({n}, Integers(n, 2)));
  run.In("X", F32({n}, Integers(n, 3))).Threads(4);
  std::vector<double> expected(n);
  for (int seed : {1, 2, 3}) {
    const std::vector<double> x = Integers(n, seed);
    for (int64_t i = 0; i < n; ++i) expected[i] += x[i];
  }
  EXPECT_EQ(run.Get("Out"), expected);
}

TEST(CastTest, BetweenAllTypes) {
  const std::vector<DType> dtypes = {DType::kF32, DType::kF16, DType::kBF16,
                                     DType::kF64, DType::kI32, DType::kI64,
                                     DType::kU8,  DType::kBool};
  for (DType from : dtypes) {
    for (DType to : dtypes) {
      KernelRun run("cast");
      run.In("X", {from, {3}, {0, 1, 1}}).Attr("to", to);
      EXPECT_THAT(run.Get("Out"), ElementsAre(0, 1, 1));
    }
  }
}

TEST(CastTest, RoundsAndTruncates) {
  KernelRun narrow("cast");
  narrow.In("X", F32({3}, {2049, 1e6, 3e-8})).Attr("to", DType::kF16);
  EXPECT_THAT(
      narrow.Get("Out"),
      ElementsAre(2048, std::numeric_limits<double>::infinity(), 0x1p-24));
  KernelRun integer("cast");
  integer.In("X", F32({2}, {-2.7, 1e30})).Attr("to", DType::kI32);
  EXPECT_THAT(integer.Get("Out"), ElementsAre(-2, 2147483647.0));
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
