// Files of token ids, cut into blocks.
//
// FILE holds u16 numbers as they lie in memory (nanoGPT's train.bin), or u32
// numbers if it ends in .u32. The last twentieth, in whole blocks, is the test
// split; a file val.bin or val.u32 beside train.bin or train.u32 is it instead.
// Of a file that is there to be evaluated on, all of it is.
// Feeds, i64[B,T] unless said otherwise:
//   input_ids        T tokens
//   label            the token that follows each of them (GPT)
// and of a model that has an attention_mask, as BERT's pre-training has:
//   attention_mask   ones
//   token_type_ids   zeros
//   label            the token where it was hidden, -100 elsewhere
// Devlin et al., "BERT" (2019): 15 % of the tokens are hidden, of which 80 %
// become [MASK] (id 103), 10 % any token, 10 % stay.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/philox.h"
#include "graph/base/stable_hasher.h"
#include "graph/base/text.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_format.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kIgnored = -100;
constexpr int64_t kMaskToken = 103;

enum class Column { kIds, kNext, kHidden, kOnes, kZeros };

// A part of a file.
struct Blocks {
  int64_t first = 0, tokens = 0;  // in tokens
  int64_t length = 0;             // T
  int width = 2;                  // bytes of a token

  // The last block's last token has one that follows it.
  int64_t count() const { return (tokens - 1) / length; }
};

class TokenDataset : public Dataset {
 public:
  TokenDataset(std::shared_ptr<const DataFile> file, Blocks blocks,
               std::vector<Column> columns, int64_t words, int64_t seed)
      : file_(std::move(file)),
        blocks_(blocks),
        columns_(std::move(columns)),
        words_(words),
        seed_(seed),
        hides_(std::count(columns_.begin(), columns_.end(), Column::kHidden) >
               0) {}

  int64_t size() const override { return blocks_.count(); }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override;
  std::string Description() const override {
    return absl::StrCat("tokens, ", WithCommas(blocks_.tokens),
                        " in blocks of ", WithCommas(blocks_.length));
  }
  absl::StatusOr<uint64_t> ContentHash() const override;

 private:
  struct Hidden {
    bool is = false;
    int64_t becomes = 0;
  };
  Hidden Hide(const SampleId& sample, int64_t i, int64_t id) const;
  // A block and the token after it, as they lie in the file. Good until this
  // thread asks for another.
  absl::StatusOr<const char*> BlockOf(int64_t index) const;

  static std::atomic<uint64_t> made_;  // datasets, by all threads
  const uint64_t number_ = ++made_;
  std::shared_ptr<const DataFile> file_;
  Blocks blocks_;
  std::vector<Column> columns_;
  int64_t words_, seed_;
  bool hides_;
};

TokenDataset::Hidden TokenDataset::Hide(const SampleId& sample, int64_t i,
                                        int64_t id) const {
  const uint64_t key = PhiloxKey(static_cast<uint64_t>(seed_), 0x70cec500u);
  const Philox4 draw =
      PhiloxDraw(key, static_cast<uint64_t>(sample.epoch),
                 static_cast<uint64_t>(sample.index), static_cast<uint32_t>(i));
  if (ToUniform(draw.x[0]) >= 0.15f) return {};
  const float kind = ToUniform(draw.x[1]);
  if (kind < 0.8f) return {true, kMaskToken};
  if (kind >= 0.9f || words_ == 0) return {true, id};
  return {true, static_cast<int64_t>((uint64_t{draw.x[2]} * words_) >> 32)};
}

// Ids as they lie in the file to i64; the largest of them. In pieces of one
// size, of which compilers make vectors: half the time.
template <typename Id>
int64_t Widen(const char* from, int64_t n, int64_t* out) {
  constexpr int64_t kPiece = 16;
  Id most[kPiece] = {};
  int64_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    Id piece[kPiece];
    std::memcpy(piece, from + i * sizeof(Id), sizeof(piece));
    for (int64_t k = 0; k < kPiece; ++k) {
      out[i + k] = piece[k];
      most[k] = std::max(most[k], piece[k]);
    }
  }
  for (; i < n; ++i) {
    Id id;
    std::memcpy(&id, from + i * sizeof(id), sizeof(id));
    out[i] = id;
    most[0] = std::max(most[0], id);
  }
  return *std::max_element(most, most + kPiece);
}

