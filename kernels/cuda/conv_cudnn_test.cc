// Convolutions as cuDNN takes them. No device is needed: the library says what
// it would do on one.
#include "kernels/cuda/conv_cudnn.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "graph/ir/program.h"
#include "graph/ops/register_all.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn_cache.h"
#include "kernels/cuda/cudnn_library.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using ::testing::HasSubstr;

// One convolution with its gradients, and conv2d + relu fused.
constexpr char kProgram[] = R"(program "conv"
entry e {
  feed x : $0[$1] $6
  feed w : $0[$2]
  feed b : $0[$7]
  feed g : $0[$3] $6
  y: conv2d(Input=x, Filter=w) -> (Output=y : $0[$3] $6) {$5}   forward
  z: conv2d(Input=x, Filter=w, Bias=b) -> (Output=z : $0[$3] $6) {$5}   forward
  xg: conv2d_grad_input(OutputGrad=g, Filter=w) -> (InputGrad=xg : $0[$1] $6) {$5, input_hw=[$8]}   backward
  wg: conv2d_grad_filter(Input=x, OutputGrad=g) -> (FilterGrad=wg : $0[$2]) {$5, filter_hw=[$4]}   backward
  f: fusion(X=[b, x, w]) -> (Out=[f : $0[$3] $6]) {pattern="conv_bias_relu"}   forward body {
    feed b : $0[$7]
    feed x : $0[$1] $6
    feed w : $0[$2]
    c: conv2d(Input=x, Filter=w, Bias=b) -> (Output=c : $0[$3] $6) {$5}   forward
    f: relu(X=c) -> (Out=f : $0[$3] $6)   forward
    return f
  }
}
)";

struct Shape {
  const char *name, *image, *filter, *result, *filter_hw, *attrs;
};
const Shape kShapes[] = {
    {"resnet", "32,64,56,56", "64,64,3,3", "32,64,56,56", "3,3",
     "paddings=[1,1]"},
    {"first", "32,3,224,224", "64,3,7,7", "32,64,112,112", "7,7",
     "paddings=[3,3], strides=[2,2]"},
    {"pointwise", "8,64,14,14", "256,64,1,1", "8,256,14,14", "1,1",
     "strides=[1,1]"},
    {"mnist", "64,1,28,28", "16,1,5,5", "64,16,28,28", "5,5", "paddings=[2,2]"},
    {"depthwise", "8,32,14,14", "32,1,3,3", "8,32,14,14", "3,3",
     "paddings=[1,1], groups=32"},
    {"groups", "2,4,7,6", "6,2,2,3", "2,6,6,4", "2,3", "groups=2"},
    {"dilated", "2,3,9,9", "5,3,3,3", "2,5,5,5", "3,3", "dilations=[2,2]"},
    {"uneven", "2,3,9,8", "5,3,3,3", "2,5,8,4", "3,3",
     "paddings=[0,1,1,0], strides=[1,2]"},
    // Those of tests/ops/patterns/conv_bias_relu.txt.
    {"padded", "2,3,5,4", "4,3,3,3", "2,4,5,4", "3,3", "paddings=[1,1]"},
    {"strided", "1,4,6,5", "6,2,2,3", "1,6,3,3", "2,3",
     "strides=[2,1], groups=2"},
    {"tiny", "3,1,2,2", "2,1,1,1", "3,2,2,2", "1,1", "strides=[1,1]"},
    {"ragged", "2,17,13,11", "35,17,3,3", "2,35,13,11", "3,3",
     "dilations=[2,1], paddings=[2,1]"},
};

