// Every tensor is an alias of some storage, seen through a chain of views. A write gives the storage a new value; a later read through
// another alias is taken from that value again. What is left is a graph in which nothing changes once it is computed.
#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "dsl/error.h"
#include "lowering/decompose/decompose.h"
#include "lowering/decompose/functionalize_views.h"
#include "lowering/decompose/functionalize_writes.h"

namespace tilewright {
namespace {

/// Memory that tensors share, and the value it holds now.
struct Storage {
    Node *current = nullptr;
    TensorMeta meta;                        ///< of the tensor that owns it
    int generation = 0;                     ///< counts writes
    Node *placeholder = nullptr;            ///< where it comes from outside
    std::vector<ViewStep> written_through;  ///< the views of the last write, and what it wrote: a read through the same views gives it
    Node *written_value = nullptr;
};

bool same_views(const std::vector<ViewStep> &a, const std::vector<ViewStep> &b) {
    const auto same_step = [](const ViewStep &x, const ViewStep &y) {
        bool same = x.kind == y.kind && x.result == y.result && x.parent == y.parent && x.arguments.size() == y.arguments.size();
        for (std::size_t i = 0; same && i < x.arguments.size(); ++i) {
            same = print(x.arguments[i].value) == print(y.arguments[i].value);
        }
        return same;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_step);
}

/// A tensor: a storage seen through views, first view first. In-place operators and what they write are one alias.
struct Alias {
    std::shared_ptr<Storage> storage;
    std::vector<ViewStep> views;
    TensorMeta meta;
    Node *current = nullptr;  ///< its value as of `generation`
    int generation = 0;
};

class Functionalizer {
public:
    explicit Functionalizer(Program &program) : program_(program), graph_(program.graph) {}

    void run() {
        // Nodes are added and erased on the way; the walk is over those that the program had.
        std::vector<Node *> nodes;
        for (const auto &node : graph_.nodes()) {
            nodes.push_back(node.get());
        }
        for (Node *node : nodes) {
            graph_.set_insert_point(node);
            update_arguments(node);
            visit(node);
        }
        graph_.set_insert_point(nullptr);
        return_written_inputs();
        for (auto place = written_.rbegin(); place != written_.rend(); ++place) {
            graph_.erase(*place);
        }
        graph_.eliminate_dead_code();
    }

private:
    std::shared_ptr<Alias> own_storage(Node *node, const TensorMeta &meta) {
        auto storage = std::make_shared<Storage>();
        storage->current = node;
        storage->meta = meta;
        storage->placeholder = node->opcode == Opcode::placeholder ? node : nullptr;
        return std::make_shared<Alias>(Alias{storage, {}, meta, node, 0});
    }

    std::shared_ptr<Alias> view_of(const Alias &parent, const ViewStep &step, Node *node) {
        auto alias = std::make_shared<Alias>(parent);
        if (step.kind == ViewStep::Kind::as_strided) {
            // Sizes, strides and offset count from the storage, whatever tensor it was called on.
            alias->views.clear();
            if (!parent.storage->meta.is_contiguous() || !(parent.storage->meta.offset == Extent(0))) {
                user_error("{}: as_strided over a tensor with strides of its own is not supported; call contiguous() first", step.origin);
            }
            ViewStep whole = step;
            whole.parent = parent.storage->meta;
            alias->views.push_back(whole);
        } else {
            alias->views.push_back(step);
        }
        alias->meta = step.result;
        alias->current = node;
        alias->generation = parent.storage->generation;
        if (alias->storage->written_value != nullptr && same_views(alias->views, alias->storage->written_through)) {
            alias->current = alias->storage->written_value;
        }
        return alias;
    }

    /// The alias's value now: read again through its views where the storage was written since.
    Node *value_of(Alias &alias) {
        if (alias.generation != alias.storage->generation) {
            Node *value = alias.storage->current;
            if (alias.storage->written_value != nullptr && same_views(alias.views, alias.storage->written_through)) {
                value = alias.storage->written_value;
            } else {
                for (const ViewStep &step : alias.views) {
                    value = read_view(graph_, step, value);
                }
            }
            alias.current = value;
            alias.generation = alias.storage->generation;
        }
        return alias.current;
    }

    Argument updated(const Argument &argument) {
        if (Node *node = argument.node()) {
            const auto found = aliases_.find(node);
            return found == aliases_.end() ? argument : Argument(value_of(*found->second));
        }
        if (const ArgumentList *list = argument.get_if<ArgumentList>()) {
            ArgumentList result;
            for (const Argument &element : *list) {
                result.push_back(updated(element));
            }
            return result;
        }
        return argument;
    }

    /// All at once: what one argument becomes may be what another was.
    void update_arguments(Node *node) {
        sources_.clear();
        std::vector<NamedArgument> arguments;
        for (const NamedArgument &argument : node->arguments) {
            sources_.push_back(argument.value.node());
            arguments.push_back({argument.name, updated(argument.value)});
        }
        if (!node->arguments.empty()) {
            node->set_arguments(std::move(arguments));
        }
    }

