"""Operators of training steps: the gradients that autograd computes, as make_fx would write them."""
import torch

from .family import bf16, booleans, family, integers, normal, special, tensor, uniform

aten = torch.ops.aten
a = family("backward_pointwise", core=False)
x = torch.cat([normal(30) * 3, special()[:10], tensor([3.0, -3.0, 25.0, 0.5, -0.5, 1e-4])])
g = normal(46)
for name, function in {
    "threshold": lambda g, x: aten.threshold_backward(g, x, 0.5), "gelu": lambda g, x: aten.gelu_backward(g, x),
    "gelu tanh": lambda g, x: aten.gelu_backward(g, x, approximate="tanh"), "silu": lambda g, x: aten.silu_backward(g, x),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False), "elu": lambda g, x: aten.elu_backward(g, 1.5, 1.1, 0.9, False, x),
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1, 2), "hardsigmoid": lambda g, x: aten.hardsigmoid_backward(g, x),
    "hardswish": lambda g, x: aten.hardswish_backward(g, x), "softplus": lambda g, x: aten.softplus_backward(g, x, 1.5, 20),
    "mish": lambda g, x: aten.mish_backward(g, x), "log_sigmoid": lambda g, x: aten.log_sigmoid_backward(g, x, aten.log_sigmoid_forward(x)[1]),
    "hardshrink": lambda g, x: aten.hardshrink_backward(g, x, 0.5), "softshrink": lambda g, x: aten.softshrink_backward(g, x, 0.5)}.items():
    a.add(name, function, g[:36], torch.cat([x[:30], x[40:]]), float64=True)
    a.add(f"{name} bfloat16", function, g[:30].to(bf16), x[:30].to(bf16))
y = uniform(0.01, 0.99, 30)
a.add("sigmoid", lambda g, y: aten.sigmoid_backward(g, y), g[:30], y)
a.add("tanh", lambda g, y: aten.tanh_backward(g, y), g[:30], y * 2 - 1)
a.add("elu of its result", lambda g, y: aten.elu_backward(g, 1.0, 1.0, 1.0, True, y), g[:30], y * 2 - 1)
a.add("glu", lambda g, x: aten.glu_backward(g, x, 1), normal(4, 3, 5), normal(4, 6, 5))
a.add("dropout", lambda g, m: aten.native_dropout_backward(g, m, 1.25), normal(4, 6), booleans(4, 6))
p, t, one = normal(5, 6), normal(5, 6), tensor(0.7)
for reduction, grad in ((0, normal(5, 6)), (1, one), (2, one)):
    a.add(f"mse_loss {reduction}", lambda g, p, t, r=reduction: aten.mse_loss_backward(g, p, t, r), grad, p, t)
    a.add(f"smooth_l1_loss {reduction}", lambda g, p, t, r=reduction: aten.smooth_l1_loss_backward(g, p, t, r, 0.8), grad, p, t)
    a.add(f"huber_loss {reduction}", lambda g, p, t, r=reduction: aten.huber_loss_backward(g, p, t, r, 0.8), grad, p, t)
    a.add(f"binary_cross_entropy {reduction}", lambda g, p, t, r=reduction: aten.binary_cross_entropy_backward(g, p, t, None, r), grad,
          uniform(0.05, 0.95, 5, 6), uniform(0, 1, 5, 6))
rows, classes, weight = normal(7, 5), tensor([0, 4, 2, -100, 1, 2, 3], torch.int64), uniform(0.5, 2, 5)
a.add("nll_loss mean", lambda g, x, t, w: aten.nll_loss_backward(g, x, t, None, 1, -100, w), one, rows, classes, tensor(6.0))
a.add("nll_loss weights", lambda g, x, t, w, c: aten.nll_loss_backward(g, x, t, c, 1, 2, w), one, rows.clone(), tensor([0, 4, 2, 0, 1, 2, 3], torch.int64), tensor(6.3), weight)
a.add("nll_loss none", lambda g, x, t, w: aten.nll_loss_backward(g, x, t, None, 0, -100, w), normal(7), rows, classes, tensor(6.0))
a.add("nll_loss2d", lambda g, x, t, w: aten.nll_loss2d_backward(g, x, t, None, 1, -100, w), one, normal(2, 5, 3, 4), integers(0, 5, 2, 3, 4), tensor(24.0))

