#!/bin/bash
# Libraries with something wrong: each is refused with the right exit code and a
# text that says what and where, and nothing else breaks.
set -eu
. tests/op_library/library.sh
level=-O0

# wrong NAME CODE TEXT: `halftone ops` with NAME.cc, made of stdin.
wrong() {
  cat >"$1.cc"
  build "$1"
  refused "$2" "$3" "$halftone" ops --op-library "./lib$1.so"
  grep -qF "lib$1.so" error.txt || fail "$1: the file is not named"
  [ ! -s out.txt ] || fail "$1: something is shown"
}
# One op with its slots as they should be; $1 and $2 go behind it and before it.
op() {
  cat <<END
#include <cstdlib>
#include <stdexcept>
#include "kernels/plugin/halftone_op.h"
namespace ho = halftone::op;
void Copy(ho::Call& call) {
  for (int64_t i = 0; i < call.elements(); ++i) {
    call.Output<float>(0)[i] = call.Input<float>(0)[i];
  }
}
${2:-}
HALFTONE_OP_LIBRARY("mine", "1.0", library) {
  auto& op = library.Op("${3:-my_copy}", "Out = X.");
  op.TypeVar("T", {ho::kF32}).In("X", "T").Out("Out", "T");
  $1
}
END
}
good='op.Amp(ho::kGray).Infer(ho::SameDims);'
run='op.Kernel(ho::kCpu, {ho::kF32}, Copy);'

# ---- The file.
refused 9 'nowhere.so' "$halftone" ops --op-library nowhere.so
echo text >libtext.so
refused 1 'cannot be loaded' "$halftone" ops --op-library ./libtext.so
refused 1 'no symbol HalftoneOpLibraryEntry' "$halftone" ops --op-library \
  "$(gcc -print-file-name=libm.so.6)"
echo 'int there() { return 1; }' >needed.cc
g++ -shared -fPIC needed.cc -o libneeded.so
op "$good $run library.Op(\"x\", \"\").Version(there());" 'int there();' \
  >needs.cc
g++ -std=c++17 -shared -fPIC -I include needs.cc -L. -lneeded -o libneeds.so
rm libneeded.so
refused 9 'libneeded.so' "$halftone" ops --op-library ./libneeds.so

# ---- Loading it.
op "$good $run" \
  'struct T { T() { throw std::runtime_error("no luck today"); } } thrower;' |
  wrong throws 1 'no luck today'
op "$good $run" 'struct T { T() { throw 7; } } thrower;' |
  wrong throws7 1 'what is no std::exception'
op "$good $run" 'struct T { T() { std::abort(); } } aborts;' |
  wrong aborts 1 'ends the process while it is loaded: Aborted'
op "$good $run" 'struct T { T() { std::_Exit(0); } } exits;' |
  wrong exits 1 'ends the process while it is loaded: exit(0)'
op "$good $run throw ho::Error(\"not on Mondays\");" |
  wrong declares 1 'throws while it declares its ops: not on Mondays'

# ---- Versions and sizes.
# other NAME SED: a library made with another header.
header=include/kernels/plugin/halftone_op_abi.h
other() {
  op "$good $run" >"$1.cc"
  cp $header kept.h
  sed -i "$2" $header
  ! cmp -s $header kept.h || fail "$1: no other header"
  build "$1"
  cp -f kept.h $header
}
other newer 's/#define HALFTONE_OP_ABI 1 /#define HALFTONE_OP_ABI 2 /'
refused 1 'made for version 2 of halftone_op.h, this program has version 1' \
  "$halftone" ops --op-library ./libnewer.so
other longer 's/  int32_t deterministic;/  int32_t more[9], deterministic;/'
refused 1 'structs have other sizes' "$halftone" ops --op-library ./liblonger.so
cat >empty.cc <<'END'
extern "C" const void* HalftoneOpLibraryEntry(unsigned) { return nullptr; }
END
build empty
refused 1 'gives no library of ops' "$halftone" ops --op-library ./libempty.so

# ---- Declarations.
op "$good $run" '' relu | wrong clash 1 "op relu: there is one already"
op "$good $run" '' matmul_v2 | wrong alias 1 'op matmul_v2: there is one already'
op "$good $run" '' 'my copy' | wrong blank 1 'expected a name of letters'
op "$good op.In(\"1x\", \"T\");" | wrong slot 1 'input 1: expected a name'
op "$good op.In(\"X\", \"T\");" | wrong twice 1 'two inputs are named X'
op "$good op.In(\"Y\", \"U\");" | wrong type 1 'slot Y has type U'
op "op.Infer(ho::SameDims); $run" | wrong amp 1 'no class for mixed precision'
op "op.Amp(ho::kGray); $run" | wrong infer 1 'no shape rule'
op "$good op.Kernel(ho::kCpu, {ho::kF32}, nullptr);" |
  wrong null 1 'kernel 0 (cpu): expected a function, found null'
op "$good op.Kernel(\"tpu\", {ho::kF32}, Copy);" |
  wrong device 1 'expected the device cpu or cuda, found "tpu"'
op "$good op.Kernel(ho::kCpu, {ho::kF16}, Copy);" |
  wrong dtype 1 'type variable T does not allow dtype 2'
