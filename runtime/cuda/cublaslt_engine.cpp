#include "runtime/cuda/cublaslt_engine.h"

#include <algorithm>

#include "dsl/error.h"

#if __has_include(<cublasLt.h>)

#include <cublasLt.h>

#include "runtime/usable.h"

namespace tilewright {

namespace {

struct CublasLt {
    DynamicLibrary library{{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}};
    decltype(&cublasLtCreate) create = library["cublasLtCreate"];
    decltype(&cublasLtGetVersion) version = library["cublasLtGetVersion"];
    decltype(&cublasLtMatmul) matmul = library["cublasLtMatmul"];
    decltype(&cublasLtMatmulDescCreate) desc_create = library["cublasLtMatmulDescCreate"];
    decltype(&cublasLtMatmulDescDestroy) desc_destroy = library["cublasLtMatmulDescDestroy"];
    decltype(&cublasLtMatmulDescSetAttribute) desc_set = library["cublasLtMatmulDescSetAttribute"];
    decltype(&cublasLtMatrixLayoutCreate) layout_create = library["cublasLtMatrixLayoutCreate"];
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = library["cublasLtMatrixLayoutDestroy"];
    decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = library["cublasLtMatrixLayoutSetAttribute"];
    decltype(&cublasLtMatmulPreferenceCreate) preference_create = library["cublasLtMatmulPreferenceCreate"];
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = library["cublasLtMatmulPreferenceDestroy"];
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = library["cublasLtMatmulPreferenceSetAttribute"];
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = library["cublasLtMatmulAlgoGetHeuristic"];
};

const CublasLt &cublaslt() {
    static const CublasLt instance;
    return instance;
}

void check(cublasStatus_t status, const std::string &what) {
    internal_assert(status == CUBLAS_STATUS_SUCCESS, "{}: cuBLASLt's status {}", what, static_cast<int>(status));
}

cublasLtHandle_t handle() {
    static const cublasLtHandle_t instance = [] {
        cuda_device();
        cublasLtHandle_t created = nullptr;
        check(cublaslt().create(&created), "opening cuBLASLt");
        return created;
    }();
    return instance;
}

cudaDataType_t data_type(DType type) {
    switch (type) {
        case DType::bfloat16:
            return CUDA_R_16BF;
        case DType::float16:
            return CUDA_R_16F;
        case DType::float32:
            return CUDA_R_32F;
        case DType::float64:
            return CUDA_R_64F;
        default:
            user_error("cuBLASLt is not used for {}; remove engine(\"cublaslt\") from the kernel's schedule", name(type));
    }
}

cublasLtEpilogue_t epilogue(const std::string &name, bool bias) {
    if (name.empty()) {
        return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
    if (name == "relu") {
        return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    }
    if (name == "gelu_tanh") {
        return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    }
    internal_error("cuBLASLt has no epilogue {}", name);
}

/// cuBLASLt is column-major, so that a row-major [rows, columns] matrix is its [columns, rows].
cublasLtMatrixLayout_t layout(DType type, std::int64_t columns, std::int64_t rows, std::int64_t row_stride, std::int64_t batch,
                              std::int64_t batch_stride) {
    cublasLtMatrixLayout_t result = nullptr;
    check(cublaslt().layout_create(&result, data_type(type), static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows),
                                   std::max<std::int64_t>(row_stride, columns)),
          "describing a matrix");
    const auto count = static_cast<std::int32_t>(batch);
    check(cublaslt().layout_set(result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)), "describing a matrix");
    check(cublaslt().layout_set(result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride, sizeof(batch_stride)),
          "describing a matrix");
    return result;
}

}  // namespace

/// D = A B row-major is, column-major, Dᵀ = Bᵀ Aᵀ: the engine's first operand is our B.
struct MatmulEngine::State {
    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    int chosen = 0;
    double alpha64 = 1.0, beta64 = 0.0;
    float alpha32 = 1.0F, beta32 = 0.0F;
    bool in_double = false, empty = false;
    std::string kernel;
};

