"""Stand-in repositories over what Debian 12 installs; nothing is downloaded
but the one header library that Debian lacks, and that only with CUDA."""

load("//third_party:cuda.bzl", "cuda_repository")
load("//third_party:cudnn_frontend.bzl", "cudnn_frontend_repository")

def _system_repository_impl(ctx):
    if not ctx.path(ctx.attr.present).exists:
        fail("%s is missing, it comes with the Debian package %s; " %
             (ctx.attr.present, ctx.attr.package) +
             "tools/install_packages installs all that is needed")
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    for source, path in ctx.attr.files.items():
        ctx.symlink(source, path)
    for target, path in ctx.attr.links.items():
        ctx.symlink(target, path)

_system_repository = repository_rule(
    implementation = _system_repository_impl,
    attrs = {
        "package": attr.string(mandatory = True),
        "present": attr.string(mandatory = True),
        "files": attr.label_keyed_string_dict(),
        "links": attr.string_dict(),
    },
    doc = """A repository made of `files` of this project and of `links` to
    absolute paths. Its C++ headers stay in /usr/include, where the compiler
    looks anyhow. `present` is a file that proves `package` is installed.""",
    local = True,
)

# repository: (Debian package, a file of it)
_LIBRARIES = {
    "absl": ("libabsl-dev", "/usr/include/absl/status/statusor.h"),
    "benchmark": ("libbenchmark-dev", "/usr/include/benchmark/benchmark.h"),
    "cli11": ("libcli11-dev", "/usr/include/CLI/CLI.hpp"),
    "gloo": ("libgloo-dev", "/usr/include/gloo/context.h"),
    "googletest": ("libgmock-dev", "/usr/include/gmock/gmock.h"),
    "libarchive": ("libarchive-dev", "/usr/include/archive.h"),
    "libcrypto": ("libssl-dev", "/usr/include/openssl/hmac.h"),
    "libdeflate": ("libdeflate-dev", "/usr/include/libdeflate.h"),
    "libjpeg": ("libjpeg-dev", "/usr/include/jpeglib.h"),
    "libpng": ("libpng-dev", "/usr/include/png.h"),
    "nlohmann_json": ("nlohmann-json3-dev", "/usr/include/nlohmann/json.hpp"),
    "onednn": ("libdnnl-dev", "/usr/include/dnnl.hpp"),
    "xxhash": ("libxxhash-dev", "/usr/include/xxhash.h"),
    "zlib": ("zlib1g-dev", "/usr/include/zlib.h"),
}

# repository: headers that its package lacks
_HEADERS = {
    "gloo": {"//third_party:gloo_memory.h": "gloo/common/memory.h"},
}

def _libraries():
    for name, (package, present) in _LIBRARIES.items():
        files = {"//third_party:%s.BUILD" % name: "BUILD"}
        files.update(_HEADERS.get(name, {}))
        _system_repository(
            name = name,
            files = files,
            package = package,
            present = present,
        )
    _system_repository(
        name = "com_google_protobuf",
        files = {"//third_party:protobuf.BUILD": "BUILD"},
        links = {
            "/usr/bin/protoc": "protoc",
            "/usr/include/google/protobuf/descriptor.proto": "google/protobuf/descriptor.proto",
        },
        package = "protobuf-compiler",
        present = "/usr/bin/protoc",
    )

def _rule_sets():
    """What Debian's Bazel 4.2.3 would otherwise download by default."""
    _system_repository(
        name = "rules_cc",
        files = {
            "//third_party:empty.BUILD": "cc/BUILD",
            "//third_party:rules_cc.bzl": "cc/defs.bzl",
        },
        package = "bazel-bootstrap",
        present = "/usr/bin/bazel",
    )
    _system_repository(
        name = "remote_coverage_tools",
        files = {"//third_party:remote_coverage_tools.BUILD": "BUILD"},
        package = "bazel-bootstrap",
        present = "/usr/bin/bazel",
    )
    for name, path in {
        "bazel_skylib": "/usr/share/bazel/tools/skylib",
        "rules_java": "/usr/share/bazel/rules/java",
        "rules_proto": "/usr/share/bazel/rules/proto",
    }.items():
        native.local_repository(name = name, path = path)

def halftone_repositories():
    """Defines every external repository of the project."""
    _libraries()
    cuda_repository(name = "cuda")
    cudnn_frontend_repository(name = "cudnn_frontend")

    # Bazel 5 to 7 fetch rule sets of their own that match their version; only
    # Debian's 4.2.3, whose version string is not a number, is given these.
    version = native.bazel_version
    if not version or version.startswith("4.") or not version[0].isdigit():
        _rule_sets()
