"""Nets as a user of Paddle 2.6 writes them, for the scripts beside it.

NETS: by name, what builds the net in the default main program and returns its
loss and its feeds' arrays, STEPS batches of BATCH samples. Without dropout's
draws where "train" is to be compared: DROPOUT.
"""
import numpy
import paddle
from paddle import nn
from paddle.nn import functional as F

BATCH, STEPS = 4, 3
DROPOUT = {"rate": 0.1}
NETS = {}
CUSTOM = {}  # by net: the lists that it is rewritten with
# Nets with ops of Paddle's that are several of ours, so that precisions are not
# to be compared op by op.
IN_PARTS = []


def net(make):
    NETS[make.__name__] = make
    return make


def in_parts(make):
    IN_PARTS.append(make.__name__)
    return net(make)


class Feeds(dict):
    """Data variables and arrays for them."""

    def __init__(self):
        super().__init__()
        self.random = numpy.random.RandomState(0)

    def floats(self, name, *dims):
        array = self.random.randn(BATCH * STEPS, *dims).astype("float32")
        return self.add(name, array)

    def classes(self, name, count, *dims):
        array = self.random.randint(0, count, (BATCH * STEPS, *dims))
        return self.add(name, array)

    def add(self, name, array):
        self[name] = array
        return paddle.static.data(name, [-1, *array.shape[1:]],
                                  str(array.dtype))


def drop(x):
    return F.dropout(x, DROPOUT["rate"])


def block(x, width, conv=nn.Conv2D, norm=nn.BatchNorm2D):
    """Two convolutions, each with its norm and relu."""
    for _ in range(2):
        x = conv(x.shape[1], width, 3, padding=1)(x)
        x = F.relu(norm(width)(x))
    return x


def unet(x, classes, conv, norm, up, pool, widths=(4, 8, 16)):
    skips = []
    for width in widths[:-1]:
        x = block(x, width, conv, norm)
        skips.append(x)
        x = pool(x, 2, 2)
    x = block(x, widths[-1], conv, norm)
    for width, skip in zip(widths[-2::-1], skips[::-1]):
        x = up(x.shape[1], width, 2, 2)(x)
        x = block(paddle.concat([skip, x], 1), width, conv, norm)
    return conv(x.shape[1], classes, 1)(x)


@net
def unet2d():
    f = Feeds()
    x = unet(f.floats("image", 3, 16, 16), 3, nn.Conv2D, nn.BatchNorm2D,
             nn.Conv2DTranspose, F.max_pool2d)
    return F.cross_entropy(x, f.classes("label", 3, 1, 16, 16), axis=1), f


@in_parts
def channels_last():
    f = Feeds()
    x = f.floats("image", 12, 12, 3)
    for width in (8, 16):
        y = nn.Conv2D(x.shape[-1], width, 3, padding="SAME",
                      data_format="NHWC")(x)
        y = F.relu(nn.BatchNorm2D(width, data_format="NHWC")(y))
        y = nn.Conv2D(width, width, 3, padding=1, data_format="NHWC")(y)
        short = nn.Conv2D(x.shape[-1], width, 1, data_format="NHWC")(x)
        x = F.max_pool2d(F.relu(y + short), 2, 2, data_format="NHWC")
    x = paddle.concat([x, F.relu6(x)], -1)
    x = F.adaptive_avg_pool2d(x, 1, data_format="NHWC")
    x = nn.Linear(32, 3)(paddle.flatten(x, 1))
    return F.cross_entropy(x, f.classes("label", 3, 1)), f


def upsampled(channels, width, _kernel, scale):
    conv = nn.Conv2D(channels, width, 1)
    return lambda x: conv(
        F.interpolate(x, scale_factor=scale, mode="bilinear"))


@net
def unet2d_bilinear():
    """With a residual in each block, cropped skips and a Dice loss."""
    f = Feeds()
    x = f.floats("image", 1, 16, 16)
    label = f.floats("mask", 1, 16, 16)
    x = unet(x, 1, nn.Conv2D, nn.BatchNorm2D, upsampled, F.avg_pool2d)
    x = F.sigmoid(x)
    label = paddle.cast(label > 0, "float32")
    overlap = (x * label).sum(axis=[1, 2, 3])
    total = x.sum(axis=[1, 2, 3]) + label.sum(axis=[1, 2, 3])
    dice = (2 * overlap + 1) / (total + 1)
    return (1 - dice).mean(), f


