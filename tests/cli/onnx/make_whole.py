"""Writes whole.onnx: ids % 1000, of whole numbers."""
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Mod", ["ids", "thousand"], ["rest"])], "whole",
    [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", 3])],
    [helper.make_tensor_value_info("rest", TensorProto.INT64, ["N", 3])],
    [helper.make_tensor("thousand", TensorProto.INT64, [], [1000])])
onnx.save(
    helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
    "whole.onnx")
