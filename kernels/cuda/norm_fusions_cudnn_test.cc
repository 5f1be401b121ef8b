// Fusions around norms, bound to graphs of cuDNN: the library takes them, and
// what a graph says, computed here in f64, is what the body computes.
#include "kernels/cuda/norm_fusions_cudnn.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/check.h"
#include "graph/base/file.h"
#include "graph/ir/program.h"
#include "graph/schema/op_schema.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/functors/norm.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using Values = std::vector<double>;
using Kind = CudnnNode::Kind;

constexpr const char* kPatterns[] = {"conv_stats", "norm_conv_stats",
                                     "norm_conv_grad_filter", "conv_grad_norm",
                                     "conv_grad_add_norm"};

// ---- A graph in f64. Tensors are in logical order; outputs are not rounded.
class Interpreter {
 public:
  explicit Interpreter(const CudnnGraph& graph)
      : values(graph.tensors.size()), graph_(graph) {}

  void Run() {
    for (const CudnnNode& node : graph_.nodes) Run(node);
  }

  std::vector<Values> values;  // by tensor

 private:
  const std::vector<int64_t>& Dims(int tensor) const {
    return graph_.tensors[tensor].dims;
  }
  void Run(const CudnnNode& node);
  void Convolve(const CudnnNode& node);
  void PointWise(const CudnnNode& node,
                 const std::function<double(double, double)>& f);
  void SumChannels(const CudnnNode& node);

  const CudnnGraph& graph_;
};

// Element i of `whole` in a tensor of the same dims or of channels.
size_t Broadcast(const std::vector<int64_t>& whole,
                 const std::vector<int64_t>& part, size_t i) {
  if (part == whole) return i;
  return i / (whole[2] * whole[3]) % whole[1];
}

void Interpreter::PointWise(const CudnnNode& node,
                            const std::function<double(double, double)>& f) {
  const std::vector<int64_t>& dims = Dims(node.outputs[0]);
  const int x = node.inputs[0], y = node.inputs.back();
  Values& out = values[node.outputs[0]];
  out.resize(dims[0] * dims[1] * dims[2] * dims[3]);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = f(values[x].at(Broadcast(dims, Dims(x), i)),
               values[y].at(Broadcast(dims, Dims(y), i)));
  }
}

// All three kinds visit the same products.
void Interpreter::Convolve(const CudnnNode& node) {
  int image = node.inputs[0], filter = node.inputs[1], result = node.outputs[0];
  if (node.kind == Kind::kConvGradImage) std::swap(image, result);
  if (node.kind == Kind::kConvGradFilter) {
    result = node.inputs[0], image = node.inputs[1], filter = node.outputs[0];
  }
  const auto &x = Dims(image), &w = Dims(filter), &y = Dims(result);
  const auto at = [](const std::vector<int64_t>& d, int64_t a, int64_t b,
                     int64_t c, int64_t e) {
    return ((a * d[1] + b) * d[2] + c) * d[3] + e;
  };
  const auto& out = Dims(node.outputs[0]);
  values[node.outputs[0]].assign(out[0] * out[1] * out[2] * out[3], 0);
  Values &vx = values[image], &vw = values[filter], &vy = values[result];
  const int64_t products = y[0] * y[1] * y[2] * y[3] * w[1] * w[2] * w[3];
  for (int64_t p = 0; p < products; ++p) {
    int64_t rest = p;
    const auto next = [&rest](int64_t size) {
      const int64_t index = rest % size;
      rest /= size;
      return index;
    };
    const int64_t j = next(w[3]), i = next(w[2]), c = next(w[1]);
    const int64_t column = next(y[3]), row = next(y[2]), o = next(y[1]);
    const int64_t n = rest;
    const int64_t h =
        row * node.stride[0] - node.before[0] + i * node.dilation[0];
    const int64_t v =
        column * node.stride[1] - node.before[1] + j * node.dilation[1];
    if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
    double& ex = vx.at(at(x, n, c, h, v));
    double& ew = vw.at(at(w, o, c, i, j));
    double& ey = vy.at(at(y, n, o, row, column));
    if (node.kind == Kind::kConv) ey += ex * ew;
    if (node.kind == Kind::kConvGradImage) ex += ey * ew;
    if (node.kind == Kind::kConvGradFilter) ew += ex * ey;
  }
}

void Interpreter::SumChannels(const CudnnNode& node) {
  const std::vector<int64_t>& dims = Dims(node.inputs[0]);
  for (int output : node.outputs) values[output].assign(dims[1], 0);
  Values &first = values[node.outputs[0]], &second = values[node.outputs[1]];
  const Values& x = values[node.inputs[0]];
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / (dims[2] * dims[3]) % dims[1];
    if (node.kind == Kind::kChannelSums) {
      first[c] += x[i];
      second[c] += x[i] * x[i];
    } else {  // g, x, mean, inv_std, scale
      first[c] +=
          x[i] * (values[node.inputs[1]].at(i) - values[node.inputs[2]].at(c)) *
          values[node.inputs[3]].at(c);
      second[c] += x[i];
    }
  }
}