@net
def unet3d():
    f = Feeds()
    x = unet(f.floats("image", 1, 8, 8, 8), 2, nn.Conv3D, nn.BatchNorm3D,
             nn.Conv3DTranspose, F.max_pool3d)
    return F.cross_entropy(x, f.classes("label", 2, 1, 8, 8, 8), axis=1), f


@net
def unet3d_residual():
    """Convolutions to the skip, an addition in place of the join."""
    f = Feeds()
    x = f.floats("image", 1, 8, 8, 8)
    skip = block(x, 4, nn.Conv3D, nn.BatchNorm3D)
    deep = block(F.max_pool3d(skip, 2, 2), 8, nn.Conv3D, nn.BatchNorm3D)
    up = nn.Conv3DTranspose(8, 4, 2, 2)(deep)
    x = F.leaky_relu(up + nn.Conv3D(4, 4, 1)(skip))
    x = nn.Conv3D(4, 2, 1)(x)
    return F.cross_entropy(x, f.classes("label", 2, 1, 8, 8, 8), axis=1), f


@net
def siamese():
    f = Feeds()
    convs = [nn.Conv2D(1, 4, 3), nn.Conv2D(4, 8, 3)]
    norm, linear = nn.BatchNorm2D(4), nn.Linear(8 * 2 * 2, 16)

    def tower(x):
        x = F.max_pool2d(F.relu(norm(convs[0](x))), 2, 2)
        x = F.max_pool2d(F.relu(convs[1](x)), 2, 2)
        return linear(paddle.flatten(x, 1))

    a, b = tower(f.floats("a", 1, 14, 14)), tower(f.floats("b", 1, 14, 14))
    same = paddle.cast(f.classes("same", 2, 1), "float32")
    distance = paddle.sqrt(
        paddle.sum(paddle.square(a - b), axis=1, keepdim=True) + 1e-6)
    apart = F.relu(1.0 - distance)
    loss = same * paddle.square(distance) + (1 - same) * paddle.square(apart)
    return paddle.mean(loss), f


@net
def two_losses():
    f = Feeds()
    x = f.floats("image", 3, 12, 12)
    x = F.relu(nn.BatchNorm2D(8)(nn.Conv2D(3, 8, 3, padding=1)(x)))
    shared = paddle.flatten(F.adaptive_avg_pool2d(x, 2), 1)
    hidden = F.tanh(nn.Linear(32, 16)(shared))
    classes = nn.Linear(16, 5)(drop(hidden))
    box = F.sigmoid(nn.Linear(16, 4)(hidden))
    first = F.cross_entropy(classes, f.classes("label", 5, 1))
    second = F.smooth_l1_loss(box, f.floats("box", 4))
    return first + 0.5 * second, f


@net
def conv1d():
    f = Feeds()
    x = f.floats("signal", 2, 32)
    for width, stride in (4, 1), (8, 2), (8, 2):
        x = nn.Conv1D(x.shape[1], width, 5, stride, padding=2)(x)
        x = F.relu(nn.BatchNorm1D(width)(x))
    x = F.max_pool1d(x, 2, 2)
    x = nn.Linear(8 * 4, 5)(paddle.flatten(x, 1))
    return F.cross_entropy(x, f.classes("label", 5, 1)), f


@net
def conv1d_dilated():
    """As WaveNet: gates, residuals, and skips that are added."""
    f = Feeds()
    x = nn.Conv1D(1, 4, 1)(f.floats("signal", 1, 32))
    skips = None
    for dilation in 1, 2, 4:
        gates = nn.Conv1D(4, 8, 3, padding=dilation, dilation=dilation)(x)
        a, b = paddle.split(gates, 2, axis=1)
        z = paddle.tanh(a) * F.sigmoid(b)
        skip = nn.Conv1D(4, 4, 1)(z)
        skips = skip if skips is None else skips + skip
        x = x + nn.Conv1D(4, 4, 1)(z)
    x = nn.Conv1D(4, 1, 1)(F.relu(skips))
    return F.mse_loss(x, f.floats("target", 1, 32)), f


