// PNG through libpng.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "graph/base/error.h"
#include "runtime/data/image/formats.h"

namespace halftone {
namespace runtime {
namespace {

class PngDecoder : public ImageDecoder {
 public:
  PngDecoder(absl::string_view bytes, std::string name)
      : rest_(bytes), name_(std::move(name)) {}
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  absl::Status ReadHeader();
  absl::Status Decode(const Wanted& wanted, Image* out, RealBox* box) override;

 private:
  // In each of these the library may come back to setjmp: nothing in their
  // frames has a destructor.
  bool TryHeader();
  bool TryStart();
  bool TryRows(int64_t rows);

  absl::Status Broken() const {
    if (info_ == nullptr || absl::StrContains(message_, "emory")) {
      return OutOfMemoryError(name_, ": no memory to decode it");
    }
    return ModelError(name_, ": a broken PNG picture: ", message_,
                      "; take it out, or set train.broken_samples: \"skip\"");
  }
  static PngDecoder* Self(png_structp png) {
    return static_cast<PngDecoder*>(png_get_error_ptr(png));
  }
  [[noreturn]] static void Fail(png_structp png, png_const_charp text) {
    PngDecoder* const self = Self(png);
    std::snprintf(self->message_, sizeof(self->message_), "%s", text);
    std::longjmp(self->failed_, 1);
  }
  static void Ignore(png_structp, png_const_charp) {}
  static void Take(png_structp png, png_bytep to, size_t n) {
    PngDecoder* const self = Self(png);
    if (n > self->rest_.size()) Fail(png, "its data ends early");
    std::memcpy(to, self->rest_.data(), n);
    self->rest_.remove_prefix(n);
  }

  absl::string_view rest_;
  std::string name_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf failed_;
  char message_[128] = "";
  int orientation_ = 1;
  int stored_channels_ = 0;       // 1 or 3, in 8 bits
  std::vector<png_bytep> lines_;  // where the rows go
};

bool PngDecoder::TryHeader() {
  if (setjmp(failed_) != 0) return false;
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, Fail, Ignore);
  if (png_ == nullptr) return false;
  info_ = png_create_info_struct(png_);
  if (info_ == nullptr) return false;
  png_set_read_fn(png_, nullptr, Take);
  // Texts and profiles are not for us: they unpack to any size.
  static constexpr png_byte kLeft[] = "iCCP\0iTXt\0sPLT\0tEXt\0zTXt";
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kLeft, 5);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(png_, 1 << 20);
  png_read_info(png_, info_);
  return true;
}

absl::Status PngDecoder::ReadHeader() {
  if (!TryHeader()) return Broken();
  width_ = png_get_image_width(png_, info_);
  height_ = png_get_image_height(png_, info_);
  png_bytep exif = nullptr;
  png_uint_32 exif_bytes = 0;
  if (png_get_eXIf_1(png_, info_, &exif_bytes, &exif) != 0) {
    orientation_ = OrientationOf(
        absl::string_view(reinterpret_cast<const char*>(exif), exif_bytes));
  }
  if (orientation_ >= 5) std::swap(width_, height_);
  return absl::OkStatus();
}

bool PngDecoder::TryStart() {
  if (setjmp(failed_) != 0) return false;
  png_set_expand(png_);
  png_set_scale_16(png_);
  png_set_strip_alpha(png_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  stored_channels_ = png_get_channels(png_, info_);
  return true;
}

bool PngDecoder::TryRows(int64_t rows) {
  if (setjmp(failed_) != 0) return false;
  if (png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE) {
    png_read_image(png_, lines_.data());
    return true;
  }
  for (int64_t y = 0; y < rows; ++y) png_read_row(png_, lines_[y], nullptr);
  return true;
}

// Gray to RGB or back.
void SetChannels(int channels, Image* image) {
  if (image->channels == channels) return;
  Image other;
  other.Resize(image->width, image->height, channels);
  const uint8_t* from = image->pixels.data();
  for (uint8_t *to = other.pixels.data(), *end = to + other.pixels.size();
       to < end; to += channels, from += image->channels) {
    if (channels == 1) {
      *to = LumaOf(from[0], from[1], from[2]);
    } else {
      std::fill_n(to, channels, *from);
    }
  }
  *image = std::move(other);
}

absl::Status PngDecoder::Decode(const Wanted& wanted, Image* out,
                                RealBox* box) {
  if (!TryStart()) return Broken();
  const bool swapped = orientation_ >= 5;
  // Rows come from the top; those below what is wanted are left.
  const bool whole = orientation_ != 1 ||
                     png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE;
  const int64_t stored_height = swapped ? width_ : height_;
  const int64_t rows = whole ? stored_height : wanted.box.y + wanted.box.height;
  out->Resize(swapped ? height_ : width_, rows, stored_channels_);
  lines_.resize(rows);
  for (int64_t y = 0; y < rows; ++y) lines_[y] = out->row(y);
  if (!TryRows(rows)) return Broken();
  SetChannels(wanted.channels, out);
  TurnUpright(orientation_, out);
  *box = {static_cast<double>(wanted.box.x), static_cast<double>(wanted.box.y),
          static_cast<double>(wanted.box.width),
          static_cast<double>(wanted.box.height)};
  return absl::OkStatus();
}

}  // namespace

bool IsPng(absl::string_view bytes) {
  return absl::StartsWith(bytes, absl::string_view("\x89PNG\r\n\x1a\n", 8));
}

absl::StatusOr<std::unique_ptr<ImageDecoder>> OpenPng(absl::string_view bytes,
                                                      std::string name) {
  auto decoder = std::make_unique<PngDecoder>(bytes, std::move(name));
  HT_RETURN_IF_ERROR(decoder->ReadHeader());
  return decoder;
}

}  // namespace runtime
}  // namespace halftone