b = family("backward_layers", core=False)
x, g, w, c = normal(3, 4, 6), normal(3, 4, 6), normal(6), normal(6)
ALL = [True, True, True]
b.add("native_layer_norm", lambda g, x, w, c: aten.native_layer_norm_backward(g, x, [6], *aten.native_layer_norm(x, [6], w, c, 1e-5)[1:], w, c, ALL), g, x, w, c)
b.add("native_layer_norm without weights", lambda g, x: aten.native_layer_norm_backward(g, x, [4, 6], *aten.native_layer_norm(x, [4, 6], None, None, 1e-5)[1:], None, None, [True, False, False])[0], g, x)
x, g, w = normal(2, 6, 3, 4), normal(2, 6, 3, 4), normal(6)
b.add("native_group_norm", lambda g, x, w: aten.native_group_norm_backward(g, x, *aten.native_group_norm(x, w, None, 2, 6, 12, 3, 1e-5)[1:], w, 2, 6, 12, 3, ALL), g, x, w)
for train in (True, False):
    b.add(f"native_batch_norm {train}", lambda g, x, w, m, v, t=train: aten.native_batch_norm_backward(
        g, x, w, m, v, x.mean((0, 2, 3)), (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt(), t, 1e-5, ALL), g, x, w, normal(6), uniform(0.5, 2, 6))
b.add("embedding", lambda g, i: aten.embedding_dense_backward(g, i, 9, 2, False), normal(4, 5, 3), integers(0, 9, 4, 5))
b.add("embedding bfloat16", lambda g, i: aten.embedding_dense_backward(g, i, 3, -1, False), normal(40, 3, dtype=bf16), integers(0, 3, 40), float64=True)
b.add("select", lambda g: aten.select_backward(g, [4, 3, 5], 1, -1), normal(4, 5))
b.add("slice", lambda g: aten.slice_backward(g, [4, 9, 5], 1, 2, 8, 3), normal(4, 2, 5))
pooled = normal(2, 3, 9, 8)
b.add("max_pool2d", lambda g, x: aten.max_pool2d_with_indices_backward(g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])[1]), normal(2, 3, 5, 4), pooled)
for h, wide in ((1, 1), (4, 3), (12, 8)):
    b.add(f"adaptive_avg_pool2d {h} {wide}", lambda g, x: aten._adaptive_avg_pool2d_backward(g, x), normal(2, 3, h, wide), pooled)


def convolution(name, x, weight, stride=1, padding=0, dilation=1, groups=1, transposed=False, output_padding=0):
    n = x.dim() - 2
    how = ([stride] * n, [padding] * n, [dilation] * n, transposed, [output_padding] * n, groups)
    out = aten.convolution(x, weight, None, *how)
    b.add(name, lambda g, x, w: aten.convolution_backward(g, x, w, [g.shape[1]], *how, ALL), normal(*out.shape), x, weight)


convolution("convolution", normal(2, 3, 7, 6), normal(4, 3, 3, 3), padding=1)
convolution("convolution strided", normal(2, 3, 8, 9), normal(4, 3, 3, 3), stride=2, padding=1)
convolution("convolution dilated groups", normal(2, 4, 9, 8), normal(6, 2, 3, 3), stride=2, padding=2, dilation=2, groups=2)
convolution("convolution depthwise", normal(2, 4, 6, 6), normal(4, 1, 3, 3), padding=1, groups=4)
convolution("convolution 1x1", normal(2, 4, 5, 5), normal(6, 4, 1, 1), stride=2)
convolution("convolution 1d", normal(2, 4, 11), normal(6, 4, 5), stride=3)
convolution("convolution 3d", normal(1, 2, 5, 4, 6), normal(3, 2, 3, 3, 3), padding=1)
convolution("convolution transposed", normal(2, 4, 5, 4), normal(4, 3, 3, 3), stride=2, padding=1, output_padding=1, transposed=True)
convolution("convolution transposed groups", normal(2, 4, 5, 4), normal(4, 2, 3, 3), stride=2, groups=2, transposed=True)
q, k, v = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8)


def attention(g, q, k, v, *mask, causal=False):
    m = mask[0] if mask else None
    out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=m)
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, out, lse, 0.0, causal, attn_mask=m)


b.add("attention", attention, normal(2, 3, 5, 8), q, k, v)
b.add("attention mask", attention, normal(2, 3, 5, 8), q, k, v, normal(5, 7))
b.add("attention causal", lambda *x: attention(*x, causal=True), normal(2, 3, 5, 8), q, normal(2, 3, 5, 8), normal(2, 3, 5, 8))
