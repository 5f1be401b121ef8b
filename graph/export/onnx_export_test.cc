#include "graph/export/onnx_export.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/export/onnx_rules.h"
#include "graph/import/onnx_import.h"
#include "graph/import/onnx_same.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "proto/onnx.pb.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNet[] = R"(program "net" dim B
output logits
cell conv.w : f32[2,1,3,3] parameter trainable applied init=constant(0)
cell bn.scale : f32[2] parameter trainable applied init=constant(1)
cell bn.bias : f32[2] parameter trainable applied init=constant(0)
cell bn.mean : f32[2] statistic applied init=constant(0)
cell bn.var : f32[2] statistic applied init=constant(1)
cell fc.w : f32[8,3] parameter trainable applied init=constant(0)
cell fc.b : f32[3] parameter trainable applied init=constant(0)
cell unread : f32[3] parameter trainable applied init=constant(0)
entry eval {
  feed x : f32[B,1,4,4]
  conv: conv2d(Input=x, Filter=conv.w) -> (Output=conv : f32[B,2,4,4]) {paddings=[1,1]}   forward f32 LEVEL
  bn: scale_bias(X=conv, Scale=bn.scale, Bias=bn.bias, Mean=bn.mean, Variance=bn.var) -> (Y=bn : f32[B,2,4,4])   forward f32 LEVEL
  act: relu(X=bn) -> (Out=act : f32[B,2,4,4])   forward f32 LEVEL
  pool: pool2d(X=act) -> (Out=pool : f32[B,2,2,2]) {strides=[2,2]}   forward f32 LEVEL
  flat: reshape(X=pool) -> (Out=flat : f32[B,8]) {shape=[0,-1]}   forward f32 LEVEL
  fc: matmul(X=flat, Y=fc.w, Bias=fc.b) -> (Out=fc : f32[B,3])   forward f32 LEVEL
  result logits = fc
}
)";

struct Exported {
  OnnxExport files;
  std::string model, data;
};

std::string Joined(const std::vector<absl::string_view>& parts) {
  std::string whole;
  for (const absl::string_view part : parts) absl::StrAppend(&whole, part);
  return whole;
}

absl::StatusOr<Exported> Export(const std::string& text,
                                OnnxExportOptions options = {}) {
  const auto program = Parse(text, "p");
  EXPECT_TRUE(program.ok()) << program.status();
  std::map<std::string, std::string> bytes;
  std::map<std::string, absl::string_view> cells;
  for (int i = 0; i < (*program)->num_cells(); ++i) {
    const Cell& cell = (*program)->cell(CellId(i));
    const float value = 0.25f * static_cast<float>(i + 1);
    std::string& own = bytes[cell.name];
    for (int64_t k = 0; k < cell.type.Elements().coefficient(); ++k) {
      own.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    cells[cell.name] = own;
  }
  options.file = "net.pbtxt";
  HT_ASSIGN_OR_RETURN(OnnxExport files,
                      ExportOnnx(**program, *(*program)->FindEntry(kEvalEntry),
                                 cells, options));
  std::string model = Joined(files.model), data = Joined(files.data);
  return Exported{std::move(files), std::move(model), std::move(data)};
}

onnx::ModelProto ModelOf(const std::string& text) {
  const auto exported = Export(text);
  EXPECT_TRUE(exported.ok()) << exported.status();
  onnx::ModelProto model;
  EXPECT_TRUE(exported.ok() && model.ParseFromString(exported->model));
  return model;
}

std::vector<std::string> TypesOf(const onnx::ModelProto& model) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() != "Constant") types.push_back(node.op_type());
  }
  return types;
}