    /// The alias that the program passed as an argument, before it was replaced by its value.
    std::shared_ptr<Alias> passed_alias(std::size_t argument) {
        const auto found = sources_.size() > argument && sources_[argument] != nullptr ? aliases_.find(sources_[argument]) : aliases_.end();
        return found == aliases_.end() ? nullptr : found->second;
    }

    void visit(Node *node) {
        switch (write_kind(*node)) {
            case WriteKind::none:
                break;
            case WriteKind::refused:
                user_error("node {}: {} cannot be made pure; compute a new tensor instead of resizing one or writing into out=", node->name,
                           node->target);
            case WriteKind::value:
                write(node);
                return;
            case WriteKind::metadata:
                change_view(node);
                return;
        }
        if (node->target == "aten.batch_norm.default" || node->target == "aten.native_batch_norm.default") {
            if (update_running_statistics(node)) {
                return;
            }
        }
        if (node->opcode == Opcode::call_function && node->target == "getitem") {
            take_result(node);
            return;
        }
        const auto *meta = std::get_if<TensorMeta>(&node->meta);
        const Aliasing aliasing = aliasing_of(*node);
        const std::shared_ptr<Alias> parent = aliasing.kind == Aliasing::Kind::none ? nullptr : passed_alias(0);
        if (parent == nullptr) {
            if (meta != nullptr) {
                aliases_[node] = own_storage(node, *meta);
            }
        } else if (aliasing.kind == Aliasing::Kind::identity) {
            aliases_[node] = parent;
        } else if (aliasing.kind == Aliasing::Kind::view) {
            aliases_[node] = view_of(*parent, aliasing.steps[0], node);
            if (aliasing.steps[0].kind == ViewStep::Kind::as_strided && !parent->views.empty()) {
                aliases_[node]->current = read_view(graph_, aliases_[node]->views[0], parent->storage->current);
            }
        } else {
            results_[node] = {parent, aliasing.steps, parent->storage->generation};
        }
    }

    void take_result(Node *node) {
        const auto *meta = std::get_if<TensorMeta>(&node->meta);
        const auto found = results_.find(node->input("tuple"));
        if (meta == nullptr) {
            return;
        }
        if (found == results_.end()) {
            aliases_[node] = own_storage(node, *meta);
            return;
        }
        const auto index = static_cast<std::size_t>(node->find("index")->get_if<Extent>()->value());
        aliases_[node] = view_of(*found->second.parent, found->second.steps[index], node);
        aliases_[node]->generation = found->second.generation;
    }

    void write(Node *node) {
        const std::shared_ptr<Alias> alias = passed_alias(0);
        internal_assert(alias != nullptr, "node {}: {} writes to something that is no tensor", node->name, node->target);
        write_value(*alias, written_value(graph_, *node, alias->meta));
        aliases_[node] = alias;
        written_.push_back(node);
    }

    void write_value(Alias &alias, Node *value) {
        Storage &storage = *alias.storage;
        refuse_shared_weight(storage);
        // `x[i] += y` writes the sum in place and then once more through the subscript.
        if (storage.written_value == value && same_views(alias.views, storage.written_through)) {
            return;
        }
        // What each view of the chain shows before the write; a scatter keeps what it does not cover.
        std::vector<Node *> before{storage.current};
        for (std::size_t i = 0; i + 1 < alias.views.size(); ++i) {
            before.push_back(read_view(graph_, alias.views[i], before.back()));
        }
        Node *whole = value;
        for (std::size_t i = alias.views.size(); i-- > 0;) {
            whole = write_view(graph_, alias.views[i], before[i], whole);
        }
        storage.current = whole;
        ++storage.generation;
        // Elements of an as_strided view may overlap: what was written need not be what is read.
        const bool exact = std::none_of(alias.views.begin(), alias.views.end(),
                                        [](const ViewStep &step) { return step.kind == ViewStep::Kind::as_strided; });
        storage.written_through = alias.views;
        storage.written_value = exact ? value : nullptr;
        if (exact) {
            alias.current = value;
            alias.generation = storage.generation;
        }
    }

    void change_view(Node *node) {
        const std::shared_ptr<Alias> alias = passed_alias(0);
        const Aliasing aliasing = aliasing_of(*node);
        internal_assert(alias != nullptr && aliasing.kind == Aliasing::Kind::view, "node {}: {} is no view", node->name, node->target);
        if (alias->storage->placeholder != nullptr && alias->views.empty()) {
            user_error("node {}: {} changes the shape of the input {} in place; use the operator that returns a view", node->name,
                       node->target, alias->storage->placeholder->name);
        }
        // The tensor object itself changes, so that every name for it sees the new shape.
        *alias = *view_of(*alias, aliasing.steps[0], read_view(graph_, aliasing.steps[0], value_of(*alias)));
        aliases_[node] = alias;
        written_.push_back(node);
    }

