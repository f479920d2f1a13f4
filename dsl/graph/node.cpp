#include <type_traits>

#include "dsl/error.h"
#include "dsl/graph/graph.h"

namespace tilewright {
namespace {

template<typename Visit> void for_each_node(const Argument &argument, Visit &&visit) {
    if (Node *const *node = argument.get_if<Node *>()) {
        visit(*node);
    } else if (const ArgumentList *list = argument.get_if<ArgumentList>()) {
        for (const Argument &element : *list) {
            for_each_node(element, visit);
        }
    }
}

void replace(Argument &argument, Node *from, Node *to) {
    if (Node **node = std::get_if<Node *>(&argument.value)) {
        if (*node == from) {
            *node = to;
        }
    } else if (ArgumentList *list = std::get_if<ArgumentList>(&argument.value)) {
        for (Argument &element : *list) {
            replace(element, from, to);
        }
    }
}

}  // namespace

Node *Argument::node() const {
    Node *const *node = get_if<Node *>();
    return node == nullptr ? nullptr : *node;
}

const Argument *Node::find(std::string_view argument) const {
    for (const NamedArgument &candidate : arguments) {
        if (candidate.name == argument) {
            return &candidate.value;
        }
    }
    return nullptr;
}

const TensorMeta &Node::tensor() const {
    const TensorMeta *tensor = std::get_if<TensorMeta>(&meta);
    internal_assert(tensor != nullptr, "the node {} ({}) yields no single tensor", name, target);
    return *tensor;
}

Node *Node::input(std::string_view argument) const {
    const Argument *found = find(argument);
    if (found == nullptr || found->node() == nullptr) {
        user_error("node {}: {} needs a tensor as its argument {}", name, target, argument);
    }
    return found->node();
}

std::vector<Node *> Node::inputs() const {
    std::vector<Node *> result;
    for (const NamedArgument &argument : arguments) {
        for_each_node(argument.value, [&](Node *node) { result.push_back(node); });
    }
    return result;
}

void Node::replace_input(Node *from, Node *to) {
    if (from == to) {
        return;
    }
    for (NamedArgument &argument : arguments) {
        replace(argument.value, from, to);
    }
    if (from->readers_.erase(serial_) > 0) {
        to->readers_.emplace(serial_, this);
    }
}

void Node::set_arguments(std::vector<NamedArgument> changed) {
    stop_reading();
    arguments = std::move(changed);
    start_reading();
}

void Node::start_reading() {
    for (Node *input : inputs()) {
        input->readers_.emplace(serial_, this);
    }
}

void Node::stop_reading() {
    for (Node *input : inputs()) {
        input->readers_.erase(serial_);
    }
}

}  // namespace tilewright
