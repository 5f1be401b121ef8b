// Transformers: ViT with torchvision's names and sizes, BERT and GPT-2 with
// Hugging Face's.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/zoo/families.h"

namespace halftone {
namespace zoo {
namespace {

constexpr int64_t kHeadWidth = 64;
constexpr double kStd = 0.02;  // of all weights of BERT and GPT-2
constexpr double kDropout = 0.1;

// Weights of a given deviation, biases 0.
LayerInit SmallNormal(double std = kStd) { return {Normal(std), Constant(0)}; }

// Glorot and Bengio 2010, biases 0.
LayerInit XavierUniform() {
  LayerInit init;
  init.weight.emplace().mutable_xavier_uniform();
  init.bias = Constant(0);
  return init;
}

struct Attention {
  int64_t width, heads;
  double dropout = 0;
  // [B, 1, 1, T]: whether a sample's rows may look at a column; empty: they
  // may.
  Value allowed = {};
  // Rows look at the columns up to their own.
  bool causal = false;
};

// [B, T, width] -> [B, T, heads, width / heads].
Value SplitHeads(ModelBuilder& b, const std::string& name, const Value& x,
                 const Attention& a) {
  return b.Unary(
      "reshape", name + ".heads", x,
      {{"shape", std::vector<int64_t>{0, 0, a.heads, a.width / a.heads}}});
}

// Vaswani et al. 2017: softmax(Q K' / sqrt(d)) V, of [B, T, width] each.
Value Attend(ModelBuilder& b, const std::string& name, const Value& query,
             const Value& key, const Value& value, const Attention& a) {
  std::vector<ModelBuilder::Input> inputs = {
      {"Q", {SplitHeads(b, name + ".q", query, a)}},
      {"K", {SplitHeads(b, name + ".k", key, a)}},
      {"V", {SplitHeads(b, name + ".v", value, a)}}};
  ModelBuilder::Attrs attrs;
  if (!a.allowed.empty()) inputs.push_back({"Mask", {a.allowed}});
  if (a.causal) attrs.emplace_back("causal", true);
  if (a.dropout != 0) attrs.emplace_back("dropout_prob", a.dropout);
  const Value mixed =
      b.Op("scaled_dot_product_attention", name + ".mixed", inputs, attrs);
  return b.Unary("reshape", name + ".joined", mixed,
                 {{"shape", std::vector<int64_t>{0, 0, a.width}}});
}

Value Gelu(ModelBuilder& b, const std::string& name, const Value& x,
           bool tanh = false) {
  ModelBuilder::Attrs attrs;
  if (tanh) attrs.emplace_back("approximate", "tanh");
  return b.Unary("gelu", name, x, attrs);
}

// The first token of each sample, [B, T, width] -> [B, width].
Value FirstToken(ModelBuilder& b, const std::string& name, const Value& x) {
  return b.Op("slice", name, {{"Input", {x}}},
              {{"axes", std::vector<int64_t>{1}},
               {"starts", std::vector<int64_t>{0}},
               {"ends", std::vector<int64_t>{1}},
               {"decrease_axis", std::vector<int64_t>{1}}});
}

// One block of ViT (Dosovitskiy et al. 2020): norms come first.
Value VitBlock(ModelBuilder& b, const std::string& name, const Value& x,
               const Attention& a) {
  constexpr double kEpsilon = 1e-6;
  const LayerInit init = XavierUniform();
  const std::string self = name + ".self_attention";
  Value y = b.LayerNorm(name + ".ln_1", x, 3, a.width, kEpsilon);
  y = b.Linear(self + ".in_proj", y, a.width, 3 * a.width, init);
  const std::vector<Value> qkv =
      b.Split({self + ".query", self + ".key", self + ".value"}, y, 2);
  y = Attend(b, self, qkv[0], qkv[1], qkv[2], a);
  y = b.Linear(self + ".out_proj", y, a.width, a.width, init);
  const Value h = b.Add(name + ".add_1", x, y);
  y = b.LayerNorm(name + ".ln_2", h, 3, a.width, kEpsilon);
  y = b.Linear(name + ".mlp.0", y, a.width, 4 * a.width, init);
  y = Gelu(b, name + ".mlp.1", y);
  y = b.Linear(name + ".mlp.3", y, 4 * a.width, a.width, init);
  return b.Add(name + ".add_2", h, y);
}

// Devlin et al. 2018: norms come last.
Value BertLayer(ModelBuilder& b, const std::string& name, const Value& x,
                const Attention& a) {
  constexpr double kEpsilon = 1e-12;
  const LayerInit init = SmallNormal();
  const std::string attention = name + ".attention";
  const auto project = [&](const std::string& which) {
    return b.Linear(absl::StrCat(attention, ".self.", which), x, a.width,
                    a.width, init);
  };
  const Value query = project("query"), key = project("key"),
              value = project("value");
  Value y = Attend(b, attention + ".self", query, key, value, a);
  y = b.Linear(attention + ".output.dense", y, a.width, a.width, init);
  y = b.Dropout(attention + ".output.dropout", y, a.dropout);
  y = b.Add(attention + ".output.add", y, x);
  const Value h =
      b.LayerNorm(attention + ".output.LayerNorm", y, 3, a.width, kEpsilon);
  y = b.Linear(name + ".intermediate.dense", h, a.width, 4 * a.width, init);
  y = Gelu(b, name + ".intermediate.act", y);
  y = b.Linear(name + ".output.dense", y, 4 * a.width, a.width, init);
  y = b.Dropout(name + ".output.dropout", y, a.dropout);
  y = b.Add(name + ".output.add", y, h);
  return b.LayerNorm(name + ".output.LayerNorm", y, 3, a.width, kEpsilon);
}

// Word, position and type: [B, T, width].
Value BertEmbeddings(ModelBuilder& b, int64_t words, int64_t positions,
                     int64_t sequence, int64_t width) {
  const std::string name = "bert.embeddings.";
  const proto::Init init = Normal(kStd);
  Value x =
      b.Embedding(name + "word_embeddings", "input_ids", words, width, init);
  const Value type = b.Embedding(name + "token_type_embeddings",
                                 "token_type_ids", 2, width, init);
  x = b.Add(name + "typed", x, type);
  const Value places = b.Op("arange", name + "position_ids", {},
                            {{"end", static_cast<double>(sequence)}});
  const Value position =
      b.Embedding(name + "position_embeddings", places, positions, width, init);
  x = b.Add(name + "placed", x, position);
  x = b.LayerNorm(name + "LayerNorm", x, 3, width, 1e-12);
  return b.Dropout(name + "dropout", x, kDropout);
}

// Where attention_mask is not 0: [B, 1, 1, T].
Value BertMask(ModelBuilder& b) {
  const Value mask =
      b.Unary("cast", "bert.mask", "attention_mask", {{"to", "bool"}});
  return b.Unary("unsqueeze", "bert.mask.broadcast", mask,
                 {{"axes", std::vector<int64_t>{1, 2}}});
}

// Which of the words stood at each place, and whether the second sentence
// follows the first.
void PretrainBert(ModelBuilder& b, const Value& x, const Value& pooled,
                  int64_t words, int64_t width) {
  const LayerInit init = SmallNormal();
  const std::string head = "cls.predictions.transform.";
  Value y = b.Linear(head + "dense", x, width, width, init);
  y = Gelu(b, head + "act", y);
  y = b.LayerNorm(head + "LayerNorm", y, 3, width, 1e-12);
  b.Param("cls.predictions.bias", {words}, Constant(0));
  const Value logits = b.Op("matmul", "logits",
                            {{"X", {y}},
                             {"Y", {"bert.embeddings.word_embeddings.table"}},
                             {"Bias", {"cls.predictions.bias"}}},
                            {{"trans_y", true}});
  const Value next = b.Linear("cls.seq_relationship", pooled, width, 2, init,
                              "next_sentence_logits");
  b.Feed("next_sentence_label", proto::I64, {-1});
  b.Op("softmax_with_cross_entropy", "ce",
       {{"Logits", {logits}}, {"Label", {"label"}}}, {}, "Loss");
  const Value ignored = b.Op("fill_constant", "label.ignored", {},
                             {{"shape", std::vector<int64_t>{1}},
                              {"dtype", "i64"},
                              {"value", -100.0}});
  Value mask =
      b.Op("not_equal", "label.asked", {{"X", {"label"}}, {"Y", {ignored}}});
  mask = b.Unary("cast", "label.mask", mask, {{"to", "f32"}});
  const Value total = b.Unary("reduce_sum", "ce.total", "ce");
  const Value count = b.Unary("reduce_sum", "label.count", mask);
  const Value words_loss =
      b.Op("elementwise_div", "words_loss", {{"X", {total}}, {"Y", {count}}});
  b.Op("softmax_with_cross_entropy", "next_sentence_ce",
       {{"Logits", {next}}, {"Label", {"next_sentence_label"}}}, {}, "Loss");
  const Value next_loss =
      b.Unary("mean", "next_sentence_loss", "next_sentence_ce");
  b.Loss(b.Add("loss", words_loss, next_loss), "next_sentence_ce");
  b.Denominator(count);
  b.Output(logits);
  b.Output(next);
}

// Radford et al. 2019: norms come first.
Value GptBlock(ModelBuilder& b, const std::string& name, const Value& x,
               const Attention& a, int64_t layers) {
  constexpr double kEpsilon = 1e-5;
  // What is added to the residual starts smaller.
  const LayerInit last =
      SmallNormal(kStd / std::sqrt(2 * static_cast<double>(layers)));
  const std::string attention = name + ".attn";
  Value y = b.LayerNorm(name + ".ln_1", x, 3, a.width, kEpsilon);
  y = b.Linear(attention + ".c_attn", y, a.width, 3 * a.width, SmallNormal());
  const std::vector<Value> qkv = b.Split(
      {attention + ".query", attention + ".key", attention + ".value"}, y, 2);
  y = Attend(b, attention, qkv[0], qkv[1], qkv[2], a);
  y = b.Linear(attention + ".c_proj", y, a.width, a.width, last);
  y = b.Dropout(attention + ".resid_dropout", y, a.dropout);
  const Value h = b.Add(name + ".add_1", x, y);
  y = b.LayerNorm(name + ".ln_2", h, 3, a.width, kEpsilon);
  y = b.Linear(name + ".mlp.c_fc", y, a.width, 4 * a.width, SmallNormal());
  y = Gelu(b, name + ".mlp.act", y, /*tanh=*/true);
  y = b.Linear(name + ".mlp.c_proj", y, 4 * a.width, a.width, last);
  y = b.Dropout(name + ".mlp.dropout", y, a.dropout);
  return b.Add(name + ".add_2", h, y);
}

}  // namespace

proto::Model VisionTransformer(const std::string& name, int64_t width,
                               const ZooOptions& options) {
  constexpr int64_t kPatch = 16;
  width = options.width.value_or(width);
  const int64_t size = options.image_size.value_or(224);
  const int64_t classes = options.classes.value_or(1000);
  const int64_t layers = options.layers.value_or(12);
  const int64_t patches = (size / kPatch) * (size / kPatch);
  ModelBuilder b(name);
  Value x = ImageNet(b, size);
  const double fan_in = 3 * kPatch * kPatch;
  x = b.Conv("conv_proj", x, 3, width, {kPatch, kPatch, 0},
             {TruncatedNormal(std::sqrt(1 / fan_in)), Constant(0)});
  x = b.Unary("reshape", "patches", x,
              {{"shape", std::vector<int64_t>{0, width, patches}}});
  x = b.Unary("transpose", "tokens", x,
              {{"axis", std::vector<int64_t>{0, 2, 1}}});
  // A place in front of the patches; what stands there is the same in all
  // samples, and is added with the positions.
  x = b.Unary("pad", "tokens.padded", x,
              {{"paddings", std::vector<int64_t>{0, 0, 1, 0, 0, 0}}});
  b.Param("class_token", {1, 1, width}, Constant(0));
  b.Param("encoder.pos_embedding", {1, patches + 1, width}, Normal(kStd));
  const Value token =
      b.Unary("pad", "class_token.padded", "class_token",
              {{"paddings", std::vector<int64_t>{0, 0, 0, patches, 0, 0}}});
  x = b.Add("tokens.placed", x,
            b.Add("positions", "encoder.pos_embedding", token));
  const Attention attention = {width, std::max<int64_t>(1, width / kHeadWidth)};
  for (int64_t i = 0; i < layers; ++i) {
    x = VitBlock(b, absl::StrCat("encoder.layers.encoder_layer_", i), x,
                 attention);
  }
  x = b.LayerNorm("encoder.ln", x, 3, width, 1e-6);
  x = FirstToken(b, "encoder.first", x);
  x = b.Linear("heads.head", x, width, classes, {Constant(0), Constant(0)},
               "logits");
  b.Classify(x, /*top5=*/classes >= 100);
  return b.Take();
}

proto::Model Bert(const std::string& name, int64_t layers, int64_t width,
                  const ZooOptions& options) {
  constexpr int64_t kWords = 30522, kPositions = 512;
  const bool pretraining = options.head == "pretraining";
  layers = options.layers.value_or(layers);
  width = options.width.value_or(width);
  const int64_t sequence = options.sequence.value_or(128);
  ModelBuilder b(name);
  for (const char* feed : {"input_ids", "token_type_ids", "attention_mask"}) {
    b.Feed(feed, proto::I64, {-1, sequence});
  }
  b.Feed("label", proto::I64,
         pretraining ? std::vector<int64_t>{-1, sequence}
                     : std::vector<int64_t>{-1});
  Value x = BertEmbeddings(b, kWords, std::max(kPositions, sequence), sequence,
                           width);
  Attention attention = {width, std::max<int64_t>(1, width / kHeadWidth),
                         kDropout, BertMask(b)};
  for (int64_t i = 0; i < layers; ++i) {
    x = BertLayer(b, absl::StrCat("bert.encoder.layer.", i), x, attention);
  }
  Value pooled = FirstToken(b, "bert.first", x);
  pooled = b.Linear("bert.pooler.dense", pooled, width, width, SmallNormal());
  pooled = b.Unary("tanh", "bert.pooler.activation", pooled);
  if (pretraining) {
    PretrainBert(b, x, pooled, kWords, width);
    return b.Take();
  }
  pooled = b.Dropout("dropout", pooled, kDropout);
  const Value logits =
      b.Linear("classifier", pooled, width, options.classes.value_or(2),
               SmallNormal(), "logits");
  b.Classify(logits, /*top5=*/false);
  return b.Take();
}

proto::Model Gpt2(const std::string& name, int64_t layers, int64_t width,
                  const ZooOptions& options) {
  constexpr int64_t kWords = 50257, kPositions = 1024;
  layers = options.layers.value_or(layers);
  width = options.width.value_or(width);
  const int64_t sequence = options.sequence.value_or(kPositions);
  ModelBuilder b(name);
  b.Feed("input_ids", proto::I64, {-1, sequence});
  // The token that follows each.
  b.Feed("label", proto::I64, {-1, sequence});
  Value x =
      b.Embedding("transformer.wte", "input_ids", kWords, width, Normal(kStd));
  const Value places =
      b.Op("arange", "places", {}, {{"end", static_cast<double>(sequence)}});
  x = b.Add("transformer.placed", x,
            b.Embedding("transformer.wpe", places,
                        std::max(kPositions, sequence), width, Normal(kStd)));
  x = b.Dropout("transformer.drop", x, kDropout);
  Attention attention = {width, std::max<int64_t>(1, width / kHeadWidth),
                         kDropout};
  attention.causal = true;
  for (int64_t i = 0; i < layers; ++i) {
    x = GptBlock(b, absl::StrCat("transformer.h.", i), x, attention, layers);
  }
  x = b.LayerNorm("transformer.ln_f", x, 3, width, 1e-5);
  x = b.Op("matmul", "logits", {{"X", {x}}, {"Y", {"transformer.wte.table"}}},
           {{"trans_y", true}});
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

}  // namespace zoo
}  // namespace halftone