TEST(OnnxExportTest, NamesTypesAndWeightsAreTheModels) {
  const onnx::ModelProto model = ModelOf(kNet);
  EXPECT_EQ(model.ir_version(), 8);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_THAT(TypesOf(model),
              ElementsAre("Conv", "BatchNormalization", "Relu", "MaxPool",
                          "Reshape", "Identity", "Gemm"));
  ASSERT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.graph().input(0).name(), "x");
  const auto& shape = model.graph().input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "B");
  EXPECT_EQ(shape.dim(3).dim_value(), 4);
  ASSERT_EQ(model.graph().output_size(), 1);
  EXPECT_EQ(model.graph().output(0).name(), "logits");
  EXPECT_EQ(model.graph().node().rbegin()->output(0), "logits");
  std::map<std::string, int64_t> weights;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    EXPECT_EQ(tensor.data_type(), onnx::TensorProto::FLOAT);
    weights[tensor.name()] = static_cast<int64_t>(tensor.raw_data().size());
  }
  EXPECT_EQ(weights.size(), 7u);  // not the one that nothing reads
  EXPECT_EQ(weights["conv.w"], 72);
  EXPECT_EQ(weights["fc.w"], 96);
}

TEST(OnnxExportTest, ComesBackAsTheSameOpsAndWeights) {
  const auto exported = Export(kNet);
  ASSERT_TRUE(exported.ok()) << exported.status();
  const auto file = ParseOnnx(exported->model, "net.onnx");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto model = ImportOnnx(*file, {"net", "", {}});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> types;
  for (const proto::OpNode& op : model->imported.model.model->op()) {
    types.push_back(op.type());
  }
  EXPECT_THAT(types, ElementsAre("conv2d", "batch_norm", "relu", "pool2d",
                                 "reshape", "matmul"));
  std::map<std::string, float> first;
  for (const OnnxWeight& weight : model->weights) {
    std::memcpy(&first[weight.name], weight.tensor.bytes.data(), sizeof(float));
  }
  EXPECT_EQ(first.size(), 7u);
  EXPECT_EQ(first["conv.w"], 0.25f);
  EXPECT_EQ(first["bn.var"], 1.25f);
  EXPECT_EQ(first["fc.b"], 1.75f);
}

// The result keeps its name though a value has it that is in f16.
TEST(OnnxExportTest, CastsAreNodesAndResultsKeepTheirNames) {
  const onnx::ModelProto model = ModelOf(R"(program "p" dim B
cell w : f32[4,3] parameter trainable applied init=constant(0)
entry eval {
  feed x : f32[B,4]
  w.low: cast(X=w) -> (Out=w.low : f16[4,3]) {to=f16}   forward f16 WHITE_LIST <- y
  x.low: cast(X=x) -> (Out=x.low : f16[B,4]) {to=f16}   forward f16 WHITE_LIST <- y
  y: matmul(X=x.low, Y=w.low) -> (Out=y : f16[B,3])   forward f16 WHITE_LIST
  y.wide: cast(X=y) -> (Out=y.wide : f32[B,3]) {to=f32}   forward f32 BLACK_LIST <- y
  result y = y.wide
  result copy = y.wide
}
)");
  EXPECT_THAT(TypesOf(model),
              ElementsAre("Cast", "Cast", "MatMul", "Cast", "Identity"));
  EXPECT_EQ(model.graph().node(0).attribute(0).i(), onnx::TensorProto::FLOAT16);
  EXPECT_EQ(model.graph().node(2).output(0), "y.1");
  EXPECT_EQ(model.graph().node(3).output(0), "y");
  ASSERT_EQ(model.graph().output_size(), 2);
  EXPECT_EQ(model.graph().output(0).type().tensor_type().elem_type(),
            onnx::TensorProto::FLOAT);
  EXPECT_EQ(model.graph().output(1).name(), "copy");
}