@net
def transformer_encoder():
    f = Feeds()
    words, width, length = 50, 16, 10
    ids = f.classes("ids", words, length)
    place = paddle.arange(length).unsqueeze(0)
    x = nn.Embedding(words, width)(ids) + nn.Embedding(length, width)(place)
    x = drop(nn.LayerNorm(width)(x))
    rate = DROPOUT["rate"]
    layer = nn.TransformerEncoderLayer(width, 2, 32, rate, activation="gelu",
                                       normalize_before=True)
    x = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width))(x)
    logits = nn.Linear(width, 3)(x[:, 0])
    return F.cross_entropy(logits, f.classes("label", 3, 1)), f


@net
def lstm():
    f = Feeds()
    x = nn.Embedding(30, 8)(f.classes("ids", 30, 6))
    out, (hidden, _) = nn.LSTM(8, 12, 2)(x)
    x = paddle.concat([hidden[-1], paddle.mean(out, axis=1)], axis=1)
    return F.cross_entropy(nn.Linear(24, 4)(x), f.classes("label", 4, 1)), f


def custom(**lists):
    """A net with lists of the user's."""

    def add(make):
        CUSTOM[make.__name__] = lists
        return net(make)

    return add


def two_layers():
    f = Feeds()
    x = F.relu(nn.Conv2D(1, 4, 3)(f.floats("image", 1, 8, 8)))
    x = paddle.tanh(nn.Linear(36, 8)(paddle.flatten(F.max_pool2d(x, 2, 2), 1)))
    x = nn.Linear(8, 3)(F.softmax(x))
    return F.cross_entropy(x, f.classes("label", 3, 1)), f


@custom(custom_white_list=["softmax"], custom_black_list=["tanh", "conv2d"])
def custom_types():
    return two_layers()


@custom(custom_white_list=["pool2d", "elementwise_add"])
def custom_white():
    return two_layers()


@custom(custom_black_varnames=["linear_0.w_0"])
def custom_variables():
    return two_layers()


@net
def conditional():
    """Which of two heads is taken is the batch's mean's to say."""
    f = Feeds()
    x = F.relu(nn.Linear(8, 8)(f.floats("x", 8)))
    first, second = nn.Linear(8, 3), nn.Linear(8, 3)
    x = paddle.static.nn.cond(
        paddle.mean(x) > 0.4, lambda: first(x), lambda: second(x) * 2)
    return F.cross_entropy(x, f.classes("label", 3, 1)), f


class SqueezeExcite(nn.Layer):

    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2D(width, width // 4, 1)
        self.up = nn.Conv2D(width // 4, width, 1)

    def forward(self, x):
        s = F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))
        return x * F.hardsigmoid(self.up(s))


def inverted(x, hidden, width, kernel, stride, activation):
    y = activation(nn.BatchNorm2D(hidden)(nn.Conv2D(
        x.shape[1], hidden, 1, bias_attr=False)(x)))
    y = nn.Conv2D(hidden, hidden, kernel, stride, padding=kernel // 2,
                  groups=hidden, bias_attr=False)(y)
    y = SqueezeExcite(hidden)(activation(nn.BatchNorm2D(hidden)(y)))
    y = nn.BatchNorm2D(width)(nn.Conv2D(hidden, width, 1, bias_attr=False)(y))
    return x + y if stride == 1 and x.shape[1] == width else y


@net
def mobilenet_v3():
    f = Feeds()
    x = f.floats("image", 3, 24, 24)
    x = F.hardswish(nn.BatchNorm2D(8)(nn.Conv2D(3, 8, 3, 2, padding=1)(x)))
    x = inverted(x, 16, 8, 3, 1, F.relu)
    x = inverted(x, 24, 12, 5, 2, F.hardswish)
    x = inverted(x, 24, 12, 3, 1, F.hardswish)
    x = F.hardswish(nn.Conv2D(12, 24, 1)(F.adaptive_avg_pool2d(x, 1)))
    x = nn.Linear(24, 5)(drop(paddle.flatten(x, 1)))
    loss = F.cross_entropy(x, f.classes("label", 5, 1), reduction="none")
    return loss.mean(), f


