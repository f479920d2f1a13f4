#include "dsl/capture/signature.h"

#include "dsl/capture/json.h"

namespace tilewright {
namespace {

namespace json = boost::json;

std::string name_of(const json::object &spec) {
    return std::string(as_text(field(as_object(field(spec, "arg"), "arg"), "name"), "a tensor's name"));
}

Argument constant(const json::value &value) {
    const auto [kind, content] = as_variant(value, "a constant input");
    if (kind == "as_none") {
        return {};
    }
    if (kind == "as_int") {
        return Extent(as_integer(*content, "a constant input"));
    }
    if (kind == "as_float") {
        return as_number(*content, "a constant input");
    }
    if (kind == "as_string") {
        return std::string(as_text(*content, "a constant input"));
    }
    if (kind == "as_bool") {
        return as_boolean(*content, "a constant input");
    }
    user_error("constant inputs of the kind {} are not supported", kind);
}

InputSpec read_input(Program &program, GraphReader &reader, std::string_view kind, const json::object &spec) {
    InputSpec input;
    const auto weight = [&](InputKind weight_kind, std::string_view name_field) {
        input.kind = weight_kind;
        input.qualified_name = as_text(field(spec, name_field), name_field);
        input.placeholder = reader.add_placeholder(name_of(spec))->name;
    };
    if (kind == "user_input") {
        const auto [argument_kind, content] = as_variant(field(spec, "arg"), "an input");
        if (argument_kind == "as_tensor") {
            const std::string name(as_text(field(as_object(*content, "an input"), "name"), "a tensor's name"));
            input.placeholder = reader.add_placeholder(name)->name;
        } else if (argument_kind == "as_sym_int") {
            const auto [inner_kind, inner] = as_variant(*content, "an input");
            if (inner_kind == "as_name") {
                input.placeholder = reader.add_placeholder(std::string(as_text(*inner, "an input")))->name;
            } else {
                input.constant = reader.argument(field(spec, "arg"));
            }
        } else {
            input.constant = reader.argument(field(spec, "arg"));
        }
        if (input.constant) {
            input.placeholder = program.graph.placeholder("constant", {})->name;
        }
    } else if (kind == "constant_input") {
        input.constant = constant(field(spec, "value"));
        input.placeholder = program.graph.placeholder(std::string(as_text(field(spec, "name"), "an input's name")), {})->name;
    } else if (kind == "parameter") {
        weight(InputKind::parameter, "parameter_name");
    } else if (kind == "buffer") {
        weight(InputKind::buffer, "buffer_name");
    } else if (kind == "tensor_constant") {
        weight(InputKind::constant, "tensor_constant_name");
    } else {
        user_error("inputs of the kind {} are not supported; export a model of plain tensors", kind);
    }
    return input;
}

}  // namespace

void read_inputs(Program &program, GraphReader &reader, const json::object &signature) {
    for (const json::value &element : as_array(field(signature, "input_specs"), "input_specs")) {
        const auto [kind, content] = as_variant(element, "an input");
        const std::string context = fmt::format("input {}", program.inputs.size());
        program.inputs.push_back(
            in_context([&] { return context; }, [&] { return read_input(program, reader, kind, as_object(*content, "an input")); }));
    }
}

void read_outputs(Program &program, GraphReader &reader, const json::object &signature) {
    const auto placeholder_of_weight = [&](std::string_view name) {
        for (const InputSpec &input : program.inputs) {
            if (input.kind != InputKind::user_input && input.qualified_name == name) {
                return input.placeholder;
            }
        }
        user_error("it writes {}, which is no input", name);
    };
    ArgumentList values;
    for (const json::value &element : as_array(field(signature, "output_specs"), "output_specs")) {
        const auto [kind, content] = as_variant(element, "an output");
        in_context([&] { return fmt::format("output {}", values.size()); },
                   [&] {
                       const json::object &spec = as_object(*content, "an output");
                       OutputSpec output;
                       if (kind == "user_output") {
                           values.push_back(reader.argument(field(spec, "arg")));
                       } else if (kind == "buffer_mutation" || kind == "parameter_mutation") {
                           output.kind = OutputKind::buffer_mutation;
                           const std::string_view weight = kind == "buffer_mutation" ? "buffer_name" : "parameter_name";
                           output.target = placeholder_of_weight(as_text(field(spec, weight), weight));
                           values.push_back(reader.value(name_of(spec)));
                       } else if (kind == "user_input_mutation") {
                           output.kind = OutputKind::user_input_mutation;
                           const Argument target = reader.value(as_text(field(spec, "user_input_name"), "user_input_name"));
                           if (target.node() == nullptr || target.node()->opcode != Opcode::placeholder) {
                               user_error("it writes something that is no input");
                           }
                           output.target = target.node()->name;
                           values.push_back(reader.value(name_of(spec)));
                       } else {
                           user_error("outputs of the kind {} are not supported; export the model for inference", kind);
                       }
                       if (output.kind != OutputKind::user_output && values.back().node() == nullptr) {
                           user_error("it writes back something that is no tensor");
                       }
                       program.outputs.push_back(output);
                   });
    }
    program.graph.output(std::move(values));
}

}  // namespace tilewright
