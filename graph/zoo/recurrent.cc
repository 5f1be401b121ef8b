// Recurrent nets. Steps come first in `rnn` and samples everywhere else.
#include <algorithm>

#include "graph/zoo/families.h"

namespace halftone {
namespace zoo {
namespace {

// [B, T, ...] -> [T, B, ...], and back.
Value SwapFirstTwo(ModelBuilder& b, const std::string& name, const Value& x) {
  return b.Unary("transpose", name, x,
                 {{"axis", std::vector<int64_t>{1, 0, 2}}});
}

}  // namespace

proto::Model LstmLanguageModel(const ZooOptions& options) {
  constexpr double kDropout = 0.5;
  const int64_t width = options.width.value_or(650);
  const int64_t words = options.classes.value_or(10000);
  const int64_t sequence = options.sequence.value_or(35);
  const proto::Init init = Uniform(0.05);
  ModelBuilder b("lstm_lm");
  b.Feed("input_ids", proto::I64, {-1, sequence});
  // The word that follows each.
  b.Feed("label", proto::I64, {-1, sequence});
  Value x = b.Embedding("encoder", "input_ids", words, width, init);
  x = b.Dropout("encoder.dropped", x, kDropout);
  x = SwapFirstTwo(b, "encoder.steps", x);
  Recurrent layers;
  layers.in = layers.hidden = width;
  layers.layers = options.layers.value_or(2);
  layers.dropout = kDropout;
  layers.init = init;
  x = b.Rnn("rnn", x, layers)[0];
  x = SwapFirstTwo(b, "rnn.samples", x);
  x = b.Dropout("rnn.dropped", x, kDropout);
  x = b.Linear("decoder", x, width, words, {init, init}, "logits");
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

proto::Model LstmClassifier(const ZooOptions& options) {
  constexpr int64_t kWords = 20000;
  const int64_t width = options.width.value_or(128);
  const int64_t sequence = options.sequence.value_or(200);
  ModelBuilder b("lstm_classifier");
  b.Feed("input_ids", proto::I64, {-1, sequence});
  // Words of each sample; what comes after them is not read.
  b.Feed("length", proto::I64, {-1});
  b.Feed("label", proto::I64, {-1});
  Value x = b.Embedding("embedding", "input_ids", kWords, width, Normal(1));
  x = SwapFirstTwo(b, "embedding.steps", x);
  Recurrent layers;
  layers.in = width;
  layers.hidden = std::max<int64_t>(1, width / 2);
  layers.layers = options.layers.value_or(2);
  layers.both_directions = true;
  layers.lengths = "length";
  const Value hidden = b.Rnn("lstm", x, layers)[1];
  // The last layer's two directions, side by side.
  x = b.Op("slice", "last", {{"Input", {hidden}}},
           {{"axes", std::vector<int64_t>{0}},
            {"starts", std::vector<int64_t>{2 * layers.layers - 2}},
            {"ends", std::vector<int64_t>{2 * layers.layers}}});
  x = SwapFirstTwo(b, "last.samples", x);
  x = b.Unary("flatten", "last.joined", x);
  x = b.Linear("classifier", x, 2 * layers.hidden, options.classes.value_or(2),
               {}, "logits");
  b.Classify(x, /*top5=*/false);
  return b.Take();
}

}  // namespace zoo
}  // namespace halftone