TEST(OnnxExportTest, WhatCannotBeExportedIsToldAtOnce) {
  const auto exported = Export(R"(program "p" dim B
entry eval {
  feed x : f32[B,4]
  feed label : i64[B]
  a: softmax_with_cross_entropy(Logits=x, Label=label) -> (Loss=a : f32[B])   forward f32 LEVEL
  b: softmax_with_cross_entropy(Logits=x, Label=label) -> (Loss=b : f32[B])   forward f32 LEVEL
  n: correct_count(X=x, Label=label) -> (Out=n : i64[])   forward f32 LEVEL
  result a = a
  result b = b
  result n = n
}
)");
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(ExitCodeOf(exported.status()), ExitCode::kModel);
  const std::string why(exported.status().message());
  EXPECT_THAT(why, HasSubstr("net.pbtxt: cannot be exported as an ONNX model, "
                             "2 things stand in the way:"));
  EXPECT_THAT(why, HasSubstr("softmax_with_cross_entropy x2: ONNX has no op "
                             "like it; first at a"));
  EXPECT_THAT(why, HasSubstr("correct_count x1"));
}

TEST(OnnxExportTest, ManyWeightsLieInAFileBesideIt) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", getpid());
  const std::string path = folder + "-net.onnx";
  OnnxExportOptions options;
  options.most_bytes = 1;
  options.data_file = path.substr(path.rfind('/') + 1) + ".data";
  const auto exported = Export(kNet, options);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->data.size() % 64, 0u);
  ASSERT_TRUE(WriteFileAtomically(path + ".data", exported->data).ok());
  const auto file = ParseOnnx(exported->model, path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const onnx::TensorProto& tensor : file->model.graph().initializer()) {
    EXPECT_EQ(tensor.data_location(), onnx::TensorProto::EXTERNAL);
  }
  const auto model = ImportOnnx(*file, {"net", "", {}});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const OnnxWeight& weight : model->weights) {
    if (weight.name != "fc.b") continue;
    float value[3];
    ASSERT_EQ(weight.tensor.bytes.size(), sizeof(value));
    std::memcpy(value, weight.tensor.bytes.data(), sizeof(value));
    EXPECT_THAT(value, ElementsAre(1.75f, 1.75f, 1.75f));
  }
}

// Beside these every op of models has its nodes.
// Scores, their softmax and a product; what a row may not look at has no
// weight.
TEST(OnnxExportTest, AttentionIsSeveralNodes) {
  const onnx::ModelProto model = ModelOf(R"(program "p" dim B
output y
entry eval {
  feed q : f32[B,3,4,2]
  feed k : f32[B,3,2,2]
  y: scaled_dot_product_attention_infer(Q=q, K=k, V=k) -> (Out=y : f32[B,3,4,2]) {causal=true}   forward f32 LEVEL
  result y = y
}
)");
  EXPECT_THAT(TypesOf(model),
              ElementsAre("Transpose", "Gather", "Transpose", "Gather",
                          "Transpose", "MatMul", "Mul", "Where", "Softmax",
                          "Where", "MatMul", "Transpose", "Identity"));
}

