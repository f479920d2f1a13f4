#include "apps/python/c_api.h"

#include <Halide.h>
#include <algorithm>
#include <boost/json.hpp>
#include <exception>
#include <fmt/ranges.h>
#include <new>
#include <string>
#include <vector>

#include "apps/api/logging.h"
#include "apps/api/model.h"
#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/cuda/driver.h"
#include "runtime/outputs.h"

struct tilewright_model {
    tilewright::Model model;
};

namespace {

using namespace tilewright;

struct LastError {
    std::string message;
    bool users_mistake = false;
};
thread_local LastError last_error;
thread_local std::string label;

/// What `work` returns, or `failed` with the thread's error set.
template<typename Result, typename Work> Result guarded(Result failed, Work &&work) {
    try {
        return work();
    } catch (const UserError &error) {
        last_error = {error.what(), true};
    } catch (const std::bad_alloc &) {
        last_error = {"out of memory", true};
    } catch (const std::exception &error) {
        last_error = {error.what(), false};
    } catch (const Halide::Error &error) {  // is no std::exception
        last_error = {error.what(), false};
    }
    return failed;
}

constexpr DType last_dtype = DType::float8_e8m0fnu;

Tensor to_tensor(const tilewright_tensor &given, bool needs_data) {
    if (given.rank < 0 || given.rank > TILEWRIGHT_MAX_RANK) {
        user_error("a tensor of {} dimensions; at most {} are possible", given.rank, static_cast<int>(TILEWRIGHT_MAX_RANK));
    }
    if (given.dtype < 0 || given.dtype > static_cast<std::int32_t>(last_dtype)) {
        user_error("{} is the number of no element type; tilewright_dtype() gives them", given.dtype);
    }
    const bool is_empty = std::any_of(given.sizes, given.sizes + given.rank, [](std::int64_t size) { return size == 0; });
    if (needs_data && given.data == nullptr && !is_empty) {
        user_error("a tensor has no data; give the address of its first element");
    }
    Tensor tensor;
    tensor.dtype = static_cast<DType>(given.dtype);
    tensor.sizes.assign(given.sizes, given.sizes + given.rank);
    tensor.strides.assign(given.strides, given.strides + given.rank);
    tensor.data = static_cast<std::byte *>(given.data);
    return tensor;
}

std::vector<Tensor> to_tensors(const tilewright_tensor *given, std::int32_t count, bool needs_data) {
    if (count < 0 || (given == nullptr && count > 0)) {
        user_error("{} tensors cannot be read from {}", count, given == nullptr ? "NULL" : "an array");
    }
    std::vector<Tensor> tensors;
    for (std::int32_t i = 0; i < count; ++i) {
        tensors.push_back(to_tensor(given[i], needs_data));
    }
    return tensors;
}

/// The outputs that a caller provides, which must be as they were described.
std::vector<Tensor> to_outputs(const Plan &plan, std::span<const Tensor> inputs, const tilewright_tensor *given) {
    const std::vector<OutputPlace> places = describe_outputs(plan, inputs);
    std::vector<Tensor> outputs = to_tensors(given, static_cast<std::int32_t>(places.size()), true);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (outputs[i].dtype != places[i].dtype || outputs[i].sizes != places[i].sizes) {
            user_error("output {} is {} {} where {} {} is written; allocate it as tilewright_describe() tells", i, name(outputs[i].dtype),
                       fmt::format("[{}]", fmt::join(outputs[i].sizes, ", ")), name(places[i].dtype),
                       fmt::format("[{}]", fmt::join(places[i].sizes, ", ")));
        }
    }
    return outputs;
}

std::string text_of(const boost::json::value &value) { return std::string(value.as_string()); }

void set_option(Options &options, const std::string &key, const boost::json::value &value) {
    if (key == "target") {
        options.target = text_of(value);
    } else if (key == "architecture") {
        options.architecture = text_of(value);
    } else if (key == "schedule") {
        options.schedule = text_of(value);
    } else if (key == "engines") {
        options.engines = text_of(value);
    } else if (key == "fusion") {
        options.fusion = text_of(value);
    } else if (key == "jobs") {
        options.jobs = value.to_number<int>();
    } else if (key == "strict") {
        options.strict = value.as_bool();
    } else if (key == "deterministic") {
        options.deterministic = value.as_bool();
    } else if (key == "cache") {
        options.cache = value.as_bool();
    } else {
        user_error(
            "load() has no option \"{}\"; it takes target, architecture, schedule, engines, fusion, jobs, strict, deterministic and cache",
            key);
    }
}