absl::Status CheckToken(const DataFile& file, int64_t at, int64_t id,
                        int64_t words) {
  if (words == 0 || id < words) return absl::OkStatus();
  return ModelError(file.path(), ": token ", at, " is ", id, ": expected 0 to ",
                    words - 1, ", the words of the model; ",
                    "take a file of its tokenizer");
}

std::atomic<uint64_t> TokenDataset::made_{0};

// A thread reads the feeds of a sample one after the other: its block is kept
// for the next feed.
absl::StatusOr<const char*> TokenDataset::BlockOf(int64_t index) const {
  thread_local struct {
    uint64_t dataset = 0;
    int64_t index = 0;
    std::string bytes;
  } kept;
  if (kept.dataset != number_ || kept.index != index) {
    kept.dataset = 0;  // until all of it is there
    kept.bytes.resize((blocks_.length + 1) * blocks_.width);
    const int64_t first = blocks_.first + index * blocks_.length;
    HT_RETURN_IF_ERROR(
        file_->ReadAt(first * blocks_.width, absl::MakeSpan(kept.bytes)));
    kept.dataset = number_;
    kept.index = index;
  }
  return kept.bytes.data();
}

absl::Status TokenDataset::Read(const SampleId& sample, int feed,
                                absl::Span<uint8_t> out) const {
  const Column column = columns_[feed];
  const int64_t n = blocks_.length;
  auto* const ids = reinterpret_cast<int64_t*>(out.data());
  if (column == Column::kOnes || column == Column::kZeros) {
    std::fill_n(ids, n, column == Column::kOnes ? 1 : 0);
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const char* const block, BlockOf(sample.index));
  const int64_t skipped = column == Column::kNext ? 1 : 0;
  const char* const from = block + skipped * blocks_.width;
  const int64_t largest = blocks_.width == 2 ? Widen<uint16_t>(from, n, ids)
                                             : Widen<uint32_t>(from, n, ids);
  if (words_ > 0 && largest >= words_) {
    const int64_t at = blocks_.first + sample.index * n + skipped +
                       (std::find(ids, ids + n, largest) - ids);
    return CheckToken(*file_, at, largest, words_);
  }
  if (!hides_) return absl::OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    const Hidden hidden = Hide(sample, i, ids[i]);
    if (column == Column::kHidden && !hidden.is) ids[i] = kIgnored;
    if (column == Column::kIds && hidden.is) ids[i] = hidden.becomes;
  }
  return absl::OkStatus();
}

// Tokens of which all are looked at before the first step: it takes no time.
constexpr int64_t kSoon = int64_t{1} << 26;

// Of those, and of pieces of the others at equal distances.
absl::StatusOr<uint64_t> TokenDataset::ContentHash() const {
  constexpr int64_t kPiece = 1 << 11;
  constexpr int64_t kMostPieces = 1 << 12;
  StableHasher hasher;
  std::string piece(kPiece * blocks_.width, '\0');
  const int64_t rest = std::max<int64_t>(blocks_.tokens - kSoon, 0);
  const int64_t stride = std::max(kPiece, rest / kMostPieces);
  for (int64_t at = 0; at < blocks_.tokens;
       at += at < kSoon ? kPiece : stride) {
    const int64_t n = std::min(kPiece, blocks_.tokens - at);
    const absl::Span<char> bytes = absl::MakeSpan(&piece[0], n * blocks_.width);
    HT_RETURN_IF_ERROR(
        file_->ReadAt((blocks_.first + at) * blocks_.width, bytes));
    hasher.Append({bytes.data(), bytes.size()});
  }
  return hasher.hash();
}