@net
def vgg_dropout():
    f = Feeds()
    x = f.floats("image", 3, 16, 16)
    for width in 8, 16:
        x = block(x, width, norm=lambda _: (lambda y: y))
        x = F.max_pool2d(x, 2, 2)
    x = paddle.reshape(x, [-1, 16 * 4 * 4])
    for width in 32, 32:
        x = F.relu(nn.Linear(x.shape[1], width)(x))
        x = F.dropout(x, DROPOUT["rate"], mode="downscale_in_infer")
    x = nn.Linear(32, 10)(x)
    label = F.one_hot(f.classes("label", 10), 10)
    label = F.label_smooth(label, epsilon=0.1)
    return F.cross_entropy(x, label, soft_label=True), f


@net
def gru():
    f = Feeds()
    x = nn.Embedding(30, 8, padding_idx=0)(f.classes("ids", 30, 6))
    out, hidden = nn.GRU(8, 6, direction="bidirect")(x)
    ends = paddle.reshape(paddle.transpose(hidden, [1, 0, 2]), [-1, 12])
    x = paddle.concat([ends, paddle.max(out, axis=1)], axis=-1)
    x = nn.Linear(24, 1)(F.elu(x))
    y = paddle.cast(f.classes("label", 2, 1), "float32")
    return F.binary_cross_entropy_with_logits(x, y), f


@net
def masked_embedding():
    """The mean of as many words as there are, and attention over them."""
    f = Feeds()
    ids = f.classes("ids", 40, 7)
    length = f.add("length", f.random.randint(1, 8, BATCH * STEPS))
    mask = paddle.static.nn.sequence_lod.sequence_mask(length, 7, "float32")
    x = nn.Embedding(40, 8)(ids)
    many = paddle.cast(paddle.unsqueeze(length, 1), "float32")
    mean = paddle.sum(x * mask.unsqueeze(-1), axis=1) / many
    scores = paddle.squeeze(nn.Linear(8, 1)(paddle.tanh(x)), -1)
    weights = F.softmax(scores + (mask - 1) * 1e4)
    seen = paddle.squeeze(paddle.matmul(weights.unsqueeze(1), x), 1)
    x = F.swish(nn.Linear(16, 8)(paddle.concat([mean, seen], 1)))
    logits = F.log_softmax(nn.Linear(8, 4)(x))
    return F.nll_loss(logits, f.classes("label", 4)), f


@net
def norms():
    f = Feeds()
    x = nn.Conv2D(3, 8, 3, padding=1)(f.floats("image", 3, 10, 10))
    x = F.silu(nn.GroupNorm(4, 8)(x))
    x = nn.Conv2D(8, 8, 3, padding=1)(x)
    x = F.leaky_relu(nn.InstanceNorm2D(8)(x), 0.2)
    x = nn.Conv2D(8, 4, 3, 2)(x)
    x = F.mish(nn.LayerNorm([4, 4, 4])(x))
    x = nn.PReLU(4)(nn.Conv2D(4, 4, 1, bias_attr=False)(x))
    x = F.softplus(nn.Linear(64, 3)(paddle.flatten(x, 1)))
    return F.kl_div(F.log_softmax(x), F.softmax(f.floats("target", 3)),
                    reduction="batchmean"), f


@net
def generator():
    """Transposed convolutions from noise, as DCGAN has them."""
    f = Feeds()
    x = nn.Linear(6, 8 * 3 * 3)(f.floats("noise", 6))
    x = paddle.reshape(x, [-1, 8, 3, 3])
    x = F.relu(nn.BatchNorm2D(8)(x))
    x = nn.Conv2DTranspose(8, 4, 4, 2, padding=1)(x)
    x = F.relu6(nn.BatchNorm2D(4)(x))
    x = nn.Conv2DTranspose(4, 4, 3, 2, padding=1, output_padding=1)(x)
    x = F.pixel_shuffle(x, 2)
    x = F.pad(x, [1, 1, 0, 0], mode="reflect")
    x = paddle.tanh(nn.Conv2DTranspose(1, 1, 3, groups=1)(x))
    target = F.interpolate(f.floats("image", 1, 13, 14), [26, 28], mode="nearest")
    return F.l1_loss(x, paddle.clip(target, -1, 1)), f


