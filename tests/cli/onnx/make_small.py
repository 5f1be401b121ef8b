"""Writes small.onnx, as PyTorch exports it for training, with inputs and what
PyTorch makes of them in a test."""
import numpy as np
import torch


class Small(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(3)
        self.drop = torch.nn.Dropout(0.25)
        self.fc = torch.nn.Linear(48, 5)

    def forward(self, x):
        x = torch.nn.functional.relu(self.norm(self.conv(x)))
        x = torch.nn.functional.max_pool2d(x, 2)
        # Its sizes are a sub-graph of shapes.
        x = x.view(x.size(0), x.size(1) * x.size(2) * x.size(3))
        return self.fc(self.drop(x) * 0.5)


torch.manual_seed(0)
net = Small()
net(torch.randn(32, 1, 8, 8))  # running statistics
x = torch.randn(8, 1, 8, 8)
torch.onnx.export(net, (x,),
                  "small.onnx",
                  opset_version=17,
                  dynamo=False,
                  input_names=["x"],
                  output_names=["logits"],
                  dynamic_axes={"x": {0: "batch"}},
                  training=torch.onnx.TrainingMode.TRAINING,
                  do_constant_folding=False)
label = np.arange(8, dtype=np.int64) % 5
np.savez("small.npz", x=x.numpy(), label=label)
np.savez("small_expected.npz", logits=net.eval()(x).detach().numpy())
