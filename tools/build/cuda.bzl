"""CUDA code: nvcc for each *.cu, the project's flags, CcInfo for the rest.

    load("//tools/build:cuda.bzl", "halftone_cuda_library")

    halftone_cuda_library(
        name = "cuda",
        deps = ["//runtime/device/cuda", "@cuda//:runtime"],
    )

Without a toolkit (third_party/cuda.bzl) these targets are incompatible, and
left out of `//...` with all that depends on them.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:config.bzl", "ARCHITECTURES", "CUDA_FOUND", "NVCC")
load("//tools/build:defs.bzl", "halftone_library")

_ONLY = [] if CUDA_FOUND else ["@cuda//:toolkit"]

_FLAGS = [
    "-O3",
    "-std=c++17",
    # Nothing is contracted on the device either: kernels/functors give the
    # CPU's bits, so that a CPU test covers the arithmetic of both. These
    # kernels wait for memory; what multiplies matrices is in libraries.
    "-fmad=false",
    # Constexpr functions (std::min, numeric limits) are callable on the device.
    "--expt-relaxed-constexpr",
    "-Werror=all-warnings",
    "-Xcompiler=-fPIC,-Wall,-Werror",
]

# The host's flags of .bazelrc; the standard is nvcc's own flag, and warnings
# are not for the code that nvcc generates.
def _host_flags(fragment):
    flags = fragment.copts + fragment.cxxopts
    return [
        "-Xcompiler=" + flag.replace(",", "\\,")
        for flag in flags
        if not flag.startswith("-std=") and not flag.startswith("-W")
    ]

# nvcc has no -iquote, and finds the toolkit's own headers by itself.
def _include_flags(context):
    paths = depset(transitive = [
        context.quote_includes,
        context.includes,
        context.system_includes,
    ]).to_list()
    return ["-I."] + [
        "-I" + path
        for path in paths
        if path != "." and not path.startswith("external/cuda/")
    ]

def _compile(ctx, toolchain, source, inputs, flags):
    stem = source.basename[:-len(".cu")]
    output = ctx.actions.declare_file(
        "_objs/%s/%s.pic.o" % (ctx.label.name, stem),
    )
    arguments = ctx.actions.args()
    arguments.add_all(["-c", source, "-o", output, "-x", "cu"])
    arguments.add("-ccbin", toolchain.compiler_executable)
    arguments.add_all(flags)
    ctx.actions.run_shell(
        # nvcc names its temporary files after its process, and in sandboxes
        # with process numbers of their own all nvccs have the same.
        command = """set -e
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
""",
        arguments = [NVCC, arguments],
        inputs = depset([source], transitive = inputs),
        outputs = [output],
        tools = toolchain.all_files,
        # nvcc calls its own parts and the host's compiler and assembler.
        env = {"PATH": NVCC.rpartition("/")[0] + ":/usr/bin:/bin"},
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s for the GPU" % source.short_path,
    )
    return output

def _cuda_objects_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    own = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    merged = cc_common.merge_cc_infos(
        direct_cc_infos = [CcInfo(compilation_context = own)],
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    )
    context = merged.compilation_context
    flags = _FLAGS + ARCHITECTURES + _host_flags(ctx.fragments.cpp)
    flags += _include_flags(context)
    flags += ["-D" + define for define in context.defines.to_list()]
    flags += ctx.attr.copts
    objects = [
        _compile(ctx, toolchain, source, [context.headers], flags)
        for source in ctx.files.srcs
    ]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            pic_objects = depset(objects),
        ),
        linking_contexts = [merged.linking_context],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"], mandatory = True),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(doc = "for nvcc, after the project's"),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    doc = """Compiles each of `srcs` to a .pic.o of its own. Its default output
    are these objects, its CcInfo a library of them; kernels are called through
    host functions only, so that there is nothing to link on the device.""",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def halftone_cuda_library(
        name,
        deps = [],
        srcs = None,
        hdrs = None,
        exclude = [],
        cuda_copts = [],
        **kwargs):
    """A folder with CUDA code as one library: its *.cu, *.cc and headers.

    Args:
      name: the folder's name.
      deps: of *.cu and *.cc alike; `@cuda//:runtime` for whatever calls CUDA.
      srcs: *.cu and *.cc; default all but tests, benchmarks and *_main.cc.
      hdrs: default all *.h and *.cuh.
      exclude: files and patterns that the defaults leave out.
      cuda_copts: for nvcc, after the project's.
      **kwargs: as for halftone_library, which makes the library.
    """
    if srcs == None:
        srcs = native.glob(
            ["*.cc", "*.cu"],
            exclude = [
                "*_test.cc",
                "*_benchmark.cc",
                "*_main.cc",
            ] + exclude,
            allow_empty = True,
        )
    if hdrs == None:
        hdrs = native.glob(
            ["*.h", "*.cuh"],
            exclude = exclude,
            allow_empty = True,
        )
    kernels = [source for source in srcs if source.endswith(".cu")]
    objects = []
    if kernels:
        cuda_objects(
            name = name + "_cu",
            testonly = kwargs.get("testonly", False),
            srcs = kernels,
            hdrs = hdrs,
            copts = cuda_copts,
            target_compatible_with = _ONLY,
            visibility = ["//visibility:private"],
            deps = deps,
        )
        objects.append(":" + name + "_cu")
    halftone_library(
        name = name,
        srcs = [s for s in srcs if s.endswith(".cc")] + objects,
        hdrs = [h for h in hdrs if h.endswith(".h")],
        textual_hdrs = [h for h in hdrs if h.endswith(".cuh")],
        linkstatic = True,  # all of it ends in one shared library
        target_compatible_with = _ONLY,
        deps = deps,
        **kwargs
    )

def _header_stamp_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = [
        header
        for header in depset(
            ctx.files.hdrs,
            transitive = [context.headers for context in contexts],
        ).to_list()
        if not header.path.startswith("external/")
    ]
    arguments = ctx.actions.args()
    arguments.add_all(headers)
    arguments.use_param_file("%s", use_always = True)
    arguments.set_param_file_format("multiline")
    ctx.actions.run_shell(
        command = """set -e
stamp=$(sort "$3" | xargs cat | sha256sum | cut -c1-16)
printf '// Written by tools/build/cuda.bzl.\\n#define %s "%s"\\n' \\
    "$1" "$stamp" > "$2"
""",
        arguments = [ctx.attr.macro, ctx.outputs.out.path, arguments],
        inputs = headers,
        outputs = [ctx.outputs.out],
        mnemonic = "HeaderStamp",
    )

header_stamp = rule(
    implementation = _header_stamp_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "macro": attr.string(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = """A header that defines `macro` as a checksum of `hdrs` and of all
    headers of `deps` in this project: what is passed between a binary and a shared library that
    is opened at run time is laid out alike if both have the same.""",
)

def _output_of_impl(ctx):
    ctx.actions.run_shell(
        command = "\"$1\" > \"$2\"",
        arguments = [ctx.executable.tool.path, ctx.outputs.out.path],
        tools = [ctx.executable.tool],
        outputs = [ctx.outputs.out],
        mnemonic = "OutputOf",
    )

output_of = rule(
    implementation = _output_of_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        # A genrule's tool would be compiled once more, for the host.
        "tool": attr.label(cfg = "target", executable = True, mandatory = True),
    },
    doc = "What `tool` prints, as a file.",
)
