#include "passes/report.h"

namespace halftone {
namespace passes {
namespace {

constexpr NoteDoc kNoteDocs[] = {
    {"C1", "casts that cost more than their low ops gain",
     "Low ops that no product of matrices is among save bytes, not "
     "arithmetic, and the casts around these, which no kernel takes, move more "
     "bytes than they save. In f32 (amp.custom_black_opnames, --black-op) the "
     "step moves less, and is more exact."},
    {"D8", "sizes that are not multiples of 8",
     "Tensor cores multiply tiles whose sides are multiples of 8. A "
     "convolution whose channels, or a matrix product whose K or N, are not "
     "is padded by the library or runs elsewhere. GPU targets only; results "
     "do not change. Pad the model's dims where it matters."},
    {"D9", "channels of an image padded to 8",
     "Tensor cores read 8 channels of a pixel at once. The compiler pads the "
     "channels of an image that only convolutions read with zeros, and their "
     "filters; the filter's gradient is cut back. Results do not change. "
     "cuDNN would make such a copy in every step for the filter's gradient."},
    {"F1", "batch norms split for fusions",
     "A batch norm is split into its parts where the target's fusions take "
     "them: its statistics are summed where the convolution before it writes, "
     "and what it makes goes straight to its readers. The bytes are those of "
     "one sample that need not be moved; `saves` of each channel_stats has its "
     "share."},
    {"F2", "kernels less exact than their ops",
     "A library's kernel is less exact than the op with what that keeps in "
     "f32. It takes scale and bias of a batch norm that is fused into the "
     "convolution behind it in low precision; or it makes a batch's variance "
     "from plain sums of x and x * x, of which nothing is left where the mean "
     "is more than about 1,000 deviations from 0. --strict-f32-slots "
     "(amp.strict_f32_slots) leaves these fusions out."},
    {"M1", "values that backward makes again",
     "memory.recompute, or train.memory_budget, has backward make values of "
     "the forward part again that it would else have to keep. Each of these "
     "ops, or the fusion that took it, has a copy, NAME.again, before the "
     "first op of backward that reads what it makes; halftone inspect --dump "
     "shows it, with the reason RECOMPUTED. The bits are the same; the step "
     "takes longer by what the copies take."},
    {"M2", "recomputation chosen by the memory budget",
     "train.memory_budget is what a rank may need in all. memory.recompute."
     "within was chosen so that the planned peak fits; write it into the "
     "strategy in place of the budget to keep the choice for other batches."},
    {"M3", "values kept in few bits for backward",
     "memory.compress has backward read these values in few bits per element "
     "(ActNN). Each is packed behind its last reader in the forward part, "
     "NAME.packed, and unpacked before its first in backward, NAME.unpacked; "
     "halftone inspect --dump shows both, with the reason COMPRESSED. Forward "
     "is as it was. What a relu let through stays the same to the bit; "
     "gradients of parameters have noise of mean zero. Names under memory."
     "compress.values choose other values, more bits make less noise."},
    {"N1", "constants beyond f16",
     "f16 holds numbers up to 65,504 and none but 0 below 3e-8. These ops "
     "write a finite number beyond that into f16: it becomes infinite or 0 in "
     "every step. Large negative summands of masks do no harm where a softmax "
     "follows and no row is all masked; -1e4 is enough for those. bf16 holds "
     "them all; --black-op keeps an op in f32."},
    {"N2", "long sums in f16",
     "These sums are written in f16, and of many values of a sample: the sum "
     "is infinite where their mean is above 65,504 divided by their number. "
     "They are added in f32 and rounded once. Black-list the op, or take "
     "reduce_mean."},
    {"N3", "the logarithm of a sigmoid or softmax",
     "The logarithm of a sigmoid or softmax is infinite where that rounds to 0 "
     "(in f16 below 3e-8), though it is a small number: the op named instead "
     "computes both from the logits. A softmax of a softmax flattens its "
     "classes, which is seldom meant."},
    {"P1", "parameters that the loss does not use",
     "The loss does not depend on these parameters: they get no gradient, no "
     "update, and stay as they were initialised. Mark them trainable: false "
     "if that is meant."},
    {"P2", "white lists at level O0",
     "At level O0 every op runs in f32, so white lists have no effect. Choose "
     "a level from O1 on."},
    {"P3", "a model without loss",
     "The model has no loss: it is compiled for evaluation alone and the "
     "strategy's optimizer has no effect."},
    {"P4", "lists that name no op of the model",
     "A member of amp.custom_white_list or custom_black_list (--white, "
     "--black) is the type of no op of the model: it has no effect here. The "
     "types are listed by halftone inspect MODEL --all."},
    {"P5", "a preset of the scaler, and fields of it",
     "amp.scaler names a preset, and fields of amp.loss_scaling are set, too: "
     "the fields hold, the preset gives the others. Leave them out to get the "
     "preset as it is."},
    {"P6", "a level at which nothing runs low",
     "The level is not O0, but every op runs in f32: none is white, or lists, "
     "patterns, integer inputs or missing kernels keep them all in f32. "
     "halftone inspect MODEL gives each op's reason."},
    {"P7", "another rule would save casts",
     "precision_rule decides where gray and clear ops run, and so how many "
     "casts are left that no kernel takes and that run on their own. Another "
     "rule leaves far fewer of them for this model. Results differ by "
     "rounding."},
    {"P8", "attributes of Paddle's without effect",
     "Attributes of Paddle's that say where or how fast an op runs, or have "
     "the value at which they do nothing, and outputs that Paddle keeps for "
     "its gradients (XShape, Mask, SavedMean) are taken where our op has none "
     "of that name. They can be deleted from the model."},
    {"P9", "a loss of means over different counts",
     "The loss adds means over different counts, and ranks are weighed by one "
     "of them: with several ranks the other means are not those of one device "
     "with the whole batch. Name what each is divided by: loss { ... "
     "mean_over: a value with samples denominator: the divisor }, without "
     "mask. Nothing changes on one rank."},
    {"P10", "a cut that kernels do better without",
     "precision_rule min_cost places gray and clear ops by a minimum cut over "
     "the bytes of inserted casts, those of gradients among them. Kernels take "
     "some casts: where all_low or any_low leaves fewer bytes in the end, ops "
     "are placed as by that rule."},
    {"P11", "scopes that match no op",
     "A glob of amp.fp32_scopes matches the name of no op of the model, so no "
     "op is in that scope. Scopes are the same for models of several sizes, so "
     "that this is no error; halftone inspect MODEL --all lists the names."},
    {"P12", "a scaler per loss for one loss",
     "amp.loss_scaling.per_loss gives each part of the model's loss a scaler, "
     "and the loss has no two parts: loss { var: \"loss\" mean_over: \"ce\" "
     "part { var: \"main\" } part { var: \"aux\" weight: 0.4 } }. One scaler "
     "is what it has."},
    {"P13", "settings that nothing reads",
     "Another setting, or the model, leaves these without effect: what stands "
     "in brackets says which. Take them out, or change that. Results are those "
     "without them."},
    {"T1", "no fast products in the level's dtype",
     "The target has no instructions for products in this dtype: it computes "
     "them in f32 and rounds once. The level saves memory and moved bytes, not "
     "arithmetic, and shows what a GPU would compute. On CPUs with avx512_bf16 "
     "or AMX, --dtype bf16 has such instructions. halftone lint alone says "
     "it."},
};

}  // namespace

absl::Span<const NoteDoc> NoteDocs() { return kNoteDocs; }

}  // namespace passes
}  // namespace halftone
