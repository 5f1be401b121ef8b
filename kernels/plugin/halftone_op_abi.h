// What passes between the program and a library of ops: plain C, so that
// compiler and standard library may be others than Halftone's. halftone_op.h
// makes these structs for C++; another language fills them in itself.
#ifndef HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_ABI_H_
#define HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_ABI_H_

#include <stddef.h>
#include <stdint.h>

#define HALFTONE_OP_MAGIC UINT64_C(0x31706f656e6f7468)
#define HALFTONE_OP_ABI 1  // grows with every change of a struct
#define HALFTONE_OP_ENTRY "HalftoneOpLibraryEntry"
#define HALFTONE_OP_MAX_RANK 16
#define HALFTONE_OP_MAX_SYMBOLS 8

#ifdef __cplusplus
extern "C" {
#endif

// A size: coefficient times the program's symbols (the batch B and others),
// each to a power: B*128. No symbols: a constant.
typedef struct HalftoneDim {
  int64_t coefficient;
  uint8_t power[HALFTONE_OP_MAX_SYMBOLS];
} HalftoneDim;

typedef struct HalftoneAttr {
  const char* name;
  int32_t kind;  // Kind
  int32_t size;  // of ints or floats
  int64_t i;     // of a bool or an int
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  const char* doc;  // of a declaration
} HalftoneAttr;

typedef struct HalftoneSlot {
  const char* name;
  const char* type;  // a type variable, or a dtype: "i64"
  const char* doc;
  uint32_t flags;  // SlotFlags
} HalftoneSlot;

typedef struct HalftoneTypeVar {
  const char* name;
  const int32_t* dtypes;
  int32_t dtype_count;
  const char* default_to;  // of one that no input has: another one or a dtype
} HalftoneTypeVar;

// A value that is known at compile time but for its symbols.
typedef struct HalftoneType {
  int32_t dtype;
  int32_t rank;
  HalftoneDim dims[HALFTONE_OP_MAX_RANK];
} HalftoneType;

typedef struct HalftoneTensor {
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  int64_t elements;
  int32_t channels_last;  // the physical order of a 4-d value
  void* data;             // null while there is none
} HalftoneTensor;

// Values lie flat, in the order of the slots; slot s has those from
// begin[s] up to begin[s + 1].
typedef struct HalftoneInferCall {
  const HalftoneType* inputs;
  const int32_t* input_begin;
  HalftoneType* outputs;  // rank and dims are to be set
  const int32_t* output_begin;
  const HalftoneAttr* attrs;  // all, in order of declaration
  int32_t input_slots, output_slots, attr_count;
  char* error;
  size_t error_size;
} HalftoneInferCall;

typedef struct HalftoneKernelCall {
  const HalftoneTensor* inputs;
  const int32_t* input_begin;
  const HalftoneTensor* outputs;
  const int32_t* output_begin;
  const HalftoneAttr* attrs;
  int32_t input_slots, output_slots, attr_count;
  int32_t threads;  // that a kernel on a CPU may use
  void* workspace;
  int64_t workspace_bytes;
  void* stream;  // a cudaStream_t; null on a CPU
  char* error;
  size_t error_size;
} HalftoneKernelCall;

// All return 0, or another number with a text in `error`.
typedef int32_t (*HalftoneInfer)(const HalftoneInferCall* call, void* data);
typedef int32_t (*HalftoneKernelRun)(const HalftoneKernelCall* call,
                                     void* data);
typedef int32_t (*HalftoneWorkspace)(const HalftoneKernelCall* call, void* data,
                                     int64_t* bytes);

typedef struct HalftoneKernel {
  const char* device;     // "cpu" or "cuda"
  const int32_t* dtypes;  // of the type variables, in order
  int32_t dtype_count;
  int32_t deterministic;  // whether it gives the same bits each time
  HalftoneKernelRun run;
  HalftoneWorkspace workspace;  // null: none
  void* data;
} HalftoneKernel;

// An input of a gradient's op: the slot's value or gradient.
typedef struct HalftoneGradInput {
  const char* slot;
  int32_t source;  // Source
  const char* of;  // a slot of the op, or an output named by Temporary
} HalftoneGradInput;

typedef struct HalftoneGradOutput {
  const char* slot;
  const char* gradient_of;  // an input slot, or null: a temporary
  const char* temporary;    // its name
} HalftoneGradOutput;

typedef struct HalftoneGradOp {
  const char* op;
  const HalftoneGradInput* inputs;
  const HalftoneGradOutput* outputs;
  const HalftoneAttr* attrs;
  int32_t input_count, output_count, attr_count;
  int32_t same_attrs;  // it has the op's own attributes of the same names
} HalftoneGradOp;

typedef struct HalftoneOp {
  const char* name;
  const char* doc;
  const HalftoneTypeVar* type_vars;
  const HalftoneSlot* inputs;
  const HalftoneSlot* outputs;
  const HalftoneAttr* attrs;
  const HalftoneGradOp* gradient;
  const HalftoneKernel* kernels;
  int32_t type_var_count, input_count, output_count, attr_count;
  int32_t gradient_count, kernel_count;
  int32_t version;
  int32_t amp;     // Amp
  uint32_t flags;  // OpFlags
  HalftoneInfer infer;
  void* data;
} HalftoneOp;

typedef struct HalftoneOpLibrary {
  uint64_t magic;
  uint32_t abi;
  uint32_t op_size, kernel_size, grad_op_size, call_size, type_size;
  const char* name;
  const char* version;
  const char* error;  // not null: what went wrong while it was made
  const HalftoneOp* ops;
  int32_t op_count;
} HalftoneOpLibrary;

// The one symbol of a library; `host_abi` is the program's HALFTONE_OP_ABI.
typedef const HalftoneOpLibrary* (*HalftoneOpEntry)(uint32_t host_abi);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // HALFTONE_KERNELS_PLUGIN_HALFTONE_OP_ABI_H_
