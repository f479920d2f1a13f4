// Operators that cannot be compiled, each with the reason.
#include "lowering/decompose/rules.h"

namespace tilewright {

void add_refusals(RuleTable &table) {
    table.refuse({"aten.rand.default",
                  "aten.rand_like.default",
                  "aten.randn.default",
                  "aten.randn_like.default",
                  "aten.randint.default",
                  "aten.randint.low",
                  "aten.randint_like.default",
                  "aten.randint_like.low_dtype",
                  "aten.randperm.default",
                  "aten.bernoulli.default",
                  "aten.bernoulli.p",
                  "aten.bernoulli.Tensor",
                  "aten.multinomial.default",
                  "aten.normal.Tensor_Tensor",
                  "aten.normal.Tensor_float",
                  "aten.normal.float_Tensor",
                  "aten.normal.float_float",
                  "aten.normal_functional.default",
                  "aten.uniform.default",
                  "aten.exponential.default",
                  "aten.poisson.default",
                  "aten.cauchy.default",
                  "aten.geometric.default",
                  "aten.log_normal.default",
                  "aten.random.default",
                  "aten.random.from",
                  "aten.random.to",
                  "aten.binomial.default",
                  "aten.rrelu_with_noise.default",
                  "aten._sample_dirichlet.default",
                  "aten._standard_gamma.default",
                  "aten.normal_.default",
                  "aten.uniform_.default",
                  "aten.bernoulli_.float",
                  "aten.bernoulli_.Tensor",
                  "aten.random_.default",
                  "aten.random_.from",
                  "aten.random_.to",
                  "aten.exponential_.default",
                  "aten.geometric_.default",
                  "aten.cauchy_.default",
                  "aten.log_normal_.default",
                  "aten.rrelu_.default",
                  "aten.rrelu_with_noise_.default"},
                 "it draws random numbers, which is not supported; pass them in as an input, or export the model in eval mode");
    table.refuse({"aten.nonzero.default", "aten.nonzero_numpy.default", "aten.nonzero_static.default", "aten.masked_select.default",
                  "aten._unique2.default", "aten.unique_dim.default", "aten.unique_consecutive.default",
                  "aten.unique_dim_consecutive.default", "aten.bincount.default", "aten.argwhere.default", "aten.repeat_interleave.Tensor",
                  "aten.repeat_interleave.self_Tensor", "aten.masked_scatter.default"},
                 "its result has a size or a place that depends on data, which is not supported; use operators of a fixed shape such as "
                 "torch.where");
    table.refuse({"aten._local_scalar_dense.default", "aten.item.default"},
                 "it reads a number out of a tensor while the program runs, which is not supported; keep the value in a tensor");
}

}  // namespace tilewright
