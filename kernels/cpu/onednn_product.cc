#include "kernels/cpu/onednn_product.h"

#include "graph/base/check.h"
#include "graph/base/error.h"
#include "kernels/cpu/onednn.h"

namespace halftone {
namespace kernels {
namespace {

using dnnl::memory;

memory::data_type TypeOf(DType dtype) {
  HT_CHECK(dtype == DType::kBF16 || dtype == DType::kF32, "f32 or bf16");
  return dtype == DType::kBF16 ? memory::data_type::bf16
                               : memory::data_type::f32;
}

memory::desc Describe(const Matrix& m, DType dtype) {
  return memory::desc({m.rows, m.columns}, TypeOf(dtype),
                      memory::dims{m.row_stride, m.column_stride});
}

memory Unplaced(const memory::desc& desc) {
  return memory(desc, OnednnEngine(), DNNL_MEMORY_NONE);
}

}  // namespace

OnednnProduct::OnednnProduct(const Product& product, DType operands,
                             DType out_dtype, bool repeated, int threads)
    : repeated_(repeated), stream_(OnednnEngine()) {
  OnednnUseThreads(threads);
  OnednnExpectRoom();
  const memory::desc x = Describe(product.x, operands);
  const memory::desc plain_y = Describe(product.y, operands);
  const memory::desc out = Describe(product.out, out_dtype);
  const memory::desc y = repeated
                             ? memory::desc(plain_y.dims(), TypeOf(operands),
                                            memory::format_tag::any)
                             : plain_y;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  desc_ = dnnl::matmul::primitive_desc(dnnl::matmul::desc(x, y, out), attr,
                                       OnednnEngine());
  product_ = dnnl::matmul(desc_);
  x_ = Unplaced(x);
  y_ = Unplaced(desc_.weights_desc());
  plain_y_ = Unplaced(plain_y);
  out_ = Unplaced(out);
  scratch_ = Unplaced(desc_.scratchpad_desc());
  if (repeated) pack_ = dnnl::reorder(plain_y_, y_);
}

int64_t OnednnProduct::workspace_bytes() const {
  const int64_t packed =
      repeated_ ? static_cast<int64_t>(desc_.weights_desc().get_size()) : 0;
  return runtime::Aligned(packed) +
         static_cast<int64_t>(desc_.scratchpad_desc().get_size());
}

absl::Status OnednnProduct::Pack(const void* y, void* workspace) {
  plain_y_.set_data_handle(const_cast<void*>(y));
  y_.set_data_handle(workspace);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, plain_y_.get()},
                                       {DNNL_ARG_TO, y_.get()}};
  return Execute(pack_, arguments, 2);
}

absl::Status OnednnProduct::Run(const void* x, const void* y, void* out,
                                void* workspace) {
  if (!ran_) OnednnExpectRoom();
  ran_ = true;
  x_.set_data_handle(const_cast<void*>(x));
  out_.set_data_handle(out);
  if (!repeated_) y_.set_data_handle(const_cast<void*>(y));
  const int64_t packed =
      repeated_ ? static_cast<int64_t>(desc_.weights_desc().get_size()) : 0;
  scratch_.set_data_handle(static_cast<char*>(workspace) +
                           runtime::Aligned(packed));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, x_.get()},
                                       {DNNL_ARG_WEIGHTS, y_.get()},
                                       {DNNL_ARG_DST, out_.get()},
                                       {DNNL_ARG_SCRATCHPAD, scratch_.get()}};
  return Execute(product_, arguments, 4);
}

absl::Status OnednnProduct::Execute(const dnnl::primitive& primitive,
                                    const dnnl_exec_arg_t* arguments,
                                    int count) {
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), stream_.get(), count, arguments);
  if (status == dnnl_success) return absl::OkStatus();
  if (status == dnnl_out_of_memory) {
    return OutOfMemoryError("a product: oneDNN has no memory left");
  }
  return DeviceError("a product: oneDNN failed with status ", int{status});
}

}  // namespace kernels
}  // namespace halftone
