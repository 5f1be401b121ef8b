"""Writes recurrent.onnx, as PyTorch exports it, with inputs and what PyTorch
makes of them: each kind of layer, both directions, two layers, samples first."""
import numpy as np
import torch


class Recurrent(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 4, 2, batch_first=True,
                                  bidirectional=True)
        self.gru = torch.nn.GRU(8, 3, batch_first=True)
        self.rnn = torch.nn.RNN(3, 3, batch_first=True, nonlinearity="relu")
        self.fc = torch.nn.Linear(6, 2)

    def forward(self, x):
        y, _ = self.gru(self.lstm(x)[0])
        y, last = self.rnn(y)
        return self.fc(torch.cat([y[:, 0], last[0]], 1))


torch.manual_seed(0)
net = Recurrent().eval()
x = torch.randn(6, 5, 3)
torch.onnx.export(net, (x,),
                  "recurrent.onnx",
                  opset_version=17,
                  dynamo=False,
                  input_names=["x"],
                  output_names=["logits"],
                  dynamic_axes={"x": {0: "batch"}})
np.savez("recurrent.npz", x=x.numpy())
np.savez("recurrent_expected.npz", logits=net(x).detach().numpy())
