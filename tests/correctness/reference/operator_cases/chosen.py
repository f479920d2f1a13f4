"""Products whose matrices are chosen row by row, and many updates that meet in one place."""
import torch

from .family import INF, NAN, bf16, f64, family, i8, i16, i32, integers, normal, tensor, u8, uniform

c = family("chosen_products", core=False)
for count in (3, 9):  # fewer rows than matrices, and more
    chosen = integers(0, 5, count)
    c.add(f"{count} rows times chosen matrices", lambda x, w, i: torch.bmm(x[:, None], w[i]), normal(count, 6), normal(5, 6, 7), chosen)
    c.add(f"{count} rows times chosen transposed", lambda x, w, i: torch.bmm(x[:, None], w[i].transpose(1, 2)), normal(count, 6), normal(5, 7, 6), chosen)
    c.add(f"{count} chosen matrices times columns", lambda x, w, i: torch.bmm(w[i], x[..., None])[..., 0] + 1, normal(count, 6), normal(5, 7, 6), chosen)
c.add("chosen from the end", lambda x, w, i: x[:, None] @ w[i], normal(4, 6), normal(3, 6, 7), tensor([-1, 0, -3, 2], torch.int64))
c.add("chosen bfloat16", lambda x, w, i: torch.bmm(x[:, None], w[i]), normal(8, 16, dtype=bf16), normal(4, 16, 24, dtype=bf16), integers(0, 4, 8))
c.add("several rows each", lambda x, w, i: x @ w[i], normal(8, 3, 6), normal(4, 6, 5), integers(0, 4, 8))
ends = tensor([3, 3, 10, 12], i32)
x, w = normal(12, 16, dtype=bf16), normal(4, 16, 24, dtype=bf16)
c.add("grouped rows", lambda x, w, e: torch._grouped_mm(x, w, offs=e), x, w, ends)
c.add("grouped rows, transposed", lambda x, w, e: torch._grouped_mm(x, w.transpose(1, 2), offs=e), x, normal(4, 24, 16, dtype=bf16), ends)
c.add("grouped columns", lambda w, x, e: torch._grouped_mm(w, x.t(), offs=e), normal(4, 8, 16, dtype=bf16), normal(16, 16, dtype=bf16), tensor([4, 4, 10, 16], i32))
c.add("grouped terms", lambda x, y, e: torch._grouped_mm(x.t(), y, offs=e), normal(16, 24, dtype=bf16), normal(16, 8, dtype=bf16), tensor([3, 3, 10, 16], i32))
c.add("grouped batches", lambda x, w: torch._grouped_mm(x, w), normal(4, 8, 16, dtype=bf16), w)

m = family("meeting_updates", core=False)
places = integers(0, 5, 60)
for name, values in (("float32", normal(60)), ("float64", normal(60, dtype=f64)), ("int64", integers(-9, 9, 60)), ("int32", integers(-9, 9, 60, dtype=i32)),
                     ("int16", integers(-9, 9, 60, dtype=i16)), ("int8", integers(-9, 9, 60, dtype=i8)), ("uint8", integers(0, 200, 60, dtype=u8)),
                     ("bfloat16", normal(60, dtype=bf16)),
                     ("special", tensor([0.0, -0.0, INF, -INF, 1.0, -1.0] * 10)), ("NaN", torch.where(torch.arange(60) % 17 == 3, torch.full((60,), NAN), normal(60)))):
    for reduce in ("amax", "amin"):
        m.add(f"{name} {reduce}", lambda t, i, v, r=reduce: torch.scatter_reduce(t, 0, i, v, r), values[:6].clone(), places, values)
        m.add(f"{name} {reduce} without itself", lambda t, i, v, r=reduce: torch.scatter_reduce(t, 0, i, v, r, include_self=False), values[:6].clone(), places, values)
m.add("NaN that is there", lambda t, i, v: (torch.scatter_reduce(t, 0, i, v, "amax"), torch.scatter_reduce(-t, 0, i, v, "amin")), tensor([NAN, 1.0, 2.0, -3.0, -INF]), places, normal(60))
factors = uniform(0.8, 1.2, 60)
m.add("product", lambda t, i, v: torch.scatter_reduce(t, 0, i, v, "prod"), uniform(0.5, 1.0, 5), places, factors)
m.add("product int", lambda t, i, v: torch.scatter_reduce(t, 0, i, v, "prod"), integers(1, 3, 5), places, integers(1, 3, 60))
m.add("rows", lambda t, i, v: torch.index_reduce(t, 0, i, v, "amax"), normal(5, 8), places, normal(60, 8))
m.add("rows minimum", lambda t, i, v: torch.index_reduce(t, 0, i, v, "amin", include_self=False), normal(6, 6), places, normal(60, 6))

e = family("even_bags", core=False)
for mode in ("sum", "mean", "max"):
    e.add(f"{mode}", lambda i, t, r=mode: torch.nn.functional.embedding_bag(i, t, mode=r), integers(0, 7, 5, 4), normal(7, 6))
    e.add(f"{mode} padding", lambda i, t, r=mode: torch.nn.functional.embedding_bag(i, t, mode=r, padding_idx=1), tensor([[1, 1, 1], [0, 1, 2], [3, 0, 2]], torch.int64), normal(4, 6))
e.add("weights", lambda i, t, w: torch.nn.functional.embedding_bag(i, t, mode="sum", per_sample_weights=w), integers(0, 7, 5, 4), normal(7, 6), normal(5, 4))
e.add("bfloat16", lambda i, t: torch.nn.functional.embedding_bag(i, t, mode="mean"), integers(0, 7, 5, 4), normal(7, 6, dtype=bf16))
