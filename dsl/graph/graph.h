// The op graph: a list of instructions of torch.fx's six kinds over PyTorch operators.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "dsl/graph/dtype.h"
#include "dsl/graph/extent.h"
#include "dsl/graph/tensor.h"

namespace tilewright {

class Node;
struct Argument;
using ArgumentList = std::vector<Argument>;

struct Device {
    std::string type;  ///< "cpu", "cuda"
    std::optional<int> index;
    friend bool operator==(const Device &, const Device &) = default;
};
enum class MemoryFormat { contiguous, preserve, channels_last, channels_last_3d };
enum class Layout { strided, other };

/// One argument of an instruction. std::monostate is Python's None.
struct Argument {
    using Value = std::variant<std::monostate, bool, Extent, double, std::string, DType, Device, MemoryFormat, Layout, Node *,
                               ArgumentList>;
    Value value;

    Argument() = default;
    template<typename T>
        requires std::constructible_from<Value, T>
    Argument(T &&v) : value(std::forward<T>(v)) {}  // NOLINT: values convert

    bool is_none() const { return std::holds_alternative<std::monostate>(value); }
    template<typename T> const T *get_if() const { return std::get_if<T>(&value); }
    Node *node() const;  ///< the node, or nullptr
};

struct NamedArgument {
    std::string name;  ///< as the operator's schema calls it
    Argument value;
};

/// What an instruction yields: nothing known, a tensor, several values, or an integer.
using Meta = std::variant<std::monostate, TensorMeta, std::vector<std::optional<TensorMeta>>, Extent>;

enum class Opcode { placeholder, get_attr, call_function, call_method, call_module, output };

/// One instruction. `target` is an operator ("aten.add.Tensor", "getitem"), an attribute, a method or a module path.
/// An instruction with several results is read through "getitem" instructions, as in torch.fx.
class Node {
public:
    Opcode opcode;
    std::string name;  ///< unique in its graph
    std::string target;
    std::vector<NamedArgument> arguments;
    Meta meta;
    std::string module_path;  ///< "encoder.layer.0.attention", or empty

    const Argument *find(std::string_view argument) const;  ///< nullptr where it was not given
    const TensorMeta &tensor() const;                       ///< InternalError where the node yields no single tensor
    Node *input(std::string_view argument) const;           ///< UserError where the argument is missing or no node
    std::vector<Node *> inputs() const;                     ///< every node among the arguments, in order, with repeats
    void replace_input(Node *from, Node *to);
};

/// An ordered list of instructions; each stands after those it reads, and the output comes last.
class Graph {
public:
    using Nodes = std::list<std::unique_ptr<Node>>;

    Graph() = default;
    Graph(Graph &&) = default;
    Graph &operator=(Graph &&) = default;
    Graph clone() const;

    Node *placeholder(std::string name, Meta meta);
    Node *get_attr(std::string attribute, Meta meta);
    Node *call(std::string target, std::vector<NamedArgument> arguments, Meta meta, std::string name = "");
    Node *getitem(Node *tuple, int index);
    Node *output(ArgumentList values);

    /// New nodes go before this one; nullptr (the default) means at the end.
    void set_insert_point(Node *before);

    const Nodes &nodes() const { return nodes_; }
    Node *output_node() const;
    std::vector<Node *> users(const Node *node) const;
    void replace_all_uses(Node *from, Node *to);
    void erase(Node *node);      ///< InternalError while it has users
    int eliminate_dead_code();   ///< removes unread call and get_attr nodes; returns how many
    Node *find(std::string_view name) const;
    std::string unique_name(std::string_view base);

private:
    Node *insert(std::unique_ptr<Node> node);
    Nodes nodes_;
    Node *insert_before_ = nullptr;
    std::unordered_map<std::string, int> name_counts_;
};

/// The printed form that parse_graph() reads back; print → parse → print is the identity.
std::string print(const Graph &graph);
Graph parse_graph(std::string_view text, const std::string &file = "<graph>");  ///< UserError with file:line:column
/// Order, names, arities and metadata; throws InternalError with the node.
void verify(const Graph &graph);

}  // namespace tilewright
