// The op graph: a list of instructions of torch.fx's six kinds over PyTorch operators.
#pragma once

#include <cstdint>
#include <list>
#include <map>
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
    using Value =
        std::variant<std::monostate, bool, Extent, double, std::string, DType, Device, MemoryFormat, Layout, Node *, ArgumentList>;
    Value value;

    Argument() = default;
    template<typename T>
    requires std::constructible_from<Value, T> Argument(T &&v) : value(std::forward<T>(v)) {}  // NOLINT: values convert

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
    Opcode opcode = Opcode::call_function;
    std::string name;  ///< unique in its graph
    std::string target;
    std::vector<NamedArgument> arguments;
    Meta meta;
    std::string module_path;  ///< "encoder.layer.0.attention", or empty

    const Argument *find(std::string_view argument) const;  ///< nullptr where it was not given
    const TensorMeta &tensor() const;                       ///< InternalError where the node yields no single tensor
    Node *input(std::string_view argument) const;           ///< UserError where the argument is missing or no node
    std::vector<Node *> inputs() const;                     ///< every node among the arguments, in order, with repeats
    /// The graph keeps an index of readers: once a node is in a graph, its arguments change through these two alone.
    void replace_input(Node *from, Node *to);
    void set_arguments(std::vector<NamedArgument> changed);

private:
    friend class Graph;
    using Readers = std::map<std::uint64_t, Node *>;  ///< by serial, so that their order is that of creation
    void start_reading();                             ///< enters this node among its inputs' readers
    void stop_reading();

    std::uint64_t serial_ = 0;
    Readers readers_;
    std::list<std::unique_ptr<Node>>::iterator place_;
};

/// An ordered list of instructions; each stands after those it reads, and the output comes last. "getitem" takes the arguments "tuple"
/// and "index", the output takes one list called "values". Adding, replacing and erasing cost the logarithm of the graph's size at most.
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
    /// A copy of a node's public fields, under its own name. InternalError where the name is taken.
    Node *add(const Node &like);

    /// New nodes go before this one; nullptr (the default) means at the end, before the output if there is one.
    void set_insert_point(Node *before);
    Node *insert_point() const { return insert_before_; }

    const Nodes &nodes() const { return nodes_; }
    Node *output_node() const;                  ///< InternalError where there is none
    const ArgumentList &output_values() const;  ///< of the output node
    void set_output_values(ArgumentList values);
    std::vector<Node *> users(const Node *node) const;  ///< each once, in the order of their creation
    bool has_users(const Node *node) const;
    bool is_reader(const Node *reader, const Node *of) const;
    /// Readers of `from` read `to` instead, except `to` itself where it reads `from`.
    void replace_all_uses(Node *from, Node *to);
    void erase(Node *node);                   ///< InternalError while it has users
    int eliminate_dead_code();                ///< removes unread call and get_attr nodes; returns how many
    Node *find(std::string_view name) const;  ///< nullptr where no node has the name
    void rename(Node *node, std::string_view base);
    /// The base itself or base_1, base_2, …; characters other than letters, digits and _ become _.
    std::string unique_name(std::string_view base);

private:
    Node *insert(std::unique_ptr<Node> node);
    Nodes nodes_;
    Node *insert_before_ = nullptr;
    Node *output_ = nullptr;
    std::uint64_t next_serial_ = 0;
    std::unordered_map<std::string, Node *> by_name_;
    std::unordered_map<std::string, int> name_counts_;
};

std::string_view name(Opcode opcode);         ///< "call_function"
std::string print(const Argument &argument);  ///< as it stands in a printed graph: "%x", "1.5", "[s0, 4]", "torch.float32"
std::string print(const Node &node);          ///< one line, without its end

/// The printed form that parse_graph() reads back; print → parse → print is the identity.
std::string print(const Graph &graph);
Graph parse_graph(std::string_view text, const std::string &file = "<graph>");  ///< UserError with file:line:column
/// Order, names, arities and metadata; throws InternalError with the node.
void verify(const Graph &graph);

}  // namespace tilewright