void Interpreter::Run(const CudnnNode& node) {
  switch (node.kind) {
    case Kind::kConv:
    case Kind::kConvGradImage:
    case Kind::kConvGradFilter:
      return Convolve(node);
    case Kind::kAdd:
      return PointWise(node, [](double x, double y) { return x + y; });
    case Kind::kSubtract:
      return PointWise(node, [](double x, double y) { return x - y; });
    case Kind::kMultiply:
      return PointWise(node, [](double x, double y) { return x * y; });
    case Kind::kRelu:
      return PointWise(node, [](double x, double) { return std::max(x, 0.0); });
    case Kind::kReluGrad:
      return PointWise(node, [](double g, double x) { return x > 0 ? g : 0; });
    case Kind::kChannelSums:
    case Kind::kNormGradSums:
      return SumChannels(node);
    case Kind::kAttention:
    case Kind::kAttentionGrad:
      HT_CHECK(false, "no part of a norm's fusion");
  }
}

// ---- A fusion's instance, with the interpreter for the library and loops for
// the launches.
class Instance {
 public:
  Instance(const NormFusion& bound, const std::vector<Values>& arguments,
           size_t results)
      : results(results), bound_(bound), arguments_(arguments) {}

  void Run() {
    Before();
    Interpreter graph(bound_.graph.graph);
    const auto& sources = bound_.graph.sources;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (IsSet(sources[i])) graph.values[i] = At(sources[i]);
    }
    graph.Run();
    for (size_t i = 0; i < sources.size(); ++i) {
      if (IsSet(sources[i])) At(sources[i]) = graph.values[i];
    }
    After();
  }

  std::vector<Values> results;

 private:
  using Source = BoundGraph::Source;
  static bool IsSet(const Source& source) {
    return source.position >= 0 || source.scratch >= 0;
  }
  Values& At(const Source& source) {
    if (source.scratch >= 0) return workspace_[source.scratch];
    return (source.output ? results : arguments_).at(source.position);
  }
  float Argument(int position, int64_t c) const {
    return static_cast<float>(arguments_.at(position).at(c));
  }

  // Values are in logical order whatever the layout.
  bool MakesFilter() const { return bound_.filter_outside.output; }

  void Before() {
    if (bound_.filter >= 0 && !MakesFilter()) {
      workspace_[bound_.filter] = At(bound_.filter_outside);
    }
    for (int64_t c = 0; c < bound_.in_channels; ++c) {
      if (bound_.factor >= 0) {
        const functors::HalfFactors factors = functors::HalfFactorsOf(
            Argument(bound_.scale, c), Argument(bound_.bias, c),
            Argument(bound_.mean, c), Argument(bound_.variance, c),
            bound_.epsilon);
        workspace_[bound_.factor].push_back(static_cast<float>(factors.factor));
        workspace_[bound_.offset].push_back(static_cast<float>(factors.offset));
      }
      for (const NormFusion::Deviation& deviation : bound_.deviations) {
        workspace_[deviation.to].push_back(functors::InverseDeviation(
            Argument(deviation.variance, c), deviation.epsilon));
      }
    }
  }

  void After() {
    if (bound_.filter >= 0 && MakesFilter()) {
      At(bound_.filter_outside) = workspace_[bound_.filter];
    }
    if (bound_.sum < 0) return;
    for (int64_t c = 0; c < bound_.out_channels; ++c) {
      const functors::MeanVariance stats = functors::StatsOfSums(
          static_cast<float>(workspace_[bound_.sum].at(c)),
          static_cast<float>(workspace_[bound_.squared_sum].at(c)),
          bound_.count);
      At(bound_.batch_mean).push_back(stats.mean);
      At(bound_.batch_variance).push_back(stats.variance);
    }
    if (bound_.count_out >= 0) results[bound_.count_out] = {bound_.count};
  }

  const NormFusion& bound_;
  std::vector<Values> arguments_;
  std::map<int64_t, Values> workspace_;
};

// ---- The body on the CPU, op by op.
std::vector<Values> RunBody(const BoundOp& fusion,
                            const std::vector<Values>& arguments) {
  const Block& body = *fusion.op().body;
  std::map<ValueId, Values> values;
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) values[feeds[i]] = arguments[i];
  for (OpId id : body.ops()) {
    const Op& op = body.op(id);
    const BoundOp bound(body, op, fusion.symbols(), fusion.context());
    KernelRun run(op.schema->name());
    for (size_t i = 0; i < op.inputs.all().size(); ++i) {
      const TensorDesc& desc = bound.inputs()[i];
      run.In(op.schema->inputs()[op.inputs.SlotOf(static_cast<int>(i))].name,
             {desc.dtype,
              {desc.dims.begin(), desc.dims.end()},
              values.at(op.inputs.all()[i]),
              desc.layout});
    }
    for (const auto& [index, attr] : op.attrs) {
      run.Attr(op.schema->attrs()[index].name, attr);
    }
    for (int s = 0; s < op.outputs.slots(); ++s) {
      values[op.out(s)] = run.Get(op.schema->outputs()[s].name);
    }
  }
  std::vector<Values> results;
  for (ValueId result : body.body_results()) results.push_back(values[result]);
  return results;
}

