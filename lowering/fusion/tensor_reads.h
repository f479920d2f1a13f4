// How a kernel reads the tensors that it does not compute: as they lie, or as views that its stages read at plain variables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lowering/fusion/build_kernel.h"
#include "lowering/fusion/stage_reader.h"

namespace tilewright {

class TensorReads {
public:
    /// `kernel` gets an input for each tensor and view of one.
    TensorReads(const StageGraph &graph, const std::vector<int> &members, const StoredTensors &stored, BuiltKernel &kernel)
        : graph_(graph), members_(members), stored_(stored), kernel_(kernel) {}

    /// The tensor behind a read that leads out of the kernel.
    StoredTensor tensor_of(const ReadSource &source) const;
    /// The read of a view of the tensor; undefined where it is read as it lies.
    Halide::Expr view(const StoredTensor &tensor, const ReadSource &source, const StageReader &reader);
    Halide::ImageParam whole(const StoredTensor &tensor) { return input(tensor.name, tensor.meta); }
    Halide::ImageParam whole(const TensorInput &tensor);

private:
    bool has_neighbours(const ReadSource &source, const StageReader &reader) const;
    Halide::Expr view_of_map(const ReadSource::Map &map, const StoredTensor &tensor, const StageReader &reader, bool must_be_plain);
    Halide::ImageParam input(const std::string &tensor, TensorMeta meta);

    const StageGraph &graph_;
    const std::vector<int> &members_;
    const StoredTensors &stored_;
    BuiltKernel &kernel_;
    std::map<std::string, std::size_t> inputs_;
};

}  // namespace tilewright
