"""Operators over symbolic sizes: exported with one batch and length, recorded with others."""
import torch
import torch.nn.functional as F

from .family import *

d = family("dynamic", core=True)
d.sizes = [(3, 8), (5, 6)]  # (batch, length) of the export, and of the recorded values


class Sized:
    """An input whose size depends on the batch b and the length s."""

    def __init__(self, make):
        self.make = make


bsd = Sized(lambda b, s: normal(b, s, 12))
bs = Sized(lambda b, s: normal(b, s))
ids = Sized(lambda b, s: integers(0, 7, b, s))
image = Sized(lambda b, s: normal(b, 3, 8, s + 4))
heads = [Sized(lambda b, s: normal(b, 2, s, 6)) for _ in range(3)]

d.add("linear gelu", lambda x, w, b: F.gelu(F.linear(x, w, b)), bsd, normal(5, 12), normal(5))
d.add("layer_norm", lambda x, w, b: F.layer_norm(x, (12,), w, b), bsd, normal(12), normal(12))
d.add("rms over the length", lambda x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6), bsd)
d.add("softmax over the length", lambda x: torch.softmax(x, 1), bsd)
d.add("log_softmax of a transpose", lambda x: torch.log_softmax(x.transpose(1, 2), -1), bsd)
d.add("sum mean var amax", lambda x: (x.sum(1), x.mean((0, 1)), x.var(1), x.amax(-2)), bsd)
d.add("argmax topk sort", lambda x: (x.argmax(1), x.topk(3, dim=1)[0], x.sort(1)[0]), bsd)
d.add("cumsum flip roll", lambda x: (x.cumsum(1), x.flip(1), x.roll(2, 1), x.roll(-1, 0)), bsd)
d.add("view flatten", lambda x: (x.view(x.shape[0], -1), x.flatten(0, 1), x.reshape(-1, 3, 4)), bsd)
d.add("split heads", lambda x: x.view(x.shape[0], x.shape[1], 3, 4).transpose(1, 2).contiguous().view(x.shape[0] * 3, x.shape[1], 4), bsd)
d.add("slices", lambda x: (x[:, 1:], x[:, :-1], x[:, -2:], x[:, ::2], x[:, -1], x[:, 0], x[1:]), bsd)
d.add("cat stack", lambda x: (torch.cat([x, x[:, :1]], 1), torch.stack([x, x], 1)), bsd)
d.add("chunk split unbind", lambda x: (*x.chunk(3, -1), *x.split([5, 7], -1), *x.unbind(-1)[:2]), bsd)
d.add("expand repeat", lambda x: (x[:, :1].expand(-1, x.shape[1], -1) * x, x.repeat(1, 2, 1), x.repeat_interleave(2, 1)), bsd)
d.add("positions", lambda i: (torch.arange(i.shape[1]) + i, torch.arange(i.shape[1]).unsqueeze(0).expand(i.shape[0], -1)), ids)
d.add("causal mask", lambda i: torch.tril(torch.ones(i.shape[1], i.shape[1], dtype=torch.bool)), ids)
d.add("triu fill", lambda i: torch.triu(torch.full((i.shape[1], i.shape[1]), -INF), 1), ids)
d.add("embedding", F.embedding, ids, normal(7, 4))
d.add("one_hot", lambda i: F.one_hot(i, 7), ids)
d.add("gather", lambda x, i: torch.gather(x, 2, i.unsqueeze(-1)), bsd, ids)
d.add("index", lambda x, i: x[torch.arange(x.shape[0]), i[:, 0] % 2], bsd, ids)
d.add("masked_fill where", lambda x, i: (x.masked_fill((i > 3).unsqueeze(-1), 0.0), torch.where(i.unsqueeze(-1) > 3, x, -x)), bsd, ids)
d.add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads)
d.add("attention mask", lambda q, k, v, i: F.scaled_dot_product_attention(q, k, v, (i > 1)[:, None, None, :]), *heads, ids)
d.add("matmul", lambda x: (x @ x.transpose(1, 2), torch.einsum("bsd,btd->bst", x, x), torch.bmm(x.transpose(1, 2), x)), bsd)
d.add("conv2d", lambda x, w: F.conv2d(x, w, padding=1, stride=2), image, normal(4, 3, 3, 3))
d.add("conv1d", lambda x, w: F.conv1d(x.transpose(1, 2), w, padding=1), bsd, normal(4, 12, 3))
d.add("pool", lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, 1)), image)
d.add("interpolate", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 7), mode="bilinear")), image)
d.add("pad", lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 1, 0, 1), mode="reflect")), image)
d.add("batch_norm group_norm", lambda x, m, v: (F.batch_norm(x, m, v), F.group_norm(x, 3)), image, normal(3), uniform(0.5, 2, 3))
d.add("scaled by the length", lambda x: x / x.shape[1] + x.shape[0], bsd)
d.add("zeros of the size", lambda x: torch.zeros(x.shape[0], x.shape[1]) + x.sum(-1), bsd)
d.add("last token", lambda x, i: x[torch.arange(x.shape[0]), i.ne(9).sum(-1) - 1], bsd, ids)
d.add("cross entropy", lambda x, i: F.cross_entropy(x.view(-1, 12), i.view(-1)), bsd, ids)
d.add("unfold", lambda x: x.unfold(1, 3, 1), bs)
d.add("outer difference", lambda x: x.unsqueeze(1) - x.unsqueeze(2), bs)
d.add("write into a slice", lambda x: x.clone().index_fill_(1, torch.tensor([0, 1]), 0.0)[:, 1:].add_(1), bs)
d.add("slice assignment", lambda x: torch.slice_scatter(x, x[:, 1:] * 2, 1, 0, x.shape[1] - 1), bs)
