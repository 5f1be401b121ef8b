#!/bin/bash
# What tools/package makes: an archive that runs from anywhere with libraries of
# its own, and a .deb with all that the archive has.
set -eu
root=$PWD
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
fail() { echo "package_test: $*" >&2; exit 1; }

tools/package --built "$root" "$work/out"
tar -C "$work" -xzf "$work"/out/halftone-*.tar.gz
folder=$(echo "$work"/halftone-*)
halftone=$folder/bin/halftone

# Of this machine it takes no more than every Debian has.
outside=$(ldd "$folder/lib/halftone/halftone" "$folder/lib/libhalftone.so" |
  awk '$2 == "=>" { print $3 }' | grep -v "^$folder/lib/halftone/" |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so' || true)
[ -z "$outside" ] || fail "the archive needs $outside"

# From elsewhere, without variables, with its own models.
cd "$work"
models=$folder/share/halftone/models
env -i "$halftone" compile "$models/mnist_convnet.pbtxt" \
  --strategy "$models/mnist_o1.pbtxt" -o mnist.htc >compile.txt
grep -q '^precision     O1 fp16' compile.txt || fail "compile said otherwise"
env -i "$halftone" launch --ranks 2 run mnist.htc --data "idx:$models/digits" \
  --set train.epochs=1 --out run >run.txt 2>&1 || fail "$(cat run.txt)"
env -i "$halftone" report run -o run.html
grep -q '<svg' run.html || fail "no curve in the report"

# A library with a thread sanitizer wants the program to have it, too.
if ldd "$folder/lib/libhalftone.so" | grep -q libtsan; then
  echo "package_test: skipped from here on, under a thread sanitizer"
  exit 0
fi

# A program beside it finds the archive's library, and what that needs.
cat >beside.cc <<'END'
#include "tools/command.h"
int main() { return halftone::RunCommand({"version"}); }
END
flags=$(PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config --cflags --libs halftone)
# shellcheck disable=SC2086
g++ beside.cc $flags -o beside
env -i ./beside | grep -q '^halftone ' || fail "no library beside $flags"
[[ $flags == *-rpath-link,*/halftone/lib* ]] ||
  fail "where the library's own are is not in $flags"

# The package: the same files where Debian has them, and what it needs.
deb=$(echo "$work"/out/halftone_*.deb)
dpkg-deb -x "$deb" installed
for file in lib/halftone/halftone lib/libhalftone.so bin/halftone \
  include/halftone/tools/command.h share/man/man1/halftone.1.gz \
  share/bash-completion/completions/halftone \
  share/halftone/models/mnist_o1.pbtxt share/doc/halftone/copyright; do
  [ -e "installed/usr/$file" ] || fail "the package lacks $file"
done
for package in libc6 libdnnl2 libprotobuf32; do
  dpkg-deb -f "$deb" Depends | grep -qw "$package" ||
    fail "the package depends on $(dpkg-deb -f "$deb" Depends)"
done
grep -q '^Libs: -L/usr/lib -lhalftone$' \
  installed/usr/lib/pkgconfig/halftone.pc || fail "halftone.pc is of elsewhere"
zcat installed/usr/share/man/man1/halftone.1.gz | grep -q '^.SS halftone lint$'
! grep -rIl "$work" "$folder" installed >found.txt ||
  fail "names this machine: $(cat found.txt)"

# A wrong word is no folder to write to.
code=0
"$root/tools/package" --out x 2>wrong.txt || code=$?
[ $code = 2 ] && grep -q 'unknown argument --out' wrong.txt