class ConvCudnnTest : public ::testing::Test {
 protected:
  void Make(const Shape& shape, const std::string& dtype, bool channels_last,
            const std::string& target = "sm_90", bool deterministic = true) {
    const auto part = [](const std::string& list, int begin, int end) {
      const std::vector<std::string> all = absl::StrSplit(list, ',');
      return absl::StrJoin(all.begin() + begin, all.begin() + end, ",");
    };
    auto program = Parse(
        absl::Substitute(kProgram, dtype, shape.image, shape.filter,
                         shape.result, shape.filter_hw, shape.attrs,
                         channels_last ? "@channels_last" : "",
                         part(shape.filter, 0, 1), part(shape.image, 2, 4)),
        shape.name);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    BindContext context;
    context.target = target;
    context.deterministic = deterministic;
    const Block& block = program_->FindEntry("e")->block();
    ops_.clear();
    for (OpId id : block.ops()) {
      ops_.emplace_back(block, block.op(id), SymbolValues(), context);
    }
  }

  static BoundGraph GraphOf(const BoundOp& op) {
    return op.type() == "fusion" ? ConvBiasReluGraph(op) : ConvGraph(op);
  }

  template <typename Body>
  void ForEach(const Body& body) {
    for (const Shape& shape : kShapes) {
      for (const char* dtype : {"f16", "bf16", "f32"}) {
        for (bool channels_last : {true, false}) {
          Make(shape, dtype, channels_last);
          for (const BoundOp& op : ops_) {
            SCOPED_TRACE(absl::StrCat(shape.name, " ", dtype,
                                      channels_last ? " channels_last " : " ",
                                      op.name()));
            body(op);
          }
        }
      }
    }
  }

  std::unique_ptr<Program> program_;
  std::vector<BoundOp> ops_;  // y, z, xg, wg, f
};

