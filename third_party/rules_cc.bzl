"""rules_cc for Bazel 4.2.3: the built-in rules under their loadable names.

Debian's own rules_cc package wants a symbol that this Bazel does not have.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
