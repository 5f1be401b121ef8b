// Commits and results of entries.
#include "absl/container/flat_hash_set.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/verify/rules.h"

namespace halftone {
namespace verify {
namespace {

// At most one commit per cell, of a live value of the cell's type.
void CheckCommits(const Entry& entry, Phase, Reporter& report) {
  const Block& block = entry.block();
  const Program& program = block.program();
  std::vector<bool> committed(program.num_cells());
  for (const CommitStatement& commit : entry.commits()) {
    if (!commit.cell.valid() || commit.cell.index() >= program.num_cells()) {
      report.At(0, "commit: there is no such cell");
      continue;
    }
    const Cell& cell = program.cell(commit.cell);
    if (committed[commit.cell.index()]) {
      report.At(cell.line, "commit ", cell.name, ": two commits");
    }
    committed[commit.cell.index()] = true;
    if (!IsLive(block, commit.value)) {
      report.At(cell.line, "commit ", cell.name, ": the value is gone");
    } else if (block.type(commit.value) != cell.type) {
      report.At(cell.line, "commit ", cell.name, ": expected ",
                ToString(cell.type, program.symbols()), ", found ",
                block.name(commit.value), " : ",
                ToString(block.type(commit.value), program.symbols()));
    }
  }
  if (entry.name() == kEvalEntry && !entry.commits().empty()) {
    report.At(0, "expected no commits: evaluation changes nothing");
  }
}

// Before a step's verdict nothing changes but what its micro-batches add up.
void CheckAccumulate(const Entry& entry, Phase, Reporter& report) {
  if (entry.name() != kAccumulateEntry) return;
  const Program& program = entry.block().program();
  for (const CommitStatement& commit : entry.commits()) {
    if (!commit.cell.valid() || commit.cell.index() >= program.num_cells()) {
      continue;  // reported above
    }
    const Cell& cell = program.cell(commit.cell);
    if (cell.kind == CellKind::kAccumulator) continue;
    report.At(cell.line, "commit ", cell.name,
              ": expected none but of accumulators before a step's verdict");
  }
}

// Ranks average what each has made of the model; how far a run is, and what an
// update keeps for itself, they do not.
void CheckAverage(const Entry& entry, Phase, Reporter& report) {
  if (entry.name() != kAverageEntry) return;
  const Program& program = entry.block().program();
  for (const CommitStatement& commit : entry.commits()) {
    if (!commit.cell.valid() || commit.cell.index() >= program.num_cells()) {
      continue;  // reported above
    }
    const Cell& cell = program.cell(commit.cell);
    if (cell.kind == CellKind::kParameter ||
        cell.kind == CellKind::kStatistic || cell.kind == CellKind::kAverage ||
        cell.kind == CellKind::kDerived ||
        cell.kind == CellKind::kAccumulator) {
      continue;
    }
    report.At(cell.line, "commit ", cell.name,
              ": expected none but of parameters, statistics and what is made "
              "of them where ranks average");
  }
}

void CheckResults(const Entry& entry, Phase, Reporter& report) {
  absl::flat_hash_set<absl::string_view> names;
  for (const Result& result : entry.results()) {
    if (!names.insert(result.name).second) {
      report.At(0, "result ", result.name, ": two results of that name");
    }
    if (!IsLive(entry.block(), result.value)) {
      report.At(0, "result ", result.name, ": the value is gone");
    }
  }
}

// `derive` makes what is a function of other cells, `init` all else.
void CheckStartup(const Entry& entry, Phase, Reporter& report) {
  const bool derive = entry.name() == kDeriveEntry;
  if (!derive && entry.name() != kInitEntry) return;
  const Program& program = entry.block().program();
  std::vector<bool> made(program.num_cells());
  for (const CommitStatement& commit : entry.commits()) {
    if (commit.cell.valid() && commit.cell.index() < program.num_cells()) {
      made[commit.cell.index()] = true;
    }
  }
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    const bool expected = cell.IsMadeAgain() == derive;
    if (made[i] != expected) {
      report.At(cell.line, "cell ", cell.name, ": expected ",
                expected ? "a commit" : "no commit");
    }
  }
}

constexpr EntryRule kEntryRules[] = {
    {Phase::kSource, CheckCommits},      {Phase::kSource, CheckResults},
    {Phase::kSource, CheckGuards},       {Phase::kSource, CheckGradients},
    {Phase::kSource, CheckAccumulate},   {Phase::kSource, CheckAverage},
    {Phase::kParallel, CheckReductions}, {Phase::kUpdate, CheckUpdates},
    {Phase::kLowered, CheckStartup},
};

}  // namespace

absl::Span<const EntryRule> EntryRules() { return kEntryRules; }

}  // namespace verify
}  // namespace halftone
