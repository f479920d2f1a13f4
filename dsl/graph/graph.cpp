#include "dsl/graph/graph.h"

#include <algorithm>
#include <cctype>

#include "dsl/error.h"

namespace tilewright {
namespace {

/// "add_12" → "add", as torch.fx numbers names.
std::string_view without_number(std::string_view name) {
    std::size_t end = name.size();
    while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) {
        --end;
    }
    return end > 1 && end < name.size() && name[end - 1] == '_' ? name.substr(0, end - 1) : name;
}

/// "aten.add.Tensor" → "add_tensor", as torch.fx names calls.
std::string name_for_target(std::string_view target) {
    const std::size_t dot = target.find('.');
    std::string name(dot == std::string_view::npos ? target : target.substr(dot + 1));
    const std::size_t overload = name.rfind(".default");
    if (overload != std::string::npos) {
        name.resize(overload);
    }
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

Argument remap(const Argument &argument, const std::unordered_map<const Node *, Node *> &copies) {
    if (Node *node = argument.node()) {
        return copies.at(node);
    }
    if (const ArgumentList *list = argument.get_if<ArgumentList>()) {
        ArgumentList copied;
        copied.reserve(list->size());
        for (const Argument &element : *list) {
            copied.push_back(remap(element, copies));
        }
        return copied;
    }
    return argument;
}

}  // namespace

Graph Graph::clone() const {
    Graph copy;
    std::unordered_map<const Node *, Node *> copies;
    for (const auto &node : nodes_) {
        Node twin;
        twin.opcode = node->opcode;
        twin.name = node->name;
        twin.target = node->target;
        twin.meta = node->meta;
        twin.module_path = node->module_path;
        for (const NamedArgument &argument : node->arguments) {
            twin.arguments.push_back({argument.name, remap(argument.value, copies)});
        }
        copies[node.get()] = copy.add(twin);
    }
    copy.name_counts_ = name_counts_;
    return copy;
}

Node *Graph::insert(std::unique_ptr<Node> node) {
    Node *added = node.get();
    auto before = nodes_.end();
    if (insert_before_ != nullptr) {
        before = insert_before_->place_;
    } else if (output_ != nullptr) {
        before = output_->place_;
    }
    added->serial_ = next_serial_++;
    added->place_ = nodes_.insert(before, std::move(node));
    added->start_reading();
    by_name_[added->name] = added;
    if (added->opcode == Opcode::output) {
        internal_assert(output_ == nullptr, "a graph has one output node; {} is a second", added->name);
        output_ = added;
    }
    return added;
}

Node *Graph::placeholder(std::string name, Meta meta) {
    auto node = std::make_unique<Node>();
    node->opcode = Opcode::placeholder;
    node->name = unique_name(name);
    node->target = std::move(name);
    node->meta = std::move(meta);
    return insert(std::move(node));
}

Node *Graph::get_attr(std::string attribute, Meta meta) {
    auto node = std::make_unique<Node>();
    node->opcode = Opcode::get_attr;
    node->name = unique_name(attribute);
    node->target = std::move(attribute);
    node->meta = std::move(meta);
    return insert(std::move(node));
}

Node *Graph::call(std::string target, std::vector<NamedArgument> arguments, Meta meta, std::string name) {
    auto node = std::make_unique<Node>();
    node->opcode = Opcode::call_function;
    node->name = unique_name(name.empty() ? name_for_target(target) : name);
    node->target = std::move(target);
    node->arguments = std::move(arguments);
    node->meta = std::move(meta);
    return insert(std::move(node));
}

Node *Graph::getitem(Node *tuple, int index) {
    Meta meta;
    if (const auto *results = std::get_if<std::vector<std::optional<TensorMeta>>>(&tuple->meta)) {
        internal_assert(index >= 0 && static_cast<std::size_t>(index) < results->size(), "{} has no result {}", tuple->name, index);
        if ((*results)[static_cast<std::size_t>(index)]) {
            meta = *(*results)[static_cast<std::size_t>(index)];
        }
    }
    return call("getitem", {{"tuple", tuple}, {"index", Extent(index)}}, std::move(meta));
}

Node *Graph::output(ArgumentList values) {
    auto node = std::make_unique<Node>();
    node->opcode = Opcode::output;
    node->name = unique_name("output");
    node->target = "output";
    node->arguments = {{"values", std::move(values)}};
    Node *before = std::exchange(insert_before_, nullptr);
    Node *added = insert(std::move(node));
    insert_before_ = before;
    return added;
}

Node *Graph::add(const Node &like) {
    internal_assert(!by_name_.contains(like.name), "the name {} is given twice", like.name);
    auto node = std::make_unique<Node>();
    node->opcode = like.opcode;
    node->name = like.name;
    node->target = like.target;
    node->arguments = like.arguments;
    node->meta = like.meta;
    node->module_path = like.module_path;
    return insert(std::move(node));
}

void Graph::set_insert_point(Node *before) { insert_before_ = before; }

Node *Graph::output_node() const {
    internal_assert(output_ != nullptr, "the graph has no output node");
    return output_;
}

const ArgumentList &Graph::output_values() const {
    const Argument *values = output_node()->find("values");
    internal_assert(values != nullptr && values->get_if<ArgumentList>() != nullptr, "the output node has no list of values");
    return *values->get_if<ArgumentList>();
}

void Graph::set_output_values(ArgumentList values) { output_node()->set_arguments({{"values", std::move(values)}}); }

std::vector<Node *> Graph::users(const Node *node) const {
    std::vector<Node *> result;
    result.reserve(node->readers_.size());
    for (const auto &[serial, reader] : node->readers_) {
        result.push_back(reader);
    }
    return result;
}

bool Graph::has_users(const Node *node) const { return !node->readers_.empty(); }

bool Graph::is_reader(const Node *reader, const Node *of) const { return of->readers_.contains(reader->serial_); }

void Graph::replace_all_uses(Node *from, Node *to) {
    for (Node *reader : users(from)) {
        if (reader != to) {
            reader->replace_input(from, to);
        }
    }
}

void Graph::erase(Node *node) {
    internal_assert(node->readers_.empty(), "{} is erased while {} reads it", node->name,
                    node->readers_.empty() ? "" : node->readers_.begin()->second->name);
    if (insert_before_ == node) {
        const auto next = std::next(node->place_);
        insert_before_ = next == nodes_.end() ? nullptr : next->get();
    }
    if (output_ == node) {
        output_ = nullptr;
    }
    node->stop_reading();
    if (const auto found = by_name_.find(node->name); found != by_name_.end() && found->second == node) {
        by_name_.erase(found);
    }
    nodes_.erase(node->place_);
}

int Graph::eliminate_dead_code() {
    int erased = 0;
    // Backwards, so that what only dead nodes read is dead when its turn comes.
    for (auto place = nodes_.end(); place != nodes_.begin();) {
        --place;
        Node *node = place->get();
        if (node->opcode != Opcode::placeholder && node->opcode != Opcode::output && node->readers_.empty()) {
            ++place;
            erase(node);
            ++erased;
        }
    }
    return erased;
}

Node *Graph::find(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? nullptr : found->second;
}

void Graph::rename(Node *node, std::string_view base) {
    by_name_.erase(node->name);
    node->name = unique_name(base);
    by_name_[node->name] = node;
}

std::string Graph::unique_name(std::string_view base) {
    std::string clean(base);
    for (char &c : clean) {
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') {
            c = '_';
        }
    }
    if (clean.empty() || std::isdigit(static_cast<unsigned char>(clean[0]))) {
        clean.insert(clean.begin(), '_');
    }
    if (!by_name_.contains(clean)) {
        return clean;
    }
    const std::string stem(without_number(clean));
    int &count = name_counts_[stem];
    std::string candidate;
    do {
        candidate = fmt::format("{}_{}", stem, ++count);
    } while (by_name_.contains(candidate));
    return candidate;
}

}  // namespace tilewright
