// Tiles of attention at their edges, against plain loops in double; what is
// computed is held by tests/ops/cases.
#include "kernels/cpu/attention.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using Values = std::vector<double>;

constexpr int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kWidth = 5,
                  kValueWidth = 19;

// One head of attention and its gradients by loops; rows and columns count
// through all samples and heads.
struct Plain {
  int64_t rows, columns;
  bool causal;
  Values q, k, v, out_grad;
  Values out, log_sum_exp, q_grad, k_grad, v_grad;

  Plain(int64_t t, int64_t s, bool is_causal)
      : rows(t), columns(s), causal(is_causal) {
    q = Draws(kBatch * t * kHeads * kWidth);
    k = Draws(kBatch * s * kKvHeads * kWidth, -2, 1);
    v = Draws(kBatch * s * kKvHeads * kValueWidth, -1, 2);
    out_grad = Draws(kBatch * t * kHeads * kValueWidth, -1, 3);
    for (Values* x : {&q, &k, &v, &out_grad}) *x = Rounded(DType::kF32, *x);
    out.resize(out_grad.size());
    log_sum_exp.resize(kBatch * kHeads * t);
    q_grad.resize(q.size());
    k_grad.resize(k.size());
    v_grad.resize(v.size());
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t h = 0; h < kHeads; ++h) {
        for (int64_t r = 0; r < t; ++r) Row(b, h, r);
      }
    }
  }

 private:
  void Row(int64_t b, int64_t h, int64_t r) {
    const int64_t n = causal ? std::min(columns, r + 1) : columns;
    const int64_t at = (b * rows + r) * kHeads + h, kv = h / 2;
    const auto column = [&](int64_t c) {
      return (b * columns + c) * kKvHeads + kv;
    };
    const double scale = 1 / std::sqrt(double{kWidth});
    Values weights(n);
    double sum = 0;
    for (int64_t c = 0; c < n; ++c) {
      double score = 0;
      for (int64_t i = 0; i < kWidth; ++i) {
        score += q[at * kWidth + i] * k[column(c) * kWidth + i];
      }
      sum += weights[c] = std::exp(score * scale);
    }
    log_sum_exp[(b * kHeads + h) * rows + r] = std::log(sum);
    Values grads(n);
    double delta = 0;
    for (int64_t c = 0; c < n; ++c) {
      weights[c] /= sum;
      for (int64_t i = 0; i < kValueWidth; ++i) {
        const double g = out_grad[at * kValueWidth + i];
        const int64_t value = column(c) * kValueWidth + i;
        out[at * kValueWidth + i] += weights[c] * v[value];
        v_grad[value] += weights[c] * g;
        grads[c] += g * v[value];
      }
      delta += weights[c] * grads[c];
    }
    for (int64_t c = 0; c < n; ++c) {
      const double g = weights[c] * (grads[c] - delta) * scale;
      for (int64_t i = 0; i < kWidth; ++i) {
        q_grad[at * kWidth + i] += g * k[column(c) * kWidth + i];
        k_grad[column(c) * kWidth + i] += g * q[at * kWidth + i];
      }
    }
  }
};

void AddOperands(const Plain& p, KernelRun& run) {
  run.In("Q", F32({kBatch, p.rows, kHeads, kWidth}, p.q))
      .In("K", F32({kBatch, p.columns, kKvHeads, kWidth}, p.k))
      .In("V", F32({kBatch, p.columns, kKvHeads, kValueWidth}, p.v))
      .Attr("causal", p.causal);
}
void AddRandom(KernelRun& run) {
  for (const char* slot : {"Seed", "Step", "FirstSample"}) {
    run.In(slot, Scalar(7, DType::kI64));
  }
}

void ExpectNear(const Values& found, const Values& expected,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 1;
  for (double x : expected) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < found.size(); ++i) {
    // Sums of up to 600 terms in f32.
    ASSERT_NEAR(found[i], expected[i], 4e-6 * largest) << what << " " << i;
  }
}

using Lengths = std::tuple<int, int, bool>;

class AttentionTiles : public testing::TestWithParam<Lengths> {};

TEST_P(AttentionTiles, IsThatOfPlainLoops) {
  const auto [rows, columns, causal] = GetParam();
  const Plain plain(rows, columns, causal);
  std::vector<std::string> bytes;
  for (const int threads : {1, 3}) {
    KernelRun forward("scaled_dot_product_attention");
    AddOperands(plain, forward);
    AddRandom(forward);
    forward.Threads(threads).Run();
    ExpectNear(forward.Get("Out"), plain.out, "Out");
    ExpectNear(forward.Get("LogSumExp"), plain.log_sum_exp, "LogSumExp");
    KernelRun backward("scaled_dot_product_attention_grad");
    AddOperands(plain, backward);
    const std::vector<int64_t> out = {kBatch, rows, kHeads, kValueWidth};
    backward.In("Out", F32(out, plain.out))
        .In("LogSumExp", F32({kBatch, kHeads, rows}, plain.log_sum_exp))
        .In("OutGrad", F32(out, plain.out_grad));
    AddRandom(backward);
    backward.Threads(threads).Run();
    backward.SpoilWorkspace();
    backward.Enqueue();
    ExpectNear(backward.Get("QGrad"), plain.q_grad, "QGrad");
    ExpectNear(backward.Get("KGrad"), plain.k_grad, "KGrad");
    ExpectNear(backward.Get("VGrad"), plain.v_grad, "VGrad");
    bytes.push_back(forward.Bytes("Out") + backward.Bytes("QGrad") +
                    backward.Bytes("KGrad") + backward.Bytes("VGrad"));
  }
  EXPECT_EQ(bytes[0], bytes[1]) << "other bits with other threads";
}

// Tiles have 64 rows and 256 columns, 128 in the gradient; panels 16 columns.
INSTANTIATE_TEST_SUITE_P(
    Edges, AttentionTiles,
    testing::Values(Lengths{1, 1, false}, Lengths{63, 15, false},
                    Lengths{64, 16, false}, Lengths{65, 17, false},
                    Lengths{3, 127, false}, Lengths{70, 129, false},
                    Lengths{129, 256, false}, Lengths{2, 257, false},
                    Lengths{130, 600, false}, Lengths{64, 64, true},
                    Lengths{65, 65, true}, Lengths{129, 129, true},
                    Lengths{300, 300, true}, Lengths{5, 300, true},
                    Lengths{300, 5, true}));

// Which weights those are is held by tests/ops/cases.
TEST(AttentionTest, DropsTheShareItSays) {
  constexpr int64_t kRows = 70, kColumns = 300;
  KernelRun run("scaled_dot_product_attention");
  run.In("Q", F32({1, kRows, 1, 1}, Values(kRows, 0.0)))
      .In("K", F32({1, kColumns, 1, 1}, Values(kColumns, 1.0)))
      .In("V", F32({1, kColumns, 1, 1}, Values(kColumns, 1.0)))
      .Attr("dropout_prob", 0.25)
      .Attr("stream", int64_t{5});
  AddRandom(run);
  const Values out = run.Get("Out");
  double sum = 0;
  for (double x : out) sum += x;
  // 21,000 draws: a deviation of 0.004.
  EXPECT_NEAR(sum / kRows, 1.0, 0.016);
  EXPECT_NE(out[0], out[1]);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
