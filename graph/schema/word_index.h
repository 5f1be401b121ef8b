// The places of an op's few words: its slots and attributes, by name.
#ifndef HALFTONE_GRAPH_SCHEMA_WORD_INDEX_H_
#define HALFTONE_GRAPH_SCHEMA_WORD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {

// An op that is made asks for each of its slots and attributes by name. Most
// words are of eight characters or fewer: a number stands for them.
class WordIndex {
 public:
  void Add(absl::string_view word) {
    words_.push_back({HeadOf(word), std::string(word)});
  }
  // Which one it was of those added, from 0 on; -1: none.
  int Find(absl::string_view word) const {
    const uint64_t head = HeadOf(word);
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].head == head && words_[i].text.size() == word.size() &&
          (word.size() <= kHead || words_[i].text == word)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

 private:
  static constexpr size_t kHead = 8;

  struct Word {
    uint64_t head;
    std::string text;
  };

  // The first eight characters; of a shorter word all, some of them twice.
  static uint64_t HeadOf(absl::string_view word) {
    const char* const data = word.data();
    const size_t size = word.size();
    if (size >= kHead) return Load<uint64_t>(data);
    if (size >= 4) {
      return Load<uint32_t>(data) |
             static_cast<uint64_t>(Load<uint32_t>(data + size - 4)) << 32;
    }
    if (size == 0) return 0;
    return Load<uint8_t>(data) | Load<uint8_t>(data + size / 2) << 8 |
           Load<uint8_t>(data + size - 1) << 16;
  }
  template <typename T>
  static T Load(const char* from) {
    T loaded;
    std::memcpy(&loaded, from, sizeof(loaded));
    return loaded;
  }

  std::vector<Word> words_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_WORD_INDEX_H_