MatmulEngine::MatmulEngine(const MatmulEngineStep &step, const std::string &kernel, const SymbolValues &symbols)
    : state_(std::make_unique<State>()) {
    State &s = *state_;
    s.kernel = kernel;
    const auto value = [&](const Extent &extent) { return extent.evaluate(symbols); };
    const std::int64_t m = value(step.m), n = value(step.n), k = value(step.k), batch = value(step.batch);
    s.empty = m == 0 || n == 0 || batch == 0;
    if (s.empty) {
        return;
    }
    const CublasLt &lt = cublaslt();
    s.in_double = step.input_type == DType::float64;
    s.alpha32 = step.alpha;
    s.alpha64 = step.alpha;
    // Float32 products stay float32 (no tf32): eager's error is the bar.
    check(lt.desc_create(&s.description, s.in_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, s.in_double ? CUDA_R_64F : CUDA_R_32F),
          "describing a product");
    const cublasOperation_t first = step.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = step.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(lt.desc_set(s.description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)), "describing a product");
    check(lt.desc_set(s.description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)), "describing a product");
    const cublasLtEpilogue_t after = epilogue(step.epilogue, step.bias >= 0);
    check(lt.desc_set(s.description, CUBLASLT_MATMUL_DESC_EPILOGUE, &after, sizeof(after)), "describing a product");
    s.first = layout(step.input_type, step.transpose_b ? k : n, step.transpose_b ? n : k, value(step.b_row_stride), batch,
                     value(step.b_batch_stride));
    s.second = layout(step.input_type, step.transpose_a ? m : k, step.transpose_a ? k : m, value(step.a_row_stride), batch,
                      value(step.a_batch_stride));
    s.result = layout(step.output_type, n, m, value(step.d_row_stride), batch, value(step.d_batch_stride));

    cublasLtMatmulPreference_t preference = nullptr;
    check(lt.preference_create(&preference), "choosing an algorithm");
    const std::uint64_t workspace = engine_workspace_bytes;
    lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
    for (const cublasLtMatmulPreferenceAttributes_t operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
        const std::uint32_t alignment = 16;  // callers' tensors may start anywhere in theirs
        lt.preference_set(preference, operand, &alignment, sizeof(alignment));
    }
    if (step.bias >= 0) {
        const void *any = reinterpret_cast<const void *>(std::uintptr_t{256});  // the heuristics want to see one
        lt.desc_set(s.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &any, sizeof(any));
    }
    constexpr int most = 16;
    s.found.resize(most);
    int count = 0;
    const cublasStatus_t status =
        lt.heuristic(handle(), s.description, s.first, s.second, s.result, s.result, preference, most, s.found.data(), &count);
    lt.preference_destroy(preference);
    s.found.resize(status == CUBLAS_STATUS_SUCCESS ? count : 0);
    if (s.found.empty()) {
        user_error(
            "kernel {}: cuBLASLt has no algorithm for this product ({} x {} x {}, {}); remove engine(\"cublaslt\") from its schedule",
            kernel, m, n, k, name(step.input_type));
    }
    s.chosen = step.algorithm < 0 ? 0 : std::min<int>(step.algorithm, static_cast<int>(s.found.size()) - 1);
}

MatmulEngine::~MatmulEngine() {
    if (state_->description != nullptr) {
        cublaslt().desc_destroy(state_->description);
    }
    for (cublasLtMatrixLayout_t layout : {state_->first, state_->second, state_->result}) {
        if (layout != nullptr) {
            cublaslt().layout_destroy(layout);
        }
    }
}

int MatmulEngine::algorithms() const { return static_cast<int>(state_->found.size()); }
std::int64_t MatmulEngine::workspace_bytes() const {
    return state_->empty ? 0 : static_cast<std::int64_t>(state_->found[state_->chosen].workspaceSize);
}

void MatmulEngine::enqueue(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr d, CUdeviceptr workspace, CUstream stream) const {
    const State &s = *state_;
    if (s.empty) {
        return;
    }
    const CublasLt &lt = cublaslt();
    if (bias != 0) {
        check(lt.desc_set(s.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)), "giving the bias");
    }
    const void *alpha = s.in_double ? static_cast<const void *>(&s.alpha64) : &s.alpha32;
    const void *beta = s.in_double ? static_cast<const void *>(&s.beta64) : &s.beta32;
    void *result = reinterpret_cast<void *>(d);
    check(lt.matmul(handle(), s.description, alpha, reinterpret_cast<void *>(b), s.first, reinterpret_cast<void *>(a), s.second, beta,
                    result, s.result, result, s.result, &s.found[s.chosen].algo, reinterpret_cast<void *>(workspace),
                    workspace != 0 ? engine_workspace_bytes : 0, reinterpret_cast<cudaStream_t>(stream)),
          fmt::format("kernel {}", s.kernel));
}

bool have_cublaslt(std::string *why_not) { return is_usable(cublaslt, why_not); }

std::string cublaslt_version() {
    const std::size_t version = cublaslt().version();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace tilewright

#else  // built where there was no CUDA toolkit: the engine says so

namespace tilewright {
namespace {

constexpr const char *reason = "Tilewright was built without cuBLASLt's header; install it and build again, or use --engines none";

}  // namespace

struct MatmulEngine::State {};
MatmulEngine::MatmulEngine(const MatmulEngineStep &, const std::string &kernel, const SymbolValues &) {
    user_error("kernel {}: {}", kernel, reason);
}
MatmulEngine::~MatmulEngine() = default;
int MatmulEngine::algorithms() const { return 0; }
std::int64_t MatmulEngine::workspace_bytes() const { return 0; }
void MatmulEngine::enqueue(CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUstream) const {}

bool have_cublaslt(std::string *why_not) {
    if (why_not) {
        *why_not = reason;
    }
    return false;
}
std::string cublaslt_version() { return "none"; }

}  // namespace tilewright

#endif
