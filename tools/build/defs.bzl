"""The macros that BUILD files use.

A folder is one library of all its sources and one test per *_test.cc, so that
a new file needs no BUILD edit:

    load("//tools/build:defs.bzl", "halftone_library", "halftone_tests")

    halftone_library(
        name = "ir",
        deps = ["//graph/base", "@absl//:absl"],
    )

    halftone_tests(deps = [":ir"])
"""

load("//tools/build:layers.bzl", "layer_visibility")
load("//tools/build:units.bzl", "UNIT_COPTS", "units_of")

# Language and arithmetic flags are for all code and stand in .bazelrc; these
# hold our own code to a higher standard than generated code.
_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-missing-field-initializers",
]

# precompiled.bzl says why.
def _precompiled(copts, testing = False):
    """The labels of the precompiled header for these flags: one, or none where
    they set macros as no other target does."""
    if [flag for flag in copts if flag[:2] in ("-D", "-U")]:
        return []
    if "-fopenmp" in copts:
        name = "common_of_openmp_tests" if testing else "common_of_kernels"
    else:
        name = "common_of_tests" if testing else "common"
    return ["//tools/build:" + name]

# Folders (and those below) whose code runs once a command: it takes as long with
# -O1, which compiles it in four fifths of the time.
_RUN_ONCE = [
    "graph/export",
    "graph/import",
    "graph/zoo",
    "runtime/launch",
    "runtime/report",
    "tools",
]

def _optimisation():
    for folder in _RUN_ONCE:
        if (native.package_name() + "/").startswith(folder + "/"):
            return select({
                "//tools/build:optimised": ["-O1"],
                "//conditions:default": [],
            })
    return []

# An -include has to come first.
def _all_copts(copts, precompiled):
    include = []
    for label in precompiled:
        path = label.replace("//", "").replace(":", "/")
        include += ["-include", "$(BINDIR)/" + path + ".h", "-Winvalid-pch"]
    return include + _WARNINGS + copts + _optimisation()

# Not part of a folder's library: each is a program of its own.
_PROGRAMS = [
    "*_test.cc",
    "*_benchmark.cc",
    "*_main.cc",
]

def halftone_library(
        name,
        deps = [],
        srcs = None,
        hdrs = None,
        exclude = [],
        alone = [],
        families = [],
        copts = [],
        **kwargs):
    """A cc_library of the folder's sources and headers.

    Args:
      name: the folder's name, so that `//graph/ir` finds it.
      deps: libraries whose headers are included.
      srcs: sources; default all *.cc but tests, benchmarks and *_main.cc.
      hdrs: headers; default all *.h.
      exclude: files and patterns that the defaults leave out.
      alone: sources that are never compiled together with others; `["*"]` for
        all (units.bzl).
      families: beginnings of names: sources of two are never compiled together.
      copts: flags beside the project's.
      **kwargs: as for cc_library; visibility follows tools/build/layers.bzl
        unless given.
    """
    if srcs == None:
        srcs = native.glob(["*.cc"], exclude = _PROGRAMS + exclude)
    if hdrs == None:
        hdrs = native.glob(["*.h"], exclude = exclude)
    unit_copts = []
    if type(srcs) == "list" and alone != ["*"]:
        together = [
            source
            for source in srcs
            if source.endswith(".cc") and ":" not in source and source not in alone
        ]
        rest = [source for source in srcs if source not in together]
        srcs = rest + units_of(name, together, families)
        unit_copts = UNIT_COPTS
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _all_copts(copts, _precompiled(copts)) + unit_copts,
        deps = deps + _precompiled(copts),
        **_with_visibility(kwargs)
    )

