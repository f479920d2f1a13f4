#include "apps/python/c_api.h"

#include <algorithm>
#include <boost/json.hpp>
#include <exception>
#include <string>
#include <vector>

#include "apps/api/logging.h"
#include "apps/api/model.h"
#include "dsl/error.h"
#include "runtime/bind_symbols.h"
#include "runtime/cuda_driver.h"
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
    } catch (const std::exception &error) {
        last_error = {error.what(), false};
    }
    return failed;
}

Tensor to_tensor(const tilewright_tensor &given) {
    if (given.rank < 0 || given.rank > TILEWRIGHT_MAX_RANK) {
        user_error("a tensor of {} dimensions; at most {} are possible", given.rank, static_cast<int>(TILEWRIGHT_MAX_RANK));
    }
    Tensor tensor;
    tensor.dtype = static_cast<DType>(given.dtype);
    tensor.sizes.assign(given.sizes, given.sizes + given.rank);
    tensor.strides.assign(given.strides, given.strides + given.rank);
    tensor.data = static_cast<std::byte *>(given.data);
    return tensor;
}

std::vector<Tensor> to_tensors(const tilewright_tensor *given, std::int32_t count) {
    std::vector<Tensor> tensors;
    std::transform(given, given + count, std::back_inserter(tensors), to_tensor);
    return tensors;
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
        options.jobs = static_cast<int>(value.as_int64());
    } else if (key == "strict") {
        options.strict = value.as_bool();
    } else if (key == "deterministic") {
        options.deterministic = value.as_bool();
    } else if (key == "cache") {
        options.cache = value.as_bool();
    } else {
        user_error("load() has no option \"{}\"; it takes target, architecture, schedule, engines, fusion, jobs, strict, deterministic and cache",
                   key);
    }
}

Options parse_options(const char *text) {
    Options options;
    if (text == nullptr) {
        return options;
    }
    const boost::json::value parsed = boost::json::parse(text);
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
    const std::optional<DType> type = parse_dtype(name);
    return type ? static_cast<int32_t>(*type) : -1;
}

tilewright_model *tilewright_load(const char *archive, const char *options) {
    static const bool logging = (configure_logging(), true);
    return guarded(static_cast<tilewright_model *>(nullptr), [&] {
        (void)logging;
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
    label = input_label(model->model.plan(), input);
    return label.c_str();
}

int32_t tilewright_describe(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, tilewright_output *outputs) {
    return guarded(-1, [&] {
        const std::vector<OutputPlace> places = describe_outputs(model->model.plan(), to_tensors(inputs, count));
        for (std::size_t i = 0; i < places.size(); i++) {
            const OutputPlace &place = places[i];
            tilewright_output &output = outputs[i];
            output = {};
            if (place.sizes.size() > TILEWRIGHT_MAX_RANK) {
                user_error("output {} has {} dimensions; at most {} are possible", i, place.sizes.size(), static_cast<int>(TILEWRIGHT_MAX_RANK));
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

int32_t tilewright_run(tilewright_model *model, const tilewright_tensor *inputs, int32_t count, const tilewright_tensor *outputs, void *stream) {
    return guarded(-1, [&] {
        model->model.executor().run_into(to_tensors(inputs, count), to_tensors(outputs, tilewright_output_count(model)), stream);
        return 0;
    });
}
