#include "runtime/cuda/cudnn_engine.h"

#include <algorithm>
#include <mutex>

#include "dsl/error.h"

#if __has_include(<cudnn.h>) && __has_include(<cudnn_frontend.h>)

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define NV_CUDNN_FRONTEND_DISABLE_LOGGING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "runtime/usable.h"

namespace cudnn_frontend {
void *cudnn_dlhandle = nullptr;  // where the frontend looks cuDNN's functions up
}

namespace tilewright {

namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using TensorPointer = std::shared_ptr<Tensor_attributes>;

/// cuDNN and one handle of it. A handle is for one thread at a time.
struct Cudnn {
    DynamicLibrary cudart{{"libcudart.so.13", "libcudart.so.12"}};  // the frontend finds it by its name once it is loaded
    DynamicLibrary library{{"libcudnn.so.9", "libcudnn.so"}};
    std::size_t version = 0;
    cudnnHandle_t handle = nullptr;
    std::mutex mutex;

    Cudnn() {
        cudart["cudaGetErrorString"];
        version = static_cast<decltype(&cudnnGetVersion)>(library["cudnnGetVersion"])();
        fe::cudnn_dlhandle = library.handle();
    }

    cudnnHandle_t open() {
        if (handle == nullptr) {
            cuda_device();
            const cudnnStatus_t status = fe::detail::create_handle(&handle);
            internal_assert(status == CUDNN_STATUS_SUCCESS, "opening cuDNN: its status {}", static_cast<int>(status));
        }
        return handle;
    }
};

Cudnn &cudnn() {
    static Cudnn instance;
    return instance;
}

fe::DataType_t data_type(DType type) {
    switch (type) {
        case DType::bfloat16:
            return fe::DataType_t::BFLOAT16;
        case DType::float16:
            return fe::DataType_t::HALF;
        case DType::float32:
            return fe::DataType_t::FLOAT;
        default:
            user_error("cuDNN is not used for {}; remove engine(\"cudnn\") from the kernel's schedule", name(type));
    }
}

/// Builds the frontend's graph of a step. Tensor i of the step has the identifier i + 1.
class GraphBuilder {
public:
    GraphBuilder(const GraphEngineStep &step, const SymbolValues &symbols) : step_(step), symbols_(symbols) {}

    std::shared_ptr<fe::graph::Graph> build() {
        graph_->set_io_data_type(data_type(step_.tensors[0].dtype))
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        TensorPointer value = step_.operation == GraphEngineStep::Operation::convolution ? convolution() : attention();
        for (const EnginePointwise &next : step_.epilogue) {
            value = pointwise(value, next);
        }
        const EngineTensor &result = step_.tensors.back();
        value->set_output(true).set_uid(static_cast<std::int64_t>(step_.tensors.size())).set_data_type(data_type(result.dtype));
        value->set_dim(values(result.sizes)).set_stride(values(result.strides));
        return graph_;
    }

private:
    std::vector<std::int64_t> values(const std::vector<Extent> &extents) const {
        std::vector<std::int64_t> result;
        for (const Extent &extent : extents) {
            result.push_back(extent.evaluate(symbols_));
        }
        return result;
    }

    TensorPointer tensor(int index) {
        const EngineTensor &t = step_.tensors[index];
        return graph_->tensor(Tensor_attributes()
                                  .set_uid(index + 1)
                                  .set_dim(values(t.sizes))
                                  .set_stride(values(t.strides))
                                  .set_data_type(data_type(t.dtype)));
    }

    TensorPointer convolution() {
        const std::vector<std::int64_t> in = values(step_.tensors[0].sizes), taps = values(step_.tensors[1].sizes),
                                        out = values(step_.tensors.back().sizes);
        std::vector<std::int64_t> behind;  // padding, so that the last window ends there
        for (std::size_t d = 0; d < step_.padding.size(); d++) {
            const std::int64_t last = (out[d + 2] - 1) * step_.strides[d] + (taps[d + 2] - 1) * step_.dilations[d] - step_.padding[d];
            behind.push_back(std::max<std::int64_t>(last - (in[d + 2] - 1), 0));
        }
        return graph_->conv_fprop(tensor(0), tensor(1),
                                  fe::graph::Conv_fprop_attributes()
                                      .set_pre_padding(step_.padding)
                                      .set_post_padding(behind)
                                      .set_stride(step_.strides)
                                      .set_dilation(step_.dilations));
    }

    TensorPointer attention() {
        fe::graph::SDPA_attributes attributes;
        attributes.set_name("attention").set_generate_stats(false).set_attn_scale(step_.scale);
        if (step_.causal) {
            attributes.set_causal_mask(true);
        }
        return graph_->sdpa(tensor(0), tensor(1), tensor(2), attributes)[0];
    }