struct Largest {
  int64_t id = -1, at = 0;
};
absl::StatusOr<Largest> FindLargest(const DataFile& file,
                                    const Blocks& blocks) {
  constexpr int64_t kPiece = 1 << 16;  // tokens
  std::string piece(kPiece * blocks.width, '\0');
  std::vector<int64_t> ids(kPiece);
  Largest largest;
  for (int64_t done = 0; done < blocks.tokens;) {
    const int64_t n = std::min(kPiece, blocks.tokens - done);
    const int64_t at = blocks.first + done;
    HT_RETURN_IF_ERROR(file.ReadAt(
        at * blocks.width, absl::MakeSpan(&piece[0], n * blocks.width)));
    const int64_t most = blocks.width == 2
                             ? Widen<uint16_t>(piece.data(), n, ids.data())
                             : Widen<uint32_t>(piece.data(), n, ids.data());
    if (most > largest.id) {
      const auto found = std::find(ids.begin(), ids.begin() + n, most);
      largest = {most, at + (found - ids.begin())};
    }
    done += n;
  }
  return largest;
}

struct TokenFeeds {
  std::vector<Column> columns;
  int64_t length = 0, words = 0;
};

absl::StatusOr<TokenFeeds> MatchTokenFeeds(
    Feeds feeds, absl::Span<const std::string> feed_map) {
  std::vector<std::string> names = {"input_ids", "label", "attention_mask",
                                    "token_type_ids"};
  const std::vector<std::string> known = names;
  for (const std::string& item : feed_map) {
    const size_t equals = item.find('=');
    const auto at =
        std::find(known.begin(), known.end(), item.substr(0, equals));
    if (at == known.end() || equals == item.npos) {
      return UsageError("--feed ", item, ": expected NAME=FEED with one of ",
                        absl::StrJoin(known, ", "),
                        NearestHint(item.substr(0, equals), known));
    }
    names[at - known.begin()] = item.substr(equals + 1);
  }
  bool masked = false;
  for (const FeedSpec& feed : feeds) masked |= feed.name == names[2];
  const Column columns[] = {Column::kIds,
                            masked ? Column::kHidden : Column::kNext,
                            Column::kOnes, Column::kZeros};
  TokenFeeds match;
  for (const FeedSpec& feed : feeds) {
    const auto at = std::find(names.begin(), names.end(), feed.name);
    if (at == names.end()) {
      return ModelError("tokens feed ", absl::StrJoin(names, ", "),
                        "; the model's feed ", feed.name, " is none of them",
                        NearestHint(feed.name, names),
                        "; map it with --feed NAME=", feed.name);
    }
    const bool first = match.length == 0;
    if (feed.dtype != DType::kI64 || feed.whole || feed.dims.size() != 1 ||
        feed.dims[0] < 1 || (!first && feed.dims[0] != match.length)) {
      return ModelError("feed ", feed.name, ": tokens are i64[B,",
                        first ? std::string("T") : absl::StrCat(match.length),
                        "], the model expects ", Describe(feed));
    }
    match.length = feed.dims[0];
    match.words = std::max(match.words, feed.classes);
    match.columns.push_back(columns[at - names.begin()]);
  }
  if (match.length == 0) {
    return ModelError("tokens feed ", absl::StrJoin(names, ", "),
                      "; the model has no feeds");
  }
  if (masked && match.words > 0 && match.words <= kMaskToken) {
    return ModelError("tokens: hidden ones become ", kMaskToken,
                      ": expected a model of more words, found ", match.words,
                      "; take one with BERT's vocabulary");
  }
  return match;
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDataset(
    std::shared_ptr<const DataFile> file, const Blocks& blocks,
    const TokenFeeds& match, int64_t seed) {
  if (blocks.count() < 1) {
    return ModelError(file->path(), ": ", blocks.tokens, " tokens: expected ",
                      match.length + 1, " or more, a block and the one after");
  }
  // Of others it is said as they are read.
  if (match.words > 0) {
    Blocks soon = blocks;
    soon.tokens = std::min(soon.tokens, kSoon);
    HT_ASSIGN_OR_RETURN(const Largest largest, FindLargest(*file, soon));
    HT_RETURN_IF_ERROR(CheckToken(*file, largest.at, largest.id, match.words));
  }
  return std::make_unique<TokenDataset>(std::move(file), blocks, match.columns,
                                        match.words, seed);
}

absl::StatusOr<std::shared_ptr<const DataFile>> OpenFile(
    const std::string& path, int width) {
  HT_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> file,
                      DataFile::Open(path));
  if (file->size() % width != 0) {
    return ModelError(path, ": ", WithCommas(file->size()),
                      file->size() == 1 ? " byte" : " bytes",
                      ": expected a multiple of ", width, ", u", 8 * width,
                      " numbers; take a file of those",
                      width == 2 ? ", or one of u32 numbers called .u32" : "");
  }
  return file;
}