def halftone_tests(
        deps = [],
        data = [],
        size = "small",
        tags = [],
        per_test = {},
        exclude = [],
        copts = [],
        suffix = ""):
    """One cc_test, with GoogleTest's main(), for each *_test.cc of the folder.

    `foo_test.cc` becomes target `foo_test`.

    Args:
      deps: what all tests need; GoogleTest and GoogleMock come by themselves.
      data: files that all tests read.
      size: small | medium | large, the limit on a test's time.
      tags: for all tests; `gpu` and `slow` keep a test out of tools/test.
      per_test: by target name, a dict of cc_test attributes: lists are added
        to the common ones, anything else replaces them.
      exclude: files and patterns that are not tests.
      copts: flags beside the project's.
      suffix: of the targets' names, where the same tests are linked again with
        other libraries.
    """
    sources = native.glob(["*_test.cc"], exclude = exclude)
    names = [source[:-len(".cc")] for source in sources]
    for name in per_test:
        if name not in names:
            fail("per_test names %s, but there is no %s.cc" % (name, name))
    precompiled = _precompiled(copts, testing = True)
    for name in names:
        attrs = {
            "copts": _all_copts(copts, precompiled),
            "data": data,
            "deps": deps + ["@googletest//:gtest_main"] + precompiled,
            "size": size,
            "tags": tags,
        }
        for key, value in per_test.get(name, {}).items():
            if type(value) == "list" and key in attrs:
                attrs[key] = attrs[key] + [
                    item
                    for item in value
                    if item not in attrs[key]
                ]
            else:
                attrs[key] = value
        native.cc_test(name = name + suffix, srcs = [name + ".cc"], **attrs)

def older_processor_tests(tests, isas = ["AVX2", "SSE41"], size = "small", tags = []):
    """Each test again, `_avx2` and `_sse41`: as on a processor with no more.

    Args:
      tests: names of tests of this folder.
      isas: names of oneDNN's instead.
      size: as of the tests.
      tags: as of the tests.
    """
    for test in tests:
        for isa in isas:
            native.sh_test(
                name = "%s_%s" % (test, isa.lower()),
                size = size,
                srcs = ["//tools/build:with_max_isa.sh"],
                args = [isa, "$(rootpath :%s)" % test],
                data = [":" + test],
                tags = tags,
            )

def halftone_benchmarks(deps = [], data = [], exclude = []):
    """One cc_binary, with Google Benchmark's main(), per *_benchmark.cc."""
    for source in native.glob(["*_benchmark.cc"], exclude = exclude):
        native.cc_binary(
            name = source[:-len(".cc")],
            testonly = True,
            srcs = [source],
            copts = _all_copts([], _precompiled([])),
            data = data,
            deps = deps + ["@benchmark//:benchmark_main"] + _precompiled([]),
        )

def halftone_binary(name, srcs = None, deps = [], copts = [], **kwargs):
    """A cc_binary of `srcs`, by default `<name>_main.cc`."""
    native.cc_binary(
        name = name,
        srcs = [name + "_main.cc"] if srcs == None else srcs,
        copts = _all_copts(copts, _precompiled(copts)),
        deps = deps + _precompiled(copts),
        **_with_visibility(kwargs)
    )

def halftone_proto_library(name, srcs, deps = [], imports = [], **kwargs):
    """A proto_library and, as `<name>`, the C++ library of its messages.

    `proto/x.proto` is included as "proto/x.pb.h" and imported by other .proto
    files as "proto/x.proto".

    Args:
      name: the C++ library; the proto_library is `<name>_proto`.
      srcs: .proto files.
      deps: other halftone_proto_library targets that srcs import.
      imports: proto_library targets of others that srcs import.
      **kwargs: as for proto_library and cc_proto_library.
    """
    native.proto_library(
        name = name + "_proto",
        srcs = srcs,
        deps = [_proto_target(dep) for dep in deps] + imports,
        **_with_visibility(kwargs)
    )
    native.cc_proto_library(
        name = name,
        deps = [":" + name + "_proto"],
        **_with_visibility(kwargs)
    )

def _proto_target(dep):
    if ":" not in dep:
        dep += ":" + dep.rsplit("/", 1)[-1]
    return dep + "_proto"

def _with_visibility(kwargs):
    if "visibility" in kwargs:
        return kwargs
    return dict(kwargs, visibility = layer_visibility(native.package_name()))

def _generated_header_impl(ctx):
    context = ctx.attr.library[CcInfo].compilation_context
    files = [
        header
        for header in context.headers.to_list()
        if header.short_path == ctx.attr.header and not header.is_source
    ]
    return [DefaultInfo(
        files = depset(files),
        runfiles = ctx.runfiles(files = files),
    )]

generated_header = rule(
    implementation = _generated_header_impl,
    doc = "A header that a library generates, as a file.",
    attrs = {
        "header": attr.string(mandatory = True, doc = "As it is included."),
        "library": attr.label(mandatory = True, providers = [CcInfo]),
    },
)