Options parse_options(const char *text) {
    Options options;
    if (text == nullptr) {
        return options;
    }
    boost::system::error_code malformed;
    const boost::json::value parsed = boost::json::parse(text, malformed);
    if (malformed || !parsed.is_object()) {
        user_error("the options are no JSON object; write {{\"target\": \"cpu\"}}");
    }
    for (const auto &[key, value] : parsed.as_object()) {
        try {
            set_option(options, std::string(key), value);
        } catch (const UserError &) {
            throw;
        } catch (const std::exception &) {
            user_error("option \"{}\" has a value of the wrong type", std::string(key));
        }
    }
    return options;
}

}  // namespace

const char *tilewright_error(int32_t *users_mistake) {
    if (users_mistake != nullptr) {
        *users_mistake = last_error.users_mistake ? 1 : 0;
    }
    return last_error.message.c_str();
}

int32_t tilewright_dtype(const char *name) {
    const std::optional<DType> type = name == nullptr ? std::nullopt : parse_dtype(name);
    return type ? static_cast<int32_t>(*type) : -1;
}

tilewright_model *tilewright_load(const char *archive, const char *options) {
    static const bool logging = (configure_logging(), true);
    return guarded(static_cast<tilewright_model *>(nullptr), [&] {
        (void)logging;
        if (archive == nullptr) {
            user_error("load() got no archive; give the path of one that torch.export.save wrote");
        }
        return new tilewright_model{Model::load(archive, parse_options(options))};
    });
}

void tilewright_free(tilewright_model *model) { delete model; }

const char *tilewright_target(const tilewright_model *model) { return model->model.plan().target == TargetKind::cpu ? "cpu" : "cuda"; }

int32_t tilewright_device(const tilewright_model *model) {
    return model->model.plan().target == TargetKind::cpu ? -1 : guarded(-1, [] { return static_cast<int32_t>(cuda_device().device); });
}

int32_t tilewright_input_count(const tilewright_model *model) { return static_cast<int32_t>(model->model.plan().user_inputs.size()); }
int32_t tilewright_output_count(const tilewright_model *model) { return static_cast<int32_t>(model->model.plan().user_outputs.size()); }

const char *tilewright_input_label(const tilewright_model *model, int32_t input) {
    const bool exists = input >= 0 && input < tilewright_input_count(model);
    label = exists ? input_label(model->model.plan(), input) : fmt::format("input {}, which the model has not", input);
    return label.c_str();
}

const char *tilewright_input_name(const tilewright_model *model, int32_t input) {
    const Plan &plan = model->model.plan();
    const bool exists = input >= 0 && input < tilewright_input_count(model);
    label = exists ? plan.buffers[plan.user_inputs[input]].name : "";
    return label.c_str();
}

int32_t tilewright_describe(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, tilewright_output *outputs) {
    return guarded(-1, [&] {
        const std::vector<OutputPlace> places = describe_outputs(model->model.plan(), to_tensors(inputs, count, false));
        for (std::size_t i = 0; i < places.size(); i++) {
            const OutputPlace &place = places[i];
            tilewright_output &output = outputs[i];
            output = {};
            if (place.sizes.size() > TILEWRIGHT_MAX_RANK) {
                user_error("output {} has {} dimensions; at most {} are possible", i, place.sizes.size(),
                           static_cast<int>(TILEWRIGHT_MAX_RANK));
            }
            output.tensor.dtype = static_cast<int32_t>(place.dtype);
            output.tensor.rank = static_cast<int32_t>(place.sizes.size());
            std::copy(place.sizes.begin(), place.sizes.end(), output.tensor.sizes);
            std::copy(place.strides.begin(), place.strides.end(), output.tensor.strides);
            output.is_input = place.input;
            output.is_output = place.output;
        }
        return 0;
    });
}

int32_t tilewright_run(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, const tilewright_tensor *outputs,
                       void *stream) {
    return guarded(-1, [&] {
        const std::vector<Tensor> given = to_tensors(inputs, count, true);
        model->model.executor().run_into(given, to_outputs(model->model.plan(), given, outputs), stream);
        return 0;
    });
}
