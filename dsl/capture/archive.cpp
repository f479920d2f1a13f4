#include "dsl/capture/archive.h"
#include "dsl/capture/eager_strides.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "dsl/capture/export_graph.h"
#include "dsl/capture/json.h"
#include "dsl/capture/signature.h"
#include "dsl/capture/weights.h"
#include "dsl/capture/zip_archive.h"

namespace tilewright {
namespace {

namespace json = boost::json;

constexpr std::size_t largest_model_description = std::size_t{1} << 30;
constexpr int schema_major = 8;

/// The folder in the archive that holds everything, with its slash.
std::string root_folder(const ZipArchive &archive, const std::string &path) {
    std::string other_format;
    for (const std::string &name : archive.names()) {
        if (name == "archive_format" || name.ends_with("/archive_format")) {
            return name.substr(0, name.size() - std::string_view("archive_format").size());
        }
        if (name.ends_with("data.pkl")) {
            other_format = "; it looks like a file of torch.save or torch.jit.save";
        }
    }
    user_error("{} is no archive of torch.export{}; write it with torch.export.save(torch.export.export(model, inputs), path)", path,
               other_format);
}

void check_format(const ZipArchive &archive, const std::string &root, const std::string &path) {
    const std::string format = archive.read_text(root + "archive_format", 1024);
    if (format != "pt2") {
        user_error("{}: the archive format is '{}'; only 'pt2', which torch.export.save writes, is read", path, format.substr(0, 40));
    }
    const std::string order = archive.contains(root + "byteorder") ? archive.read_text(root + "byteorder", 1024) : "little";
    if (order != "little") {
        user_error("{}: the byte order is '{}'; export the model on a little-endian machine", path, order.substr(0, 40));
    }
}

/// The name of the only model in the archive.
std::string model_name(const ZipArchive &archive, const std::string &root, const std::string &path) {
    const std::string folder = root + "models/";
    std::vector<std::string> models;
    std::string all;
    for (const std::string &name : archive.names()) {
        if (name.starts_with(folder) && name.ends_with(".json") && name.find('/', folder.size()) == std::string::npos) {
            models.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
            all += (all.empty() ? "" : ", ") + models.back();
        }
    }
    if (models.empty()) {
        user_error("{} holds no model (models/model.json); write it with torch.export.save", path);
    }
    if (models.size() > 1) {
        user_error("{} holds {} models ({}); save each in an archive of its own", path, models.size(), all);
    }
    return models[0];
}

void check_schema(const json::object &document) {
    const json::object &version = as_object(field(document, "schema_version"), "schema_version");
    const std::int64_t major = as_integer(field(version, "major"), "schema_version.major");
    const std::int64_t minor = as_integer(field(version, "minor"), "schema_version.minor");
    if (major != schema_major) {
        const json::value *torch = optional_field(document, "torch_version");
        user_error("its schema is {}.{} (PyTorch {}); schema {} is read: export the model with PyTorch 2.11 to 2.15", major, minor,
                   torch != nullptr && torch->is_string() ? as_text(*torch, "torch_version") : "unknown", schema_major);
    }
}

bool is_symbol(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

SymbolRanges read_ranges(const json::object &document) {
    SymbolRanges ranges;
    for (const auto &entry : as_object(field(document, "range_constraints"), "range_constraints")) {
        const std::string name(entry.key());
        if (!is_symbol(name)) {
            continue;  // of an expression such as 2*s0; it follows from its symbols' ranges
        }
        const json::object &constraint = as_object(entry.value(), "a range");
        SymbolRange range;
        if (const auto *min = optional_field(constraint, "min_val")) {
            range.min = as_integer(*min, "min_val");
        }
        if (const auto *max = optional_field(constraint, "max_val")) {
            range.max = as_integer(*max, "max_val");
        }
        if (range.min > range.max) {
            user_error("the range of {} is empty: {} to {}", name, range.min, range.max);
        }
        ranges[name] = range;
    }
    return ranges;
}

/// A symbol without a constraint may take every size.
void add_unconstrained_symbols(Program &program) {
    std::set<std::string> used;
    for (const auto &node : program.graph.nodes()) {
        if (node->opcode != Opcode::placeholder) {
            continue;
        }
        if (const auto *meta = std::get_if<TensorMeta>(&node->meta)) {
            for (const auto *list : {&meta->sizes, &meta->strides}) {
                for (const Extent &extent : *list) {
                    extent.collect_symbols(used);
                }
            }
        } else if (const auto *size = std::get_if<Extent>(&node->meta)) {
            size->collect_symbols(used);
        }
    }
    for (const std::string &symbol : used) {
        program.symbols.try_emplace(symbol);
    }
}

/// Results that nobody reads need no instruction.
void drop_unread_results(Graph &graph) {
    for (auto place = graph.nodes().begin(); place != graph.nodes().end();) {
        Node *node = (place++)->get();
        if (node->target == "getitem" && !graph.has_users(node)) {
            graph.erase(node);
        }
    }
}

void load_weights(Program &program, const ZipArchive &archive, const std::string &root, const std::string &model) {
    Weights weights;
    for (const char *kind : {"weights", "constants"}) {
        const std::string folder = fmt::format("{}data/{}/", root, kind);
        const std::string config = fmt::format("{}{}_{}_config.json", folder, model, kind);
        if (archive.contains(config)) {
            weights.read_config(archive, config, folder);
        }
    }
    for (InputSpec &input : program.inputs) {
        if (input.kind == InputKind::user_input) {
            continue;
        }
        input.value = weights.load(archive, input.qualified_name);
        Node *placeholder = program.graph.find(input.placeholder);
        const TensorMeta &expected = placeholder->tensor();
        if (input.value->meta.dtype != expected.dtype || input.value->meta.sizes != expected.sizes) {
            user_error("{}: the graph reads {} but the archive holds {}", input.qualified_name, expected.to_string(),
                       input.value->meta.to_string());
        }
        placeholder->meta = input.value->meta;
    }
}

void refuse_data_dependence(const std::vector<std::string> &nodes) {
    if (nodes.empty()) {
        return;
    }
    std::string all;
    for (const std::string &node : nodes) {
        all += (all.empty() ? "" : ", ") + node;
    }
    user_error("sizes and values that depend on data are not supported: {}; rewrite them with fixed sizes, for example with masks", all);
}

void read_model(Program &program, const ZipArchive &archive, const std::string &root, const std::string &model) {
    const json::value parsed = parse_json(archive.read_text(root + "models/" + model + ".json", largest_model_description));
    const json::object &document = as_object(parsed, "the model");
    check_schema(document);
    const json::object &graph_module = as_object(field(document, "graph_module"), "graph_module");
    const json::object &signature = as_object(field(graph_module, "signature"), "signature");
    program.symbols = read_ranges(document);
    SizeReader sizes(program.symbols);
    GraphReader reader(program.graph, sizes, as_object(field(graph_module, "graph"), "graph"));
    read_inputs(program, reader, signature);
    const auto read = [&](const auto &part) {
        try {
            part();
        } catch (const UserError &) {
            // What reads a value that depends on data fails too; the cause is the better message.
            refuse_data_dependence(reader.data_dependent());
            throw;
        }
        refuse_data_dependence(reader.data_dependent());
    };
    read([&] { reader.read_nodes(); });
    if (sizes.met_gpu()) {
        restore_eager_strides(program.graph);
    }
    read([&] { read_outputs(program, reader, signature); });
    add_unconstrained_symbols(program);
    drop_unread_results(program.graph);
    load_weights(program, archive, root, model);
}

}  // namespace

Program read_archive(const std::string &path) {
    Program program;
    program.name = std::filesystem::path(path).filename().string();
    const ZipArchive archive(path);
    const std::string root = root_folder(archive, path);
    check_format(archive, root, path);
    const std::string model = model_name(archive, root, path);
    in_context([&] { return path; }, [&] { read_model(program, archive, root, model); });
    verify(program.graph);
    return program;
}

}  // namespace tilewright