    /// Batch norm in training writes its running statistics, which its name does not say.
    bool update_running_statistics(Node *node) {
        const Argument *training = node->find("training");
        const Argument *mean = node->find("running_mean");
        if (training == nullptr || training->get_if<bool>() == nullptr || !*training->get_if<bool>() || mean == nullptr ||
            mean->node() == nullptr) {
            return false;
        }
        std::vector<NamedArgument> arguments;
        std::shared_ptr<Alias> written[2];
        for (std::size_t i = 0; i < node->arguments.size(); ++i) {
            const NamedArgument &argument = node->arguments[i];
            if (argument.name == "running_mean") {
                written[0] = passed_alias(i);
            } else if (argument.name == "running_var") {
                written[1] = passed_alias(i);
            }
            if (argument.name != "cudnn_enabled") {
                arguments.push_back(argument);
            }
        }
        internal_assert(written[0] && written[1], "node {}: {} has no running statistics", node->name, node->target);
        const TensorMeta &statistics = written[0]->meta;
        const auto *single = std::get_if<TensorMeta>(&node->meta);
        const auto *several = std::get_if<std::vector<std::optional<TensorMeta>>>(&node->meta);
        std::vector<std::optional<TensorMeta>> metas =
            several != nullptr ? *several : std::vector<std::optional<TensorMeta>>{*single, statistics, statistics};
        metas.resize(3);
        metas.emplace_back(statistics);
        metas.emplace_back(statistics);
        Node *pure = graph_.call("aten._native_batch_norm_legit_functional.default", std::move(arguments), std::move(metas));
        pure->module_path = node->module_path;
        if (single != nullptr) {
            Node *result = graph_.getitem(pure, 0);
            aliases_[node] = own_storage(result, *single);
        } else {
            graph_.replace_all_uses(node, pure);
        }
        written_.push_back(node);
        write_value(*written[0], graph_.getitem(pure, 3));
        write_value(*written[1], graph_.getitem(pure, 4));
        return true;
    }

    /// Tied weights lie in one storage. A write to one would have to show in the others.
    void refuse_shared_weight(const Storage &storage) const {
        if (storage.placeholder == nullptr || storage.generation > 0) {
            return;
        }
        const InputSpec *written = nullptr;
        for (const InputSpec &input : program_.inputs) {
            if (input.placeholder == storage.placeholder->name) {
                written = &input;
            }
        }
        if (written == nullptr || !written->value) {
            return;
        }
        for (const InputSpec &input : program_.inputs) {
            if (&input != written && input.value && input.value->storage == written->value->storage && input.value->storage_bytes > 0) {
                user_error("{} is written in place but shares its memory with {}; clone one of them in the model", written->qualified_name,
                           input.qualified_name);
            }
        }
    }

    void return_written_inputs() {
        ArgumentList values = graph_.output_values();
        for (const InputSpec &input : program_.inputs) {
            const auto found = aliases_.find(graph_.find(input.placeholder));
            if (found == aliases_.end() || found->second->storage->generation == 0) {
                continue;
            }
            OutputSpec output;
            output.kind = input.kind == InputKind::user_input ? OutputKind::user_input_mutation : OutputKind::buffer_mutation;
            output.target = input.placeholder;
            program_.outputs.push_back(output);
            values.push_back(found->second->storage->current);
        }
        graph_.set_output_values(std::move(values));
    }

    struct Results {
        std::shared_ptr<Alias> parent;
        std::vector<ViewStep> steps;
        int generation = 0;
    };

    Program &program_;
    Graph &graph_;
    std::unordered_map<const Node *, std::shared_ptr<Alias>> aliases_;
    std::unordered_map<const Node *, Results> results_;
    std::vector<Node *> sources_;  ///< arguments of the node being visited, as the program wrote them
    std::vector<Node *> written_;  ///< in-place nodes; nobody reads them any more
};

/// Operators for which aliases matter: those that write, and as_strided, which looks through views at the storage.
bool needs_aliases(const Node &node) {
    return write_kind(node) != WriteKind::none || node.target == "aten.batch_norm.default" ||
           node.target == "aten.native_batch_norm.default" || node.target == "aten.as_strided.default";
}

/// None, numbers and strings are known without running the program; what runs gives tensors.
void drop_constant_outputs(Program &program) {
    ArgumentList values;
    std::vector<OutputSpec> outputs;
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
        const Argument &value = program.graph.output_values()[i];
        if (value.node() != nullptr) {
            values.push_back(value);
            outputs.push_back(program.outputs[i]);
        }
    }
    program.graph.set_output_values(std::move(values));
    program.outputs = std::move(outputs);
}

}  // namespace

void functionalize(Program &program) {
    Graph &graph = program.graph;
    internal_assert(program.outputs.size() == graph.output_values().size(), "{} outputs for {} values", program.outputs.size(),
                    graph.output_values().size());
    drop_constant_outputs(program);
    bool any = false;
    for (auto place = graph.nodes().begin(); place != graph.nodes().end();) {
        Node *node = (place++)->get();
        if (node->target == "aten._assert_tensor_metadata.default" && !graph.has_users(node)) {
            graph.erase(node);
            continue;
        }
        any = any || needs_aliases(*node);
    }
    if (any) {
        Functionalizer(program).run();
    } else {
        graph.eliminate_dead_code();
    }
    verify(graph);
}

}  // namespace tilewright
