"""@cuda: the CUDA toolkit of this machine, if it has one.

Looked for in $CUDA_HOME, /usr/local/cuda, /usr/lib/cuda and beside the nvcc of
$PATH. Where there is none, or it lacks cuDNN or NCCL, @cuda has the same
targets, all incompatible: what depends on them is left out of `//...`, and
everything else builds. HALFTONE_CUDA=off (--repo_env) looks for nothing.
"""

# What a toolkit needs beside nvcc: (header, library, where it comes from).
_PARTS = [
    ("cuda_runtime_api.h", "libcudart_static.a", "the CUDA toolkit"),
    ("cublasLt.h", "libcublasLt.so", "libcublas-dev of the CUDA toolkit"),
    ("cudnn.h", "libcudnn.so", "cuDNN 9 (libcudnn9-dev-cuda-*)"),
    ("nvrtc.h", "libnvrtc.so", "cuda-nvrtc-dev of the CUDA toolkit"),
    ("nccl.h", "libnccl.so", "NCCL 2 (libnccl-dev)"),
]

def _homes(ctx):
    homes = []
    if ctx.os.environ.get("CUDA_HOME"):
        homes.append(ctx.os.environ["CUDA_HOME"])
    homes += ["/usr/local/cuda", "/usr/lib/cuda"]
    nvcc = ctx.which("nvcc")
    if nvcc:
        homes.append(str(nvcc.realpath.dirname.dirname))
    return homes

def _first(ctx, folders, name):
    """The first of `folders` that holds `name`."""
    for folder in folders:
        if ctx.path(folder + "/" + name).exists:
            return folder
    return None

def find_toolkit(ctx):
    """A struct(home, nvcc, include, libraries), or a string: what is missing."""
    if ctx.os.environ.get("HALFTONE_CUDA") == "off":
        return "HALFTONE_CUDA=off"
    home = _first(ctx, _homes(ctx), "bin/nvcc")
    if not home:
        return "no toolkit: no bin/nvcc in " + ", ".join(_homes(ctx))
    includes = [home + "/include", "/usr/include", "/usr/local/include"]
    libraries = [
        home + "/lib64",
        home + "/lib",
        home + "/targets/x86_64-linux/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
    ]
    found = []
    for header, library, package in _PARTS:
        folder = _first(ctx, libraries, library)
        if not folder or not _first(ctx, includes, header):
            return "%s has no %s or %s: install %s" % (
                home,
                header,
                library,
                package,
            )
        if folder not in found:
            found.append(folder)
    own = home + "/include"
    return struct(
        nvcc = home + "/bin/nvcc",
        # Headers in /usr/include are found without being told.
        include = own if ctx.path(own + "/cuda_runtime_api.h").exists else None,
        libraries = found,
    )

# What nvcc makes: machine code for each target, which also serves the smaller
# devices of its generation, and PTX of the newest, which the driver compiles
# for newer ones.
def _architectures(ctx):
    prefix = "  target.compute_capability = "
    numbers = [
        line[len(prefix):].rstrip(";")
        for line in ctx.read(ctx.attr.targets).split("\n")
        if line.startswith(prefix)
    ]
    if not numbers:
        fail("%s names no compute_capability" % ctx.attr.targets)
    return [
        "-gencode=arch=compute_%s,code=sm_%s" % (number, number)
        for number in numbers[:-1]
    ] + [
        "-gencode=arch=compute_{0},code=[sm_{0},compute_{0}]".format(numbers[-1]),
    ]

def _cuda_repository_impl(ctx):
    toolkit = find_toolkit(ctx)
    found = type(toolkit) != "string"
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.symlink(ctx.attr.build_file, "BUILD")
    if found and toolkit.include:
        ctx.symlink(toolkit.include, "include")
    config = {
        "CUDA_FOUND": found,
        "CUDA_MISSING": "" if found else toolkit,
        "NVCC": toolkit.nvcc if found else "",
        "LIBRARY_FOLDERS": toolkit.libraries if found else [],
        "ARCHITECTURES": _architectures(ctx),
    }
    ctx.file("config.bzl", "\n".join(
        ["\"\"\"Written by third_party/cuda.bzl.\"\"\""] +
        ["%s = %r" % item for item in config.items()],
    ) + "\n")

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    attrs = {
        "build_file": attr.label(default = "//third_party:cuda.BUILD"),
        "targets": attr.label(default = "//graph/targets:targets.cc"),
    },
    configure = True,
    environ = ["CUDA_HOME", "HALFTONE_CUDA", "PATH"],
    local = True,
)
