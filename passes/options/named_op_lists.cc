#include "passes/options/named_op_lists.h"

#include "absl/strings/str_split.h"

namespace halftone {
namespace passes {
namespace {

struct NamedLists {
  absl::string_view name;
  // Separated by spaces. Names that no op of ours has do no harm.
  absl::string_view white, black, gray;
  absl::string_view unlisted;  // empty: by level
};

constexpr NamedLists kLists[] = {
    // PaddlePaddle 2.6 for FP16 on GPUs, by Paddle's op names. layer_norm and
    // fused_attention stand in two of them: black is asked first, then white.
    {"paddle",
     "conv2d einsum fake_quantize_dequantize_abs_max "
     "fake_quantize_dequantize_moving_average_abs_max fused_attention "
     "fused_bn_add_activation fused_feedforward fused_gemm_epilogue matmul "
     "matmul_v2 max_pool2d_with_index mul resnet_unit",
     "acos asin atanh bicubic_interp_v2 bilinear_interp_v2 "
     "c_softmax_with_cross_entropy cosh cross_entropy cross_entropy2 cumprod "
     "cumsum dist erfinv exp expm1 frobenius_norm group_norm hsigmoid_loss "
     "huber_loss layer_norm linear_interp_v2 log log10 log2 log_loss "
     "log_softmax lookup_table lookup_table_v2 margin_cross_entropy mean "
     "nearest_interp_v2 nll_loss pnorm pow reciprocal reduce_mean reduce_prod "
     "reduce_sum renorm rsqrt scatter sigmoid_cross_entropy_with_logits sinh "
     "softmax softmax_with_cross_entropy softmin softplus square tan "
     "tanh_shrink trilinear_interp_v2 triplet_margin_loss",
     "batch_norm c_allreduce_sum c_concat c_identity cast concat dropout "
     "elementwise_add elementwise_div elementwise_floordiv elementwise_max "
     "elementwise_min elementwise_mod elementwise_mul elementwise_pow "
     "elementwise_sub fill_constant flatten2 fused_attention "
     "fused_bn_add_activation fused_feedforward fused_multi_transformer "
     "gather gaussian_random get_tensor_from_selected_rows layer_norm "
     "leaky_relu pool2d pool3d rank relu relu6 reshape2 scale sigmoid sign "
     "slice soft_relu split stack tanh top_k transpose2 uniform_random "
     "uniform_random_batch_size_like unstack",
     ""},
    // FleetX's, the first of Paddle's static-graph AMP.
    {"fleetx", "conv2d matmul mul",
     "exp square log mean sum cos_sim softmax softmax_with_cross_entropy "
     "sigmoid_cross_entropy_with_logits cross_entropy cross_entropy2",
     "", "GRAY"},
    // torch.autocast on CUDA (PyTorch 2.11) by our names: what it gives the
    // low type, then what it gives f32, with the reductions that sum in f32.
    // square is a power there, a cross entropy a log_softmax. All others run
    // in what they are given, the widest of several: the rule all_low.
    // binary_cross_entropy is refused there and black here.
    {"torch",
     "conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose "
     "depthwise_conv2d depthwise_conv2d_transpose matmul mul prelu rnn "
     "scaled_dot_product_attention",
     "bce_loss bicubic_interp_v2 bilinear_interp_v2 cumsum elementwise_pow "
     "exp group_norm huber_loss kldiv_loss layer_norm linear_interp_v2 log "
     "log_loss "
     "log_softmax nearest_interp_v2 nll_loss p_norm pow reciprocal "
     "reduce_prod reduce_sum rsqrt sigmoid_cross_entropy_with_logits softmax "
     "softmax_with_cross_entropy softplus square square_error_cost "
     "trilinear_interp_v2",
     "", "GRAY"},
    // apex.amp at O1 (torch_overrides, functional_overrides) by our names. A
    // mean is in neither list since PyTorch 1.1; square is no power there.
    {"apex",
     "conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose "
     "depthwise_conv2d depthwise_conv2d_transpose matmul mul prelu rnn",
     "bce_loss bilinear_interp_v2 cumsum elementwise_pow exp group_norm "
     "huber_loss kldiv_loss layer_norm linear_interp_v2 log log_loss "
     "log_softmax nearest_interp_v2 nll_loss p_norm pow reciprocal "
     "reduce_prod reduce_sum rsqrt sigmoid_cross_entropy_with_logits softmax "
     "softmax_with_cross_entropy softplus square_error_cost "
     "trilinear_interp_v2",
     "", "GRAY"},
};

void AddWords(absl::string_view words,
              google::protobuf::RepeatedPtrField<std::string>* names) {
  for (absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
    names->Add(std::string(word));
  }
}

}  // namespace

std::vector<std::string> OpListNames() {
  std::vector<std::string> names;
  for (const NamedLists& lists : kLists) names.emplace_back(lists.name);
  return names;
}

std::optional<proto::OpLists> FindOpLists(absl::string_view name) {
  for (const NamedLists& named : kLists) {
    if (named.name != name) continue;
    proto::OpLists lists;
    AddWords(named.white, lists.mutable_white());
    AddWords(named.black, lists.mutable_black());
    AddWords(named.gray, lists.mutable_gray());
    if (!named.unlisted.empty()) {
      lists.set_unlisted(std::string(named.unlisted));
    }
    return lists;
  }
  return std::nullopt;
}

}  // namespace passes
}  // namespace halftone
