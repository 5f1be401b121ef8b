"""@cudnn_frontend: the C++ headers of cuDNN's graph API.

Debian has no package of them. They are taken from $CUDNN_FRONTEND_HOME or
/usr/include if they are there, else from NVIDIA's wheel, once, by pip and from
the index that this machine's pip uses, pinned by its hash. Without CUDA, when
nothing is looked for, or where neither is to be had, the target is incompatible
as those of @cuda are.
"""

load("//third_party:cuda.bzl", "find_toolkit")

_VERSION = "1.32.0"
_SHA256 = "c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0"

_FETCH = """set -e
printf 'nvidia-cudnn-frontend==%s --hash=sha256:%s\\n' "$1" "$2" > pinned.txt
python3 -m pip download --quiet --no-deps --only-binary=:all: \\
    --python-version=311 --platform=manylinux_2_28_x86_64 --require-hashes \\
    --requirement=pinned.txt --dest=wheel
python3 -m zipfile -e wheel/*.whl .
rm -r wheel
"""

_BUILD = """# Header-only; include it in one .cc alone: it takes g++ half a minute.
cc_library(
    name = "cudnn_frontend",
    hdrs = glob(
        ["include/**/*.h", "include/**/*.hpp"],
        allow_empty = True,
    ),
    includes = ["include"],
    target_compatible_with =
        [] if %s else ["@cuda//:toolkit"],
    visibility = ["//visibility:public"],
    deps = ["@cuda//:cudnn"],
)
"""

def _find(ctx):
    """Makes `include`, or needs none; whether the headers are there."""
    home = ctx.os.environ.get("CUDNN_FRONTEND_HOME")
    if home and ctx.path(home + "/include/cudnn_frontend.h").exists:
        ctx.symlink(home + "/include", "include")
        return True
    if ctx.path("/usr/include/cudnn_frontend.h").exists:
        return True
    fetched = ctx.execute(["bash", "-c", _FETCH, "bash", _VERSION, _SHA256])
    return fetched.return_code == 0

def _cudnn_frontend_repository_impl(ctx):
    wanted = type(find_toolkit(ctx)) != "string"
    found = wanted and _find(ctx)
    if wanted and not found:
        # buildifier: disable=print
        print("cudnn-frontend %s cannot be fetched: " % _VERSION +
              "what uses cuDNN is left out; CUDNN_FRONTEND_HOME names a copy")
    ctx.file("BUILD", _BUILD % found)

cudnn_frontend_repository = repository_rule(
    implementation = _cudnn_frontend_repository_impl,
    environ = ["CUDA_HOME", "CUDNN_FRONTEND_HOME", "HALFTONE_CUDA", "PATH"],
)
