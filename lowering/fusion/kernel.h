// What grouping makes of an algorithm: kernels, each an algorithm of its own, and the places that call them.
#pragma once

#include <string>
#include <vector>

#include "dsl/algorithm/algorithm.h"
#include "dsl/algorithm/hash.h"

namespace tilewright {

/// A group of stages that one piece of code computes. Stages, axes and tensors have canonical names (from operators and positions),
/// so that equal layers of a model give equal kernels: inputs in0…, outputs out0…, arguments d0…, reduction variables r0…. Stages that no
/// output names are inside the kernel only. Index maps are folded away where they can be: an input may be a strided view of the tensor
/// that a call names (permuted, sliced, reshaped), so its meta has the view's sizes and strides, and its offset counts from the tensor's
/// element 0. One tensor may be several inputs. An output's meta likewise says where its elements lie in the tensor that is written.
struct Kernel {
    std::string name;  ///< from its operators, unique in the partition: "add_layer_norm", "linear_gelu_2"
    Hash hash;         ///< of `algorithm`
    Algorithm algorithm;
};

/// One place where a kernel runs. Tensors are named as in the whole algorithm.
struct KernelCall {
    int kernel = 0;                   ///< index into Partition::kernels
    std::vector<std::string> inputs;  ///< for each of the kernel's inputs: an input or output of the algorithm, or an intermediate
    std::vector<Extent>
        input_offsets;  ///< for each input, elements to add to its meta's offset (places that slice one tensor share a kernel)
    std::vector<std::string> outputs;  ///< for each of the kernel's outputs: an output of the algorithm, or an intermediate
    std::vector<std::string> stages;   ///< the whole algorithm's stages that this call computes
    std::string place;                 ///< of the graph, in terms that survive renaming: "softmax#3"
    std::vector<int> index_sites;      ///< the program's index site for each that the kernel numbers from 0 (equal layers share a kernel)
};

/// Why an edge between two stages was fused or not.
struct FusionDecision {
    std::string producer, consumer;
    bool fused = false;
    std::string reason;
};

/// A tensor that lives between calls.
struct Intermediate {
    std::string name;
    TensorMeta meta;
};

struct Partition {
    std::vector<Kernel> kernels;
    std::vector<KernelCall> calls;  ///< in execution order
    std::vector<Intermediate> intermediates;
    std::vector<FusionDecision> decisions;
};

}  // namespace tilewright