// pytorch_half_pixel has it at the first.
TEST(OnnxExportTest, ASingleElementOnCubicsIsRefused) {
  const auto resized = [](const std::string& in, const std::string& attrs) {
    return Export(absl::StrCat(R"(program "p" dim B
output y
entry eval {
  feed x : f32[B,1,)",
                               in, R"(,4]
  y: bicubic_interp_v2(X=x) -> (Out=y : f32[B,1,1,8]) {out_h=1, out_w=8, align_mode=0, )",
                               attrs, R"(}   forward f32 LEVEL
  result y = y
}
)"));
  };
  EXPECT_THAT(
      std::string(resized("4", "align_corners=false").status().message()),
      HasSubstr("a single element of 4 is at -0.5, of which ONNX's "
                "Resize has no form; use bilinear_interp_v2 or "
                "align_corners"));
  EXPECT_TRUE(resized("4", "align_corners=true").ok());
  EXPECT_TRUE(resized("1", "align_corners=false").ok());
}

// A node for each layer; gates in ONNX's order.
TEST(OnnxExportTest, ARecurrentLayerIsANode) {
  const onnx::ModelProto model = ModelOf(R"(program "p" dim B
output y
cell wi : f32[8,3] parameter trainable applied init=constant(0)
cell wh : f32[8,2] parameter trainable applied init=constant(0)
entry eval {
  feed x : f32[4,B,3]
  y: rnn_eval(Input=x, WeightList=[wi, wh]) -> (Out=y : f32[4,B,2], State=[h : f32[1,B,2], c : f32[1,B,2]]) {mode="LSTM", hidden_size=2}   forward f32 LEVEL
  result y = y
}
)");
  EXPECT_THAT(
      TypesOf(model),
      ElementsAre("Gather", "Unsqueeze", "Gather", "Unsqueeze", "LSTM",
                  "Transpose", "Reshape", "Identity", "Concat", "Concat"));
}

// onnxruntime 1.32 dies of a MatMul of what is cast down, then transposed.
TEST(OnnxExportTest, WhatIsCastDownIsTransposedBefore) {
  const onnx::ModelProto model = ModelOf(R"(program "p" dim B
output y
entry eval {
  feed x : f32[2,B,4]
  feed w : f16[4,3]
  x.low: cast(X=x) -> (Out=x.low : f16[2,B,4]) {to=f16}   forward f16 WHITE_LIST <- y
  t: transpose(X=x.low) -> (Out=t : f16[B,2,4]) {axis=[1,0,2]}   forward f16 WHITE_LIST <- y
  u: transpose(X=t) -> (Out=u : f16[2,B,4]) {axis=[1,0,2]}   forward f16 WHITE_LIST <- y
  y: matmul(X=u, Y=w) -> (Out=y : f16[2,B,3])   forward f16 WHITE_LIST
  result y = y
  result t = t
}
)");
  EXPECT_THAT(TypesOf(model),
              ElementsAre("Transpose", "Cast", "Transpose", "Cast", "MatMul"));
  EXPECT_EQ(model.graph().node(0).input(0), "x");
  EXPECT_EQ(model.graph().node(1).output(0), "t");
}

TEST(OnnxExportTest, OpsThatAreLeftOut) {
  const std::set<std::string> left_out = {
      // Others stand for them at test time.
      "dropout", "dropout_nd", "rnn", "scaled_dot_product_attention",
      // Gradients' own.
      "broadcast_like", "pad_like",
      // Losses, which no output is made of.
      "bce_loss", "huber_loss", "kldiv_loss", "log_loss", "nll_loss",
      "sigmoid_cross_entropy_with_logits", "softmax_with_cross_entropy",
      "square_error_cost"};
  for (const std::string& name : Ops().Names()) {
    const OpSchema& schema = *Ops().Find(name);
    if (schema.internal() || !schema.has_grad()) continue;
    const bool has_rule = onnx_export::FindRule(name) != nullptr;
    if (left_out.count(name) == 0) {
      EXPECT_TRUE(has_rule)
          << "op " << name << " has no rule: give it a row in the table of its "
          << "family, graph/export/onnx_*_rules.cc, or, where ONNX has the op "
          << "with the same attributes, a line in graph/import/onnx_same.cc; "
          << "one that no net at test time needs goes into this test's list";
    } else {
      EXPECT_FALSE(has_rule)
          << "op " << name << " has a rule: take it off this test's list";
    }
  }
  for (const std::string& name : left_out) {
    EXPECT_NE(Ops().Find(name), nullptr)
        << name << " is no op: take it off this test's list";
  }
}

TEST(OnnxExportTest, TheSharedTableNamesOpsAndAttributesOfOurs) {
  for (const OnnxSame& same : OnnxSameOps()) {
    const OpSchema* const schema = Ops().Find(same.ours);
    ASSERT_NE(schema, nullptr) << same.ours;
    EXPECT_EQ(schema->inputs().size(), same.inputs) << same.ours;
    for (const OnnxSame::Attr& attr : same.attrs) {
      EXPECT_GE(schema->FindAttr(attr.ours), 0) << attr.ours;
    }
  }
}

}  // namespace
}  // namespace halftone
