// Names by which compiler and runtime know feeds, cells and results. All of
// them are printed in the entry; none is an attribute, so that what varies
// per step or per run leaves the graph alone.
#ifndef HALFTONE_GRAPH_IR_WELL_KNOWN_H_
#define HALFTONE_GRAPH_IR_WELL_KNOWN_H_

namespace halftone {

// Implicit feeds.
inline constexpr char kLargestCount[] = "@largest_count";  // f32[]
inline constexpr char kFirstSample[] = "@first_sample";    // i64[]
inline constexpr char kStop[] = "@stop";                   // f32[], 0 or 1
inline constexpr char kSeed[] = "@seed";                   // i64[]
// f32[3]: base lr after batch scaling, total steps, warm-up steps.
inline constexpr char kSchedule[] = "@schedule";
// f32[]: fed where the schedule counts epochs.
inline constexpr char kStepsPerEpoch[] = "@steps_per_epoch";

// Cells.
inline constexpr char kLossScaling[] = "@loss_scaling";  // f32[]
inline constexpr char kGoodSteps[] = "@good_steps";      // i32[]
inline constexpr char kBadSteps[] = "@bad_steps";        // i32[]
// Where each part of the loss has a scaler, the first part's are these; the
// others' have their number behind a dot: "@loss_scaling.1".
inline constexpr char kAttempted[] = "@attempted";  // i64[]
inline constexpr char kApplied[] = "@applied";      // i64[]

// Results of `train`; `eval` has those marked (e) and the model's outputs.
// All are of the whole world, equal on all ranks, except the outputs.
inline constexpr char kLossSum[] = "@loss_sum";  // f32[]: sum n_r*loss (e)
// + number of a part, from 0; f32[]: its sum n_r*mean (e)
inline constexpr char kLossPartPrefix[] = "@loss_part.";
inline constexpr char kCount[] = "@count";           // f32[]: sum of n_r (e)
inline constexpr char kStopped[] = "@stopped";       // f32[]: > 0: a rank stops
inline constexpr char kMetricPrefix[] = "@metric.";  // + name; f32[] sum (e)
inline constexpr char kOverPrefix[] = "@over.";      // + name; f32[] sum (e)
// + number of a part that has a scaler; f32[]: on how many ranks a gradient
// of it is not finite.
inline constexpr char kNotFinitePrefix[] = "@not_finite.";
inline constexpr char kFoundInf[] = "@found_inf";  // bool[]
// i32[]: which gradient is the first bad one: its position in check_finite's
// inputs (Low, then F32, then Stats); -1 if none.
inline constexpr char kFirstBad[] = "@first_bad";
inline constexpr char kGradNorm[] = "@grad_norm";  // f32[], unscaled
inline constexpr char kLearningRate[] = "@lr";     // f32[]
// The cells above after the step are results under the cell's name with
// ".next": "@loss_scaling.next", "@good_steps.next", "@bad_steps.next",
// "@applied.next", "@attempted.next".
inline constexpr char kNextSuffix[] = ".next";
// A parameter's average over the steps.
inline constexpr char kAverageSuffix[] = ".ema";

// Entries.
inline constexpr char kTrainEntry[] = "train";
inline constexpr char kEvalEntry[] = "eval";
// What a micro-batch does that is not the last of its step; train is the last.
inline constexpr char kAccumulateEntry[] = "accumulate";
inline constexpr char kInitEntry[] = "init";      // cells from initialisers
inline constexpr char kDeriveEntry[] = "derive";  // derived cells from cells

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_WELL_KNOWN_H_