TEST_F(ConvCudnnTest, AreTakenByTheLibrary) {
  ForEach([](const BoundOp& op) {
    const absl::Status status = ValidateCudnnGraph(GraphOf(op).graph);
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_F(ConvCudnnTest, HaveDeterministicEnginesOnBothTargets) {
  ForEach([](const BoundOp& op) {
    for (const char* target : {"sm_80", "sm_90"}) {
      const auto engine = ChooseCudnnEngine(GraphOf(op).graph, target);
      ASSERT_TRUE(engine.ok()) << target << ": " << engine.status();
      EXPECT_THAT(engine->name, HasSubstr("eng"));
      EXPECT_LE(engine->workspace_bytes, int64_t{1} << 30);
    }
  });
}

// Sequences, volumes and what is transposed. f32 and low sums are the same
// graphs.
constexpr char kOthers[] = R"(program "others"
entry e {
  feed x1 : $0[2,8,30]
  feed w1 : $0[16,8,3]
  feed g1 : $0[2,16,30]
  feed x2 : $0[2,8,14,14] @channels_last
  feed w2 : $0[8,16,2,2]
  feed x3 : $0[2,8,6,8,10]
  feed w3 : $0[16,8,3,3,3]
  feed g3 : $0[2,16,6,8,10]
  feed u3 : $0[8,16,2,2,2]
  feed b : $0[16]
  a: conv1d(Input=x1, Filter=w1, Bias=b) -> (Output=a : $0[2,16,30]) {paddings=[1]}   forward
  b1: conv1d_grad_input(OutputGrad=g1, Filter=w1) -> (InputGrad=b1 : $0[2,8,30]) {paddings=[1], input_w=[30]}   backward
  c: conv1d_grad_filter(Input=x1, OutputGrad=g1) -> (FilterGrad=c : $0[16,8,3]) {paddings=[1], filter_w=[3]}   backward
  d: conv2d_transpose(Input=x2, Filter=w2) -> (Output=d : $0[2,16,28,28] @channels_last) {strides=[2,2]}   forward
  biased_d: conv2d_transpose(Input=x2, Filter=w2, Bias=b) -> (Output=biased_d : $0[2,16,28,28] @channels_last) {strides=[2,2]}   forward
  f: conv3d(Input=x3, Filter=w3, Bias=b) -> (Output=f : $0[2,16,6,8,10]) {paddings=[1,1,1]}   forward
  g: conv3d_grad_input(OutputGrad=g3, Filter=w3) -> (InputGrad=g : $0[2,8,6,8,10]) {paddings=[1,1,1], input_dhw=[6,8,10]}   backward
  h: conv3d_grad_filter(Input=x3, OutputGrad=g3) -> (FilterGrad=h : $0[16,8,3,3,3]) {paddings=[1,1,1], filter_dhw=[3,3,3]}   backward
  i: conv3d_transpose(Input=x3, Filter=u3) -> (Output=i : $0[2,16,12,16,20]) {strides=[2,2,2]}   forward
  biased_i: conv3d_transpose(Input=x3, Filter=u3, Bias=b) -> (Output=biased_i : $0[2,16,12,16,20]) {strides=[2,2,2]}   forward
}
)";

TEST_F(ConvCudnnTest, OfOtherDimsAndTransposed) {
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    auto program = Parse(absl::Substitute(kOthers, dtype), "others");
    ASSERT_TRUE(program.ok()) << program.status();
    BindContext context;
    context.target = "sm_90";
    const Block& block = (*program)->FindEntry("e")->block();
    for (OpId id : block.ops()) {
      const BoundOp op(block, block.op(id), SymbolValues(), context);
      const CudnnGraph graph = ConvGraph(op).graph;
      const absl::Status taken = ValidateCudnnGraph(graph);
      EXPECT_TRUE(taken.ok()) << dtype << " " << op.name() << ": " << taken;
      const auto engine = ChooseCudnnEngine(graph, "sm_90");
      // The library adds no bias to an image gradient: our kernel does.
      EXPECT_EQ(engine.ok(), !absl::StartsWith(op.name(), "biased"))
          << dtype << " " << op.name() << ": " << engine.status();
    }
  }
}

TEST_F(ConvCudnnTest, AreChosenAlikeEveryTime) {
  CudnnCache cache;
  Make(kShapes[0], "f16", true);
  for (const BoundOp& op : ops_) {
    const CudnnGraph graph = GraphOf(op).graph;
    const auto first = cache.Choose(graph, "sm_90");
    ASSERT_TRUE(first.ok()) << first.status();
    for (const auto& again :
         {cache.Choose(graph, "sm_90"), ChooseCudnnEngine(graph, "sm_90"),
          ChooseCudnnEngine(graph, "sm_100")}) {
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->name, first->name);
      EXPECT_EQ(again->workspace_bytes, first->workspace_bytes);
    }
  }
}

// The A100 has none of the H100's instructions.
TEST_F(ConvCudnnTest, DependOnTheTarget) {
  CudnnCache cache;
  Make(kShapes[0], "f16", true);
  const CudnnGraph graph = GraphOf(ops_[0]).graph;
  EXPECT_NE(cache.Choose(graph, "sm_80")->name,
            cache.Choose(graph, "sm_90")->name);
}

TEST_F(ConvCudnnTest, F32IsNotRoundedToTf32) {
  Make(kShapes[0], "f32", true);
  CudnnGraph graph = GraphOf(ops_[0]).graph;
  const auto exact = ChooseCudnnEngine(graph, "sm_90");
  graph.tf32 = true;
  const auto rounded = ChooseCudnnEngine(graph, "sm_90");
  ASSERT_TRUE(exact.ok() && rounded.ok());
  EXPECT_NE(exact->name, rounded->name);
}

// The fastest f32 engines convert all of a channels-last batch first: more
// than 6 GB.
TEST_F(ConvCudnnTest, PreferLittleWorkspace) {
  Make({"vgg", "256,64,224,224", "64,64,3,3", "256,64,224,224", "3,3",
        "paddings=[1,1]"},
       "f32", true);
  for (const BoundOp& op : ops_) {
    const auto engine = ChooseCudnnEngine(GraphOf(op).graph, "sm_90");
    ASSERT_TRUE(engine.ok()) << engine.status();
    EXPECT_LE(engine->workspace_bytes, int64_t{1} << 30) << op.name();
  }
}