@net
def gathers():
    """Rows picked by index, moved and put together again."""
    f = Feeds()
    x = f.floats("x", 6, 4)
    x = F.relu(nn.Linear(4, 8)(x))
    # (The gradient of Paddle's gather is wrong along other axes than 0.)
    odd = paddle.index_select(x, paddle.to_tensor([1, 3, 5]), axis=1)
    some = paddle.index_select(x, paddle.to_tensor([0, 2, 4]), axis=1)
    both = paddle.stack([odd, some], axis=2)
    a, b = paddle.unstack(both, axis=2)
    wide = paddle.expand(a[:, :1], [-1, 3, -1]) - paddle.tile(
        b[:, 1:2], [1, 3, 1])
    turned = paddle.flip(wide, [1])[:, ::2]
    weights = paddle.assign(numpy.array([[0.5], [-2]], "float32"))
    picked = paddle.where(turned > 0, turned, turned * weights)
    x = paddle.cumsum(paddle.mean(picked, axis=1), axis=-1)
    table = nn.Linear(8, 8)(paddle.create_parameter([8, 8], "float32"))
    x = x * paddle.gather(table, paddle.argmax(x, axis=-1))
    best, _ = paddle.topk(x, 3)
    return F.cross_entropy(nn.Linear(3, 3)(best), f.classes("label", 3, 1)), f


@net
def shared_weights():
    """A table that is the decoder, too, and a layer applied three times."""
    f = Feeds()
    words, width = 20, 8
    ids = f.classes("ids", words, 5)
    table, layer = nn.Embedding(words, width), nn.Linear(width, width)
    x = table(ids)
    for _ in range(3):
        x = x + F.gelu(layer(x), approximate=True)
    x = paddle.matmul(x, table.weight, transpose_y=True)
    x = paddle.reshape(x, [-1, words])
    label = paddle.reshape(f.classes("label", words, 5), [-1, 1])
    loss = F.cross_entropy(x, label, ignore_index=3)
    return loss, f


@net
def teacher():
    """Several outputs, of which some stop gradients."""
    f = Feeds()
    x = f.floats("x", 8)
    body = F.relu(nn.Linear(8, 16)(x))
    student, other = nn.Linear(16, 4)(body), nn.Linear(16, 4)(body)
    target = F.softmax(other / 2.0)
    target.stop_gradient = True
    values, which = paddle.topk(student, 2)
    student, rest = paddle.split(nn.Linear(16, 6)(body), [4, 2], axis=-1)
    far = F.cross_entropy(student, target, soft_label=True)
    near = paddle.mean(paddle.abs(rest - values.detach()))
    hard = F.cross_entropy(other, f.classes("label", 4, 1))
    norm = paddle.norm(rest, p=2)
    return far + hard + 0.1 * near + 0.01 * norm, f


@net
def densenet():
    f = Feeds()
    x = nn.Conv2D(3, 8, 3, padding=1)(f.floats("image", 3, 12, 12))
    for _ in range(3):
        y = nn.Conv2D(x.shape[1], 4, 3, padding=1)(
            F.relu(nn.BatchNorm2D(x.shape[1])(x)))
        x = paddle.concat([x, drop(y)], axis=1)
    x = F.avg_pool2d(x, 2, 2, ceil_mode=True)
    x = paddle.mean(x, axis=[2, 3])
    return F.cross_entropy(nn.Linear(20, 5)(x), f.classes("label", 5, 1)), f


@net
def transformer():
    """Encoder and decoder, whose mask is above the diagonal."""
    f = Feeds()
    source, target = f.classes("source", 30, 6), f.classes("target", 30, 5)
    words, places = nn.Embedding(30, 16), nn.Embedding(8, 16)
    source = words(source) * 4.0 + places(paddle.arange(6))
    target = words(target) * 4.0 + places(paddle.arange(5))
    mask = paddle.triu(paddle.full([5, 5], float("-1e9")), 1)
    net_ = nn.Transformer(16, 2, 1, 1, 32, DROPOUT["rate"])
    out = net_(source, target, tgt_mask=mask)
    logits = paddle.matmul(out, words.weight, transpose_y=True)
    label = f.classes("label", 30, 5, 1)
    return F.cross_entropy(logits, label, ignore_index=0), f