op "$good op.Kernel(ho::kCpu, {}, Copy);" |
  wrong dtypes 1 'expected a dtype for each of 1 type variables, found 0'
op "$good op.Gradient(ho::GradientOp(\"nowhere\").Out(\"Out\", \"X\"));" |
  wrong gradient 1 'gradient: there is no op nowhere'
op "$good op.Gradient(ho::GradientOp(\"scale\").In(\"Z\", ho::OutGrad(\"Out\"))
    .Out(\"Out\", \"X\"));" | wrong gradslot 1 'scale has no input slot Z'
op "$good op.Gradient(ho::GradientOp(\"scale\").In(\"X\", ho::OutGrad(\"Y\"))
    .Out(\"Out\", \"X\"));" | wrong gradof 1 'there is no output Y'
op "$good op.Gradient(ho::GradientOp(\"scale\").In(\"X\", ho::Temporary(\"t\"))
    .Out(\"Out\", \"X\"));" | wrong temporary 1 'there is no temporary t'

# ---- Two libraries.
op "$good $run" >one.cc
build one
op "$good $run" '' other_copy >same.cc
build same
refused 1 'there is a library mine already' "$halftone" ops \
  --op-library ./libone.so --op-library ./libsame.so
"$halftone" ops --op-library ./libone.so --op-library ./libone.so >out.txt

# ---- Calls. NET: mlp with the op of a library.
net() {
  sed "s/type: \"relu\"/type: \"my_copy\"/" "$root/models/mlp.pbtxt" >net.pbtxt
}
# called NAME CODE TEXT VERB...: NAME.cc, made of stdin, and the verb with it.
called() {
  local name=$1 code=$2 text=$3
  shift 3
  cat >"$name.cc"
  build "$name"
  refused "$code" "$text" "$halftone" "$@" --op-library "./lib$name.so"
}
net
# infers BODY TEXT
inferred=0
infers() {
  inferred=$((inferred + 1))
  op "op.Amp(ho::kGray).Infer([](ho::InferCall& call) { (void)call; $1 }); $run" |
    called "infers$inferred" 1 "$2" compile net.pbtxt --target cpu
}
infers '' 'its shape rule gives slot Out no dims'
infers 'throw ho::Error("X is too wide");' 'its shape rule says: X is too wide'
infers 'call.Output(0).rank = 99;' 'gives slot Out 99 dims; expected 0 to 16'
infers 'call.Output(0).rank = 1; call.Output(0).dims[0] = ho::Constant(-3);' \
  'gives slot Out the size -3 in dim 0'
infers 'call.Output(0).rank = 1; call.Output(0).dims[0].coefficient = 1;
        call.Output(0).dims[0].power[7] = 1;' 'by a symbol that no input has'
infers 'call.Input(3);' 'its shape rule says: no such value in slot 3'
infers 'call.Inputs(1);' 'its shape rule says: no such slot: 1'
infers 'call.Outputs(-1);' 'its shape rule says: no such slot: -1'
infers 'call.Int("n");' 'no such attribute of this kind: n'
op "$good" | called nokernel 1 'no kernel' compile net.pbtxt --target cpu
gradient='op.Gradient(ho::GradientOp("assign").In("X", ho::OutGrad("Out"))
    .Out("Out", "X"));'
op "$good $gradient op.Kernel(ho::kCpu, {ho::kF32}, [](ho::Call&) {
      throw ho::Error(\"out of ink\");
    });" | called kernel 1 'its kernel says: out of ink' run net.pbtxt --target \
  cpu --set optimizer.sgd.weight_decay=0 --batch-size 64 --data synthetic --epochs 1
op "$good $gradient op.Kernel(ho::kCpu, {ho::kF32}, Copy,
    [](ho::Call&) { return int64_t{-8}; });" |
  called workspace 1 'wants -8 bytes of workspace' run net.pbtxt --target cpu \
    --set optimizer.sgd.weight_decay=0 --batch-size 64 --data synthetic --epochs 1
op "$good $gradient op.Kernel(ho::kCpu, {ho::kF32}, Copy,
    [](ho::Call&) { return INT64_MAX - 5000; });" |
  called greedy 6 'wants 9223372036854770807 bytes of workspace' plan \
    net.pbtxt --target cpu --set optimizer.sgd.weight_decay=0 --batch-size 64
op "$good $gradient $run" >fine.cc
build fine
"$halftone" run net.pbtxt --target cpu --set optimizer.sgd.weight_decay=0 --batch-size 64 \
  --data synthetic --epochs 1 --op-library ./libfine.so >fine.txt 2>&1 || {
  cat fine.txt
  fail 'what is right does not run'
}

# ---- Another version than a model was compiled with.
"$halftone" compile net.pbtxt --target cpu --op-library ./libfine.so -o net.htc \
  >out.txt
sed 's/"mine", "1.0"/"mine", "2.0"/' fine.cc >later.cc
build later
refused 1 'compiled with the op library mine 1.0, found 2.0' "$halftone" inspect \
  net.htc --op-library ./liblater.so
sed 's/op.Amp/op.Version(2).Amp/' fine.cc >meaning.cc
build meaning
refused 1 'version 1 of op my_copy' "$halftone" inspect net.htc \
  --op-library ./libmeaning.so
