// Op lists from data: Paddle's, and files that hold `op_lists`.
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/model_reader.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {
namespace {

// The lists that PaddlePaddle 2.6 has for FP16 on GPUs, by Paddle's op names.
// layer_norm and fused_attention stand in two of them: black is asked first,
// then white.
constexpr char kPaddleWhite[] =
    "conv2d einsum fake_quantize_dequantize_abs_max "
    "fake_quantize_dequantize_moving_average_abs_max fused_attention "
    "fused_bn_add_activation fused_feedforward fused_gemm_epilogue matmul "
    "matmul_v2 max_pool2d_with_index mul resnet_unit";
constexpr char kPaddleBlack[] =
    "acos asin atanh bicubic_interp_v2 bilinear_interp_v2 "
    "c_softmax_with_cross_entropy cosh cross_entropy cross_entropy2 cumprod "
    "cumsum dist erfinv exp expm1 frobenius_norm group_norm hsigmoid_loss "
    "huber_loss layer_norm linear_interp_v2 log log10 log2 log_loss "
    "log_softmax "
    "lookup_table lookup_table_v2 margin_cross_entropy mean nearest_interp_v2 "
    "nll_loss pnorm pow reciprocal reduce_mean reduce_prod reduce_sum renorm "
    "rsqrt scatter sigmoid_cross_entropy_with_logits sinh softmax "
    "softmax_with_cross_entropy softmin softplus square tan tanh_shrink "
    "trilinear_interp_v2 triplet_margin_loss";
constexpr char kPaddleGray[] =
    "batch_norm c_allreduce_sum c_concat c_identity cast concat dropout "
    "elementwise_add elementwise_div elementwise_floordiv elementwise_max "
    "elementwise_min elementwise_mod elementwise_mul elementwise_pow "
    "elementwise_sub fill_constant flatten2 fused_attention "
    "fused_bn_add_activation fused_feedforward fused_multi_transformer gather "
    "gaussian_random get_tensor_from_selected_rows layer_norm leaky_relu "
    "pool2d "
    "pool3d rank relu relu6 reshape2 scale sigmoid sign slice soft_relu split "
    "stack tanh top_k transpose2 uniform_random uniform_random_batch_size_like "
    "unstack";

constexpr int64_t kMaxFileBytes = 1 << 20;

proto::OpLists Paddle() {
  proto::OpLists lists;
  for (absl::string_view op : absl::StrSplit(kPaddleWhite, ' ')) {
    lists.add_white(std::string(op));
  }
  for (absl::string_view op : absl::StrSplit(kPaddleBlack, ' ')) {
    lists.add_black(std::string(op));
  }
  for (absl::string_view op : absl::StrSplit(kPaddleGray, ' ')) {
    lists.add_gray(std::string(op));
  }
  return lists;
}

// A name in a strategy is relative to the strategy's folder, one from a flag
// to where the command runs.
std::string PathOf(const std::string& name, const std::string& origin,
                   const std::string& strategy_file) {
  const size_t slash = strategy_file.rfind('/');
  if (absl::StartsWith(name, "/") || absl::StartsWith(origin, "--") ||
      slash == std::string::npos) {
    return name;
  }
  return absl::StrCat(strategy_file.substr(0, slash + 1), name);
}

absl::StatusOr<proto::OpLists> Load(const Resolver& resolver) {
  const std::string& name = resolver.strategy().amp().op_lists();
  if (name == "paddle") return Paddle();
  const std::string path =
      PathOf(name, resolver.Origin("amp.op_lists"), resolver.file().file);
  const absl::StatusOr<std::string> content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return resolver.Error(
        "amp.op_lists",
        absl::StrCat("expected \"paddle\" or a file that can be read, found ",
                     content.status().message()));
  }
  HT_RETURN_IF_ERROR(ExpectTextOf(*proto::OpListsFile::descriptor(),
                                  "op lists (op_lists { ... })", *content,
                                  path));
  proto::OpListsFile file;
  HT_RETURN_IF_ERROR(ParseTextProto(*content, path, &file));
  if (!file.has_op_lists()) {
    return ModelError(path, ": expected op_lists { ... }, found none");
  }
  return file.op_lists();
}

std::optional<AmpClass> ClassFromName(absl::string_view word) {
  if (absl::EqualsIgnoreCase(word, "black")) return AmpClass::kBlack;
  if (absl::EqualsIgnoreCase(word, "gray")) return AmpClass::kGray;
  if (absl::EqualsIgnoreCase(word, "clear")) return AmpClass::kClear;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<proto::OpLists> LoadOpLists(const Resolver& resolver) {
  proto::OpLists lists;
  const std::string& name = resolver.strategy().amp().op_lists();
  if (name.empty()) return lists;
  // Lists that were kept stand for the name that they were kept under.
  const StrategyFile& file = resolver.file();
  if (file.op_lists.has_value() && name == file.strategy.amp().op_lists()) {
    lists = *file.op_lists;
  } else {
    HT_ASSIGN_OR_RETURN(lists, Load(resolver));
  }
  if (!lists.has_unlisted() || ClassFromName(lists.unlisted()).has_value()) {
    return lists;
  }
  return resolver.Error(
      "amp.op_lists",
      absl::StrCat("unlisted: expected BLACK, GRAY or CLEAR, found \"",
                   lists.unlisted(), "\""));
}

AmpClass UnlistedOf(const Options& options) {
  if (options.op_lists.has_unlisted()) {
    return *ClassFromName(options.op_lists.unlisted());
  }
  const Level level = LevelOf(options.strategy.amp());
  return level == Level::kO2 || level == Level::kO3 ? AmpClass::kGray
                                                    : AmpClass::kBlack;
}

}  // namespace passes
}  // namespace halftone
