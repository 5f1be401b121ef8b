#include "runtime/data/image_scan.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "runtime/data/image/decoder.h"

namespace halftone {
namespace runtime {
namespace {

absl::Status DecodeAll(absl::string_view bytes, const std::string& name,
                       int64_t max_unpack, Image* image) {
  HT_ASSIGN_OR_RETURN(const auto decoder, OpenImage(bytes, name, max_unpack));
  RealBox box;
  const int64_t width = decoder->width(), height = decoder->height();
  return decoder->Decode({{0, 0, width, height}, 3, width, height}, image,
                         &box);
}

// What one thread has seen; sums are whole numbers, so that their order does
// not matter.
struct Seen {
  ImageScan scan;
  std::array<uint64_t, 3> sums = {};
  uint64_t pixels = 0;

  void Add(int64_t label, const Image& image) {
    ++scan.readable[label];
    Widen(image.width, image.height, image.width, image.height);
    pixels += image.pixels.size() / 3;
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      for (int c = 0; c < 3; ++c) sums[c] += image.pixels[i + c];
    }
  }

  void Widen(int64_t least_width, int64_t least_height, int64_t most_width,
             int64_t most_height) {
    const bool first = pixels == 0;
    const auto least = [first](int64_t& of, int64_t n) {
      of = first ? n : std::min(of, n);
    };
    least(scan.least_width, least_width);
    least(scan.least_height, least_height);
    scan.most_width = std::max(scan.most_width, most_width);
    scan.most_height = std::max(scan.most_height, most_height);
  }

  void Add(Seen other) {
    if (other.pixels > 0) {
      Widen(other.scan.least_width, other.scan.least_height,
            other.scan.most_width, other.scan.most_height);
    }
    pixels += other.pixels;
    for (int c = 0; c < 3; ++c) sums[c] += other.sums[c];
    for (const auto& [label, n] : other.scan.readable) {
      scan.readable[label] += n;
    }
    for (BrokenImage& image : other.scan.broken) {
      scan.broken.push_back(std::move(image));
    }
  }
};

}  // namespace

int64_t ImageScan::count() const {
  int64_t n = 0;
  for (const auto& [label, images] : readable) n += images;
  return n;
}

absl::StatusOr<ImageScan> ScanImages(
    const ImageSource& source, int workers, int64_t max_unpack, int process,
    int processes, const std::function<void(int64_t)>& on_progress,
    bool to_the_end) {
  Seen all;
  absl::Status failed;
  std::mutex mutex;
  std::atomic<int64_t> next{process};
  const auto scan = [&](Seen& seen, bool tells) -> absl::Status {
    std::string storage;
    Image image;
    for (int64_t i; (i = next.fetch_add(processes)) < source.size();) {
      if (tells && on_progress) on_progress(i / processes);
      const auto bytes = source.Read(i, &storage);
      if (!bytes.ok() && !to_the_end) return bytes.status();
      const absl::Status status =
          bytes.ok() ? DecodeAll(*bytes, source.Name(i), max_unpack, &image)
                     : bytes.status();
      if (status.ok()) {
        seen.Add(source.Label(i), image);
      } else if (ExitCodeOf(status) == ExitCode::kModel) {
        seen.scan.broken.push_back({i, std::string(status.message())});
      } else {
        return status;
      }
    }
    return absl::OkStatus();
  };
  const auto work = [&](bool tells) {
    const Doing doing("decoding all pictures");
    Seen seen;
    const absl::Status status = scan(seen, tells);
    if (!status.ok()) next = source.size();
    const std::lock_guard<std::mutex> lock(mutex);
    all.Add(std::move(seen));
    failed.Update(status);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) threads.emplace_back(work, false);
  work(/*tells=*/true);
  for (std::thread& thread : threads) thread.join();
  HT_RETURN_IF_ERROR(failed);
  std::sort(all.scan.broken.begin(), all.scan.broken.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  for (int c = 0; c < 3 && all.pixels > 0; ++c) {
    all.scan.mean[c] =
        static_cast<double>(all.sums[c]) / static_cast<double>(all.pixels);
  }
  return all.scan;
}

}  // namespace runtime
}  // namespace halftone
