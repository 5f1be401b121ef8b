# What the tests of libraries of ops share: a folder to work in, the headers as a
# user has them, `build NAME` for NAME.cc.
root=$PWD
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
cd "$work"
mkdir -p include/kernels
cp -RL "$root/kernels/plugin" include/kernels/plugin
chmod -R u+w include
halftone=$root/tools/halftone
data=idx:$root/models/digits

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
build() {
  local name=$1
  shift
  g++ -std=c++17 "${level:--O2}" -fPIC -shared -I include "$@" "$name.cc" -o "lib$name.so"
}
page() {
  sed -n '/^```cpp$/,/^```$/p' "$root/docs/op_library.md" | sed '1d;$d'
}
# refused CODE TEXT COMMAND...: it ends with the code and says the text.
refused() {
  local code=0 expected=$1 text=$2
  shift 2
  "$@" >out.txt 2>error.txt || code=$?
  [ $code = "$expected" ] || {
    cat error.txt
    fail "expected exit $expected, found $code: $*"
  }
  grep -qF -- "$text" error.txt || {
    cat error.txt
    fail "expected \"$text\": $*"
  }
}