int WidthOf(absl::string_view path) {
  return absl::EndsWith(path, ".u32") ? 4 : 2;
}

// val.bin beside train.bin; empty: there is none.
std::string TestFileOf(const std::string& place) {
  const std::filesystem::path path(place);
  const std::filesystem::path beside =
      path.parent_path() / absl::StrCat("val", path.extension().string());
  std::error_code error;
  const bool there =
      path.stem() == "train" && std::filesystem::exists(beside, error);
  return there ? beside.string() : "";
}

}  // namespace

absl::StatusOr<OpenedData> OpenTokens(const std::string& place, Feeds feeds,
                                      const DataOptions& options) {
  HT_ASSIGN_OR_RETURN(const TokenFeeds match,
                      MatchTokenFeeds(feeds, options.feed_map));
  const int width = WidthOf(place);
  HT_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> file,
                      OpenFile(place, width));
  const auto whole = [&](const DataFile& of) {
    return Blocks{0, of.size() / width, match.length, width};
  };
  Blocks train = whole(*file);
  const std::string beside = TestFileOf(place);
  OpenedData data;
  if (!beside.empty()) {
    HT_ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> val,
                        OpenFile(beside, width));
    HT_ASSIGN_OR_RETURN(data.test,
                        MakeDataset(val, whole(*val), match, options.seed));
  } else if (!options.whole) {
    constexpr int64_t kTestShare = 20;
    const int64_t all = train.count();
    if (all >= 2) {
      Blocks test = train;
      test.first =
          (all - std::max<int64_t>(1, all / kTestShare)) * train.length;
      test.tokens -= test.first;
      HT_ASSIGN_OR_RETURN(data.test,
                          MakeDataset(file, test, match, options.seed));
      // With the token that follows its last one.
      train.tokens = test.first + 1;
    }
  }
  HT_ASSIGN_OR_RETURN(data.train,
                      MakeDataset(std::move(file), train, match, options.seed));
  return data;
}

absl::StatusOr<std::vector<DataFacts>> LookOverTokens(const std::string& place,
                                                      int64_t) {
  const int width = WidthOf(place);
  std::vector<std::pair<std::string, std::string>> splits = {{"train", place}};
  const std::string beside = TestFileOf(place);
  if (!beside.empty()) splits.emplace_back("val", beside);
  std::vector<DataFacts> facts;
  for (const auto& [name, path] : splits) {
    HT_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file,
                        OpenFile(path, width));
    Blocks all;
    all.tokens = file->size() / width;
    all.width = width;
    HT_ASSIGN_OR_RETURN(const Largest largest, FindLargest(*file, all));
    facts.push_back({name,
                     absl::StrCat("u", 8 * width, " tokens"),
                     {{"tokens", all.tokens},
                      {"largest", largest.id},
                      {"largest_at", largest.at}}});
  }
  return facts;
}

}  // namespace runtime
}  // namespace halftone