// Exact in f16; a variance is not negative, and no sum with y is next to 0,
// which the body rounds it to and a graph does not.
std::vector<Values> Arguments(const BoundOp& fusion) {
  std::vector<Values> arguments;
  const Block& body = *fusion.op().body;
  const std::vector<ValueId> feeds = body.Feeds();
  for (size_t i = 0; i < feeds.size(); ++i) {
    arguments.push_back(Eighths(fusion.inputs()[i].elements(), i));
    if (body.name(feeds[i]) == "y") {
      for (double& y : arguments.back()) y += 3.0 / 512;
    }
    if (!absl::StartsWith(body.name(feeds[i]), "v")) continue;
    for (double& v : arguments.back()) v = std::abs(v);
  }
  return arguments;
}

class NormFusionsCudnnTest : public ::testing::TestWithParam<const char*> {
 protected:
  // The fusions of the pattern's file, with f16 replaced.
  void ForEach(const std::string& dtype, const std::string& target,
               const std::function<void(const BoundOp&)>& body) {
    const std::string file =
        absl::StrCat("tests/ops/patterns/", GetParam(), ".txt");
    const auto content = ReadFile(file);
    ASSERT_TRUE(content.ok()) << content.status();
    const auto program =
        Parse(absl::StrReplaceAll(*content, {{"f16[", dtype + "["}}), file);
    ASSERT_TRUE(program.ok()) << program.status();
    BindContext context;
    context.target = target;
    for (const auto& entry : (*program)->entries()) {
      SCOPED_TRACE(absl::StrCat(file, ", ", entry->name(), ", ", dtype));
      const Block& block = entry->block();
      body(BoundOp(block, block.op(block.first()), SymbolValues(), context));
    }
  }
};

TEST_P(NormFusionsCudnnTest, GraphsAreTakenByTheLibrary) {
  ForEach("f16", "sm_90", [](const BoundOp& op) {
    const NormFusion bound = BindNormFusion(op);
    EXPECT_TRUE(bound.possible);
    const absl::Status status = ValidateCudnnGraph(bound.graph.graph);
    EXPECT_TRUE(status.ok()) << status;
  });
}

// bf16 is what passes/lower/patterns/norm_conv.cc relies on.
TEST_P(NormFusionsCudnnTest, HaveKernelsInF16Alone) {
  KernelRegistry registry;
  RegisterCudnnNormFusions(registry, std::make_shared<CudnnCache>());
  for (const char* target : {"sm_80", "sm_90"}) {
    ForEach("f16", target, [&](const BoundOp& op) {
      const auto found = registry.Find(op);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->size(), 1u);
      EXPECT_TRUE((*found)[0]->deterministic);
      // What is ours has a place before the library's own.
      EXPECT_GT((*found)[0]->workspace_bytes(op), BindNormFusion(op).own_bytes);
    });
    for (const char* dtype : {"bf16", "f32"}) {
      ForEach(dtype, target, [&](const BoundOp& op) {
        EXPECT_TRUE(registry.Find(op)->empty());
      });
    }
  }
}

TEST_P(NormFusionsCudnnTest, GraphsSayWhatTheBodySays) {
  ForEach("f16", "sm_90", [](const BoundOp& op) {
    const std::vector<Values> arguments = Arguments(op);
    const std::vector<Values> expected = RunBody(op, arguments);
    const NormFusion bound = BindNormFusion(op);
    Instance instance(bound, arguments, expected.size());
    instance.Run();
    for (size_t r = 0; r < expected.size(); ++r) {
      ASSERT_EQ(instance.results[r].size(), expected[r].size()) << r;
      double largest = 0, difference = 0;
      for (size_t i = 0; i < expected[r].size(); ++i) {
        largest = std::max(largest, std::abs(expected[r][i]));
        difference = std::max(
            difference, std::abs(expected[r][i] - instance.results[r][i]));
      }
      ASSERT_GT(largest, 0);
      // Roundings of factor, offset, norm and result to f16.
      EXPECT_LE(difference / largest, 4 * std::ldexp(1, -11)) << "result " << r;
    }
  });
}

TEST(FilterMoveTest, TakesFiltersToChannelsLast) {
  TensorDesc desc;
  desc.dtype = DType::kF32;
  desc.dims = {3, 4, 2, 3};
  const Extents strides = StridesOf(desc);
  Values logical(desc.elements());
  for (size_t i = 0; i < logical.size(); ++i) logical[i] = i;
  std::vector<float> row_major(logical.size()), channels_last(logical.size());
  StoreTensor(desc, logical, row_major.data());
  desc.layout = Layout::kChannelsLast;
  StoreTensor(desc, logical, channels_last.data());
  const Permutation move(desc, strides);
  ASSERT_EQ(move.elements, desc.elements());
  for (int64_t i = 0; i < move.elements; ++i) {
    const int64_t from = NestWalk(move.nest, i).offset();
    EXPECT_EQ(channels_last[i], row_major[from]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, NormFusionsCudnnTest,
                         ::testing::ValuesIn(kPatterns));

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
