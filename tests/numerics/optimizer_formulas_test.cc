// Every method over 50 steps against its formula, written down again from
// torch.optim's documentation and the papers, plainly and in double.
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"
#include "tests/numerics/optimizer_steps.h"

namespace halftone {
namespace {

// A tensor and all that its method keeps.
struct Plain {
  Values p, a, b, c;
};
using Formula = std::function<void(Plain& x, const Values& g, int t)>;

double Norm(const Values& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

// Of a method without norms: f(element, gradient, step).
struct Element {
  double &p, &a, &b, &c;
};
Formula Each(const std::function<void(Element, double g, int t)>& f) {
  return [f](Plain& x, const Values& g, int t) {
    for (size_t i = 0; i < g.size(); ++i) {
      f({x.p[i], x.a[i], x.b[i], x.c[i]}, g[i], t);
    }
  };
}

Formula Adam(double l2, double decoupled) {
  return Each([=](Element e, double g, int t) {
    g += l2 * e.p;
    e.p -= 0.01 * decoupled * e.p;
    e.a = 0.9 * e.a + 0.1 * g;
    e.b = 0.999 * e.b + 0.001 * g * g;
    const double m = e.a / (1 - std::pow(0.9, t));
    const double v = e.b / (1 - std::pow(0.999, t));
    e.p -= 0.01 * m / (std::sqrt(v) + 1e-8);
  });
}

Formula Rmsprop(double alpha, double momentum, bool centered, double l2) {
  return Each([=](Element e, double g, int) {
    g += l2 * e.p;
    e.a = alpha * e.a + (1 - alpha) * g * g;
    double variance = e.a;
    if (centered) {
      e.b = alpha * e.b + (1 - alpha) * g;
      variance -= e.b * e.b;
    }
    e.c = momentum * e.c + g / (std::sqrt(variance) + 1e-8);
    e.p -= 0.01 * e.c;
  });
}

Formula Adagrad(double l2, double lr_decay) {
  return Each([=](Element e, double g, int t) {
    g += l2 * e.p;
    e.a += g * g;
    e.p -= 0.01 / (1 + (t - 1) * lr_decay) * g / (std::sqrt(e.a) + 1e-10);
  });
}

Formula Lars(double rate, double decay, bool ratio) {
  return [=](Plain& x, const Values& g, int) {
    const double p_norm = Norm(x.p), g_norm = Norm(g);
    const double local =
        ratio ? rate * 0.001 * p_norm / (g_norm + decay * p_norm) : rate;
    for (size_t i = 0; i < g.size(); ++i) {
      x.a[i] = 0.9 * x.a[i] + local * (g[i] + decay * x.p[i]);
      x.p[i] -= x.a[i];
    }
  };
}

Formula Lamb(bool ratio) {
  return [=](Plain& x, const Values& g, int t) {
    Values r;
    for (size_t i = 0; i < g.size(); ++i) {
      x.a[i] = 0.9 * x.a[i] + 0.1 * g[i];
      x.b[i] = 0.999 * x.b[i] + 0.001 * g[i] * g[i];
      const double m = x.a[i] / (1 - std::pow(0.9, t));
      const double v = x.b[i] / (1 - std::pow(0.999, t));
      r.push_back(m / (std::sqrt(v) + 1e-6) + 0.01 * x.p[i]);
    }
    const double trust = ratio ? Norm(x.p) / Norm(r) : 1;
    for (size_t i = 0; i < g.size(); ++i) x.p[i] -= 0.01 * trust * r[i];
  };
}

const std::map<std::string, Formula>& Formulas() {
  static const auto& formulas = *new std::map<std::string, Formula>{
      {"sgd",
       Each([](Element e, double g, int) { e.p -= 0.01 * (g + 0.01 * e.p); })},
      {"momentum", Each([](Element e, double g, int) {
         e.a = 0.9 * e.a + g + 0.01 * e.p;
         e.p -= 0.01 * e.a;
       })},
      {"nesterov", Each([](Element e, double g, int) {
         e.a = 0.9 * e.a + g;
         e.p -= 0.01 * (g + 0.9 * e.a);
       })},
      {"adam", Adam(0.01, 0)},
      {"adamw", Adam(0, 0.1)},
      {"adagrad", Adagrad(0, 0)},
      {"adagrad_decays", Adagrad(0.01, 0.1)},
      {"rmsprop", Rmsprop(0.99, 0, false, 0.01)},
      {"rmsprop_momentum", Rmsprop(0.99, 0.9, false, 0)},
      {"rmsprop_centered", Rmsprop(0.9, 0, true, 0)},
      {"rmsprop_both", Rmsprop(0.99, 0.5, true, 0.01)},
      {"adadelta", Each([](Element e, double g, int) {
         g += 0.01 * e.p;
         e.a = 0.9 * e.a + 0.1 * g * g;
         const double d = std::sqrt(e.b + 1e-6) / std::sqrt(e.a + 1e-6) * g;
         e.b = 0.9 * e.b + 0.1 * d * d;
         e.p -= d;
       })},
      {"adamax", Each([](Element e, double g, int t) {
         g += 0.01 * e.p;
         e.a = 0.9 * e.a + 0.1 * g;
         e.b = std::max(0.999 * e.b, std::abs(g) + 1e-8);
         e.p -= 0.01 / (1 - std::pow(0.9, t)) * e.a / e.b;
       })},
      {"lion", Each([](Element e, double g, int) {
         const double c = 0.9 * e.a + 0.1 * g;
         // The sign of a sum that is 0, but for rounding, is nobody's.
         if (g != 0 && std::abs(c) < 1e-7) e.c = 1;
         e.p -= 0.01 * ((c > 0) - (c < 0) + 0.1 * e.p);
         e.a = 0.99 * e.a + 0.01 * g;
       })},
      {"lars", Lars(1, 0.0005, true)},
      {"lars_no_ratio", Lars(0.01, 0.01, false)},
      {"lamb", Lamb(true)},
      {"lamb_no_ratio", Lamb(false)}};
  return formulas;
}

// Of one element, of less than a block, of several blocks, of several pieces.
const std::vector<int64_t> kSizes = {1, 33, 2500, 40000};

class OptimizerFormulasTest
    : public ::testing::TestWithParam<std::tuple<OptimizerCase, DType>> {};

TEST_P(OptimizerFormulasTest, FiftySteps) {
  const auto& [method, grad] = GetParam();
  std::mt19937 draw(17);
  const auto draws = [&](int64_t n, double scale) {
    Values values;
    for (int64_t i = 0; i < n; ++i) {
      values.push_back((static_cast<int>(draw() % 4097) - 2048) / scale);
    }
    return values;
  };
  std::vector<Values> start;
  std::vector<Plain> plain;
  for (int64_t n : kSizes) {
    start.push_back(draws(n, 1024));
    plain.push_back({start.back(), Values(n), Values(n), Values(n)});
  }
  if (method.name == "adagrad_decays") {
    for (Plain& x : plain) x.a.assign(x.p.size(), 0.5);
  }
  OptimizerSteps steps(method, start, grad, 2);
  for (int step = 1; step <= 50; ++step) {
    std::vector<Values> stored;
    for (size_t i = 0; i < kSizes.size(); ++i) {
      stored.push_back(kernels::Rounded(grad, draws(kSizes[i], 32)));
    }
    // Now and then one that is rejected.
    if (step % 20 == 7) steps.Step(stored, /*reject=*/true);
    steps.Step(stored);
    for (size_t i = 0; i < kSizes.size(); ++i) {
      Values g = stored[i];
      for (double& v : g) v /= 64;
      Formulas().at(method.name)(plain[i], g, step);
    }
  }
  EXPECT_EQ(steps.applied(), 50);
  const bool lion = method.op == "lion";
  int ties = 0;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    for (int64_t k = 0; k < kSizes[i]; ++k) {
      if (lion && plain[i].c[k] != 0) {
        ++ties;
        continue;
      }
      // Each step rounds a parameter of at most 4 three times in f32 at most:
      // 50 * 3 * 2^-23 = 2e-5; a step's own error, some units in its last
      // place, is far below that.
      ASSERT_NEAR(steps.parameters()[i][k], plain[i].p[k], 2e-5)
          << "tensor " << i << " element " << k;
    }
  }
  EXPECT_LT(ties, 100) << "of 42,534 elements";
}

INSTANTIATE_TEST_SUITE_P(
    Methods, OptimizerFormulasTest,
    ::testing::Combine(::testing::ValuesIn(OptimizerCases()),
                       ::testing::Values(DType::kF32, DType::kF16,
                                         DType::kBF16)),
    [](const auto& info) {
      return std::get<0>(info.param).name + "_" +
             std::string(Name(std::get<1>(info.param)));
    });

}  // namespace
}  // namespace halftone