    TensorPointer pointwise(const TensorPointer &value, const EnginePointwise &next) {
        fe::graph::Pointwise_attributes attributes;
        if (next.op == EnginePointwise::Op::relu) {
            return graph_->pointwise(value, attributes.set_mode(fe::PointwiseMode_t::RELU_FWD));
        }
        attributes.set_mode(next.op == EnginePointwise::Op::add ? fe::PointwiseMode_t::ADD : fe::PointwiseMode_t::MUL);
        return graph_->pointwise(value, next.tensor < 0 ? graph_->tensor(next.number) : tensor(next.tensor), attributes);
    }

    const GraphEngineStep &step_;
    const SymbolValues &symbols_;
    std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

bool is_empty(const EngineTensor &tensor, const SymbolValues &symbols) {
    return std::any_of(tensor.sizes.begin(), tensor.sizes.end(), [&](const Extent &size) { return size.evaluate(symbols) == 0; });
}

}  // namespace

struct CudnnEngine::State {
    std::shared_ptr<fe::graph::Graph> graph;  ///< none where the result is empty
    std::int64_t plan = 0, workspace = 0;
    std::string kernel;
};

CudnnEngine::CudnnEngine(const GraphEngineStep &step, const std::string &kernel, const SymbolValues &symbols)
    : state_(std::make_unique<State>()) {
    State &s = *state_;
    s.kernel = kernel;
    if (is_empty(step.tensors.back(), symbols)) {
        return;
    }
    const std::lock_guard lock(cudnn().mutex);
    const cudnnHandle_t handle = cudnn().open();
    const auto demand = [&](fe::error_t status) {
        if (status.is_bad()) {
            std::string message = status.get_message();
            std::replace(message.begin(), message.end(), '\n', ' ');
            user_error("kernel {}: cuDNN {} has no plan for it ({}); remove engine(\"cudnn\") from its schedule", kernel, cudnn_version(),
                       message);
        }
    };
    s.graph = GraphBuilder(step, symbols).build();
    demand(s.graph->validate());
    demand(s.graph->build_operation_graph(handle));
    demand(s.graph->create_execution_plans({fe::HeurMode_t::A}));
    s.graph->deselect_workspace_greater_than(engine_workspace_bytes);
    demand(s.graph->check_support());
    // Plans that this version proposes but cannot build are passed over; where there are fewer than wanted, the last one serves.
    fe::error_t status{fe::error_code_t::GRAPH_NOT_SUPPORTED, "it proposes none"};
    int built = 0;
    for (std::int64_t plan = 0; plan < s.graph->get_execution_plan_count() && built <= step.algorithm; plan++) {
        status = s.graph->build_plan_at_index(plan);
        if (status.is_good()) {
            s.plan = plan;
            built++;
        }
    }
    if (built == 0) {
        demand(status);
    }
    s.workspace = s.graph->get_workspace_size_plan_at_index(s.plan);
}

CudnnEngine::~CudnnEngine() = default;

std::int64_t CudnnEngine::workspace_bytes() const { return state_->workspace; }

void CudnnEngine::enqueue(const std::vector<CUdeviceptr> &tensors, CUdeviceptr workspace, CUstream stream) const {
    State &s = *state_;
    if (!s.graph) {
        return;
    }
    std::unordered_map<std::int64_t, void *> addresses;
    for (std::size_t i = 0; i < tensors.size(); i++) {
        addresses[static_cast<std::int64_t>(i) + 1] = reinterpret_cast<void *>(tensors[i]);
    }
    const std::lock_guard lock(cudnn().mutex);
    const cudnnHandle_t handle = cudnn().open();
    const cudnnStatus_t status = fe::detail::set_stream(handle, reinterpret_cast<cudaStream_t>(stream));
    internal_assert(status == CUDNN_STATUS_SUCCESS, "kernel {}: giving cuDNN a stream: its status {}", s.kernel, static_cast<int>(status));
    fe::error_t result = s.graph->execute_plan_at_index(handle, addresses, reinterpret_cast<void *>(workspace), s.plan);
    internal_assert(result.is_good(), "kernel {}: cuDNN: {}", s.kernel, result.get_message());
}

bool have_cudnn(std::string *why_not) { return is_usable(cudnn, why_not); }

std::string cudnn_version() {
    const std::size_t version = cudnn().version;
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace tilewright

#else  // built where cuDNN's headers or those of its frontend were missing: the engine says so

namespace tilewright {
namespace {

constexpr const char *reason = "Tilewright was built without cuDNN's headers; install them and build again, or use --engines none";

}  // namespace

struct CudnnEngine::State {};
CudnnEngine::CudnnEngine(const GraphEngineStep &, const std::string &kernel, const SymbolValues &) {
    user_error("kernel {}: {}", kernel, reason);
}
CudnnEngine::~CudnnEngine() = default;
std::int64_t CudnnEngine::workspace_bytes() const { return 0; }
void CudnnEngine::enqueue(const std::vector<CUdeviceptr> &, CUdeviceptr, CUstream) const {}

bool have_cudnn(std::string *why_not) {
    if (why_not) {
        *why_not = reason;
    }
    return false;
}
std::string cudnn_version() { return "none"; }

}  // namespace tilewright

#endif