@in_parts
def gpt():
    """Shifted words, and the losses picked by hand."""
    f = Feeds()
    x = nn.LayerNorm(16)(nn.Embedding(31, 16)(f.classes("ids", 30, 6) + 1))
    q, k, v = (
        paddle.transpose(paddle.reshape(part, [0, 6, 2, 8]), [0, 2, 1, 3])
        for part in paddle.split(nn.Linear(16, 48)(x), 3, axis=-1))
    keep = paddle.tril(paddle.ones([6, 6]))
    scores = paddle.matmul(q, k, transpose_y=True) * 8**-0.5
    x = paddle.matmul(F.softmax(scores * keep + (keep - 1) * 1e4), v)
    x = paddle.reshape(paddle.transpose(x, [0, 2, 1, 3]), [0, 6, 16])
    logits = F.log_softmax(nn.Linear(16, 30)(x))
    label = f.classes("label", 30, 6).unsqueeze(-1)
    return -paddle.mean(paddle.take_along_axis(logits, label, axis=-1)), f


@in_parts
def masked_by_any():
    f = Feeds()
    x = f.floats("x", 4, 6)
    some = paddle.cast(paddle.any(x > 1.0, axis=1), "float32")
    every = paddle.cast(paddle.all(x < 1.5, axis=[2], keepdim=True), "float32")
    x = nn.Linear(6, 3)((x * every).mean(1) * some)
    return F.cross_entropy(x, f.classes("label", 3, 1)), f


@in_parts
def shapes_of_values():
    f = Feeds()
    x = f.floats("x", 6, 4)
    batch = paddle.shape(x)[0]
    first = paddle.create_parameter([1, 1, 8], "float32")
    x = paddle.concat([first.expand([batch, -1, -1]), nn.Linear(4, 8)(x)], 1)
    x = x.reshape([batch, 7, 2, -1]).mean(1) * paddle.full([batch, 2, 1], 0.5)
    x = 1 / (x.reshape([batch, -1]).abs() + 1)
    return F.cross_entropy(nn.Linear(8, 3)(x), f.classes("label", 3, 1)), f


@in_parts
def coordinates():
    """Channels that say where a pixel lies, and a matrix for all images."""
    f = Feeds()
    axis = paddle.arange(6, dtype="float32")
    places = paddle.stack(paddle.meshgrid(axis, axis)).unsqueeze(0)
    x = nn.Conv2D(2, 4, 3)(f.floats("image", 2, 6, 6) + places / 6.0)
    x = F.channel_shuffle(x, 2) + paddle.roll(x, [1, -2], axis=[2, 3])
    x = paddle.matmul(paddle.create_parameter([5, 4], "float32"), x)
    # (Paddle's gradient of expand_as is wrong: no parameter is behind it.)
    mean = paddle.mean(x, axis=[2, 3], keepdim=True).detach()
    x = x * paddle.expand_as(mean, x)
    x = nn.Linear(80, 3)(paddle.flatten(x, 1))
    return F.cross_entropy(x, f.classes("label", 3, 1)), f


@in_parts
def pooled_by_attention():
    """Scores by a vector, a batch of products, and a loss of exponentials."""
    f = Feeds()
    x = nn.Embedding(30, 8)(f.classes("ids", 30, 6))
    x, _ = nn.LSTM(8, 6, direction="bidirect")(x)
    vector = paddle.create_parameter(
        [12], "float32", default_initializer=nn.initializer.Normal())
    weights = F.softmax(paddle.matmul(paddle.tanh(x), vector))
    x = nn.Linear(12, 4)(paddle.bmm(weights.unsqueeze(1), x).squeeze(1))
    target = paddle.max(f.floats("y", 3), axis=-1)
    return F.mse_loss(paddle.logsumexp(x, axis=-1), target), f