// Why choose-layout pads images: the engines for a filter's gradient want 8
// channels and otherwise copy the batch into their workspace.
TEST_F(ConvCudnnTest, ImagesOfEightChannelsAreNotCopied) {
  constexpr int64_t kCopy = int64_t{256} * 8 * 224 * 224 * 2;
  for (const char* target : {"sm_80", "sm_90"}) {
    for (const char* dtype : {"f16", "bf16"}) {
      for (int channels : {3, 4, 8}) {
        const std::string image = absl::StrCat("256,", channels, ",224,224");
        const std::string filter = absl::StrCat("64,", channels, ",7,7");
        Make({"first", image.c_str(), filter.c_str(), "256,64,112,112", "7,7",
              "paddings=[3,3], strides=[2,2]"},
             dtype, true, target);
        const auto engine = ChooseCudnnEngine(GraphOf(ops_[3]).graph, target);
        ASSERT_TRUE(engine.ok()) << engine.status();
        EXPECT_EQ(engine->workspace_bytes >= kCopy, channels < 8)
            << target << " " << dtype << " " << channels << ": "
            << engine->workspace_bytes;
      }
    }
  }
}

TEST_F(ConvCudnnTest, NoEngineIsToldFromABrokenLibrary) {
  Make(kShapes[0], "f16", true);
  CudnnGraph graph = GraphOf(ops_[3]).graph;  // the filter's gradient
  graph.tensors.back().dtype = DType::kF32;
  const absl::Status status = ChooseCudnnEngine(graph, "sm_90").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no engine for f16[32,64,56,56], f16[32,64,56,56], "
                        "f32[64,64,3,3]"));
}

class ConvCandidatesTest : public ConvCudnnTest {
 protected:
  ConvCandidatesTest() { RegisterCudaCudnn(registry_); }

  std::vector<std::string> Names(BoundOp op) const {
    const auto found = registry_.Find(op);
    std::vector<std::string> names;
    if (!found.ok()) return {std::string(found.status().message())};
    for (const Candidate* c : *found) names.push_back(c->name);
    return names;
  }

  KernelRegistry registry_;
};

TEST_F(ConvCandidatesTest, AreDeterministicUnlessOtherwiseAllowed) {
  Make(kShapes[0], "bf16", true);
  for (const BoundOp& op : ops_) {
    EXPECT_EQ(Names(op), std::vector<std::string>{"cudnn"}) << op.name();
  }
  Make(kShapes[0], "bf16", true, "sm_90", /*deterministic=*/false);
  EXPECT_EQ(Names(ops_[3]), (std::vector<std::string>{"cudnn_any", "cudnn"}));
}

// Our own kernel takes them.
TEST_F(ConvCandidatesTest, TakeNoTensorWithoutElements) {
  Make({"empty", "0,3,9,9", "5,3,3,3", "0,5,7,7", "3,3", "strides=[1,1]"},
       "f16", true);
  for (const BoundOp& op : ops_) {
    if (op.type() == "fusion") {
      EXPECT_TRUE(Names(op).empty()) << "the body is planned instead";
    } else {
      EXPECT_THAT(Names(op)[0], HasSubstr("supports these shapes"));
    }
  }
}

TEST_F(ConvCandidatesTest, WorkspaceIsKnownToThePlan) {
  Make({"large", "256,64,56,56", "64,64,3,3", "256,64,56,56", "3,3",
        "paddings=[1,1]"},
       "f16", false);
  for (const BoundOp& op : ops_) {
    const auto found = registry_.Find(op);
    ASSERT_TRUE(found.ok()) << found.status();
    // Row-major images are converted there.
    EXPECT_GT((*found)[0]->workspace_bytes(op),
              int64_t{256} * 64 * 56 * 56 * SizeOf(DType::kF16));
  }
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
