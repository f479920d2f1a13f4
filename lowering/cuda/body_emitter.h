// Statements of a launch as C++: each value once in the scope that it belongs to, loads where they are read, names of people's choosing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lowering/passes/index_math.h"
#include "lowering/tile_ir/tile_ir.h"

namespace tilewright {

class BodyEmitter {
public:
    BodyEmitter(const tile::Launch &launch, const SymbolRanges &symbols);
    /// The lines between the function's braces, indented once.
    std::string run();

private:
    /// What is known of a printed value.
    struct Text {
        std::string text;
        int scope = 0;                ///< outermost scope in which it can stand
        std::set<std::string> reads;  ///< buffers that the launch writes
        bool pinned = false;          ///< loads or conditions inside: not above the nearest If
        bool simple = true;           ///< a name or a literal
        Halide::Expr source = {};     ///< keeps the node alive that the cache knows by its address
        bool zeroed = false;          ///< 0 where the conditions around it do not hold
    };
    struct Temporary {
        std::string name;
        std::set<std::string> reads;
        int scope = 0;
    };
    struct Scope {
        std::vector<std::string> lines;
        std::map<std::string, Temporary> temporaries;  ///< by text
        std::set<std::string> variables;
        bool conditional = false;
    };

    void block(const tile::Block &statements);
    void statement(const tile::Statement &s);
    void emit(const tile::For &s);
    void emit(const tile::If &s);
    void emit(const tile::Let &s);
    void emit(const tile::Store &s);
    void emit(const tile::VectorLoad &s);
    std::string vector_load(const tile::VectorLoad &s);
    void emit(const tile::VectorStore &s);
    void emit(const tile::Fold &s);
    void emit(const tile::Combine &s);
    bool is_packed(const tile::Buffer &buffer) const;
    void pack_stored(const tile::For &lanes);
    static bool is_loaded_ahead(const tile::Buffer &buffer);
    static std::string words_type(const tile::Buffer &buffer);
    void declare_words(const tile::Buffer &buffer);
    bool take_words(const tile::For &lanes);
    bool add_vectors(const tile::For &lanes);
    void find_held();
    void pack_held(const tile::For &steps);
    std::string vectors_place(const tile::Store &store);
    std::vector<const tile::Store *> rounded_at_end(const tile::For &lanes);
    void store_wide(const tile::Store &store);
    void declare_wide(const std::vector<const tile::Store *> &stores);
    void convert_wide(const std::vector<const tile::Store *> &stores);
    bool combine_lanes(const tile::For &s);
    static bool crosses_warps(const tile::Statement &s);
    struct Exchanges {
        int of_blocks = 0, of_clusters = 0;
    };
    static Exchanges exchanges_of(const tile::Block &body);
    void combine_together(const std::vector<const tile::Combine *> &values);
    void emit(const tile::ScanThreads &s);
    void emit(const tile::Barrier &s);
    void emit(const tile::Comment &s);
    void emit(const tile::Exit &s);
    void emit(const tile::Invoke &s);

    Text value(const Halide::Expr &e);
    Text value_uncached(const Halide::Expr &e);
    Text operation(const Halide::Expr &e);
    Text selection(const Halide::Internal::Select *op);
    Text read(const Halide::Internal::Call *op);
    Text variable(const std::string &name);
    Text axis(const tile::Axis &axis, bool first);
    Text unit(const tile::Leaf &leaf);
    Text offset(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices);
    Text place(const tile::Buffer &buffer, const std::vector<Halide::Expr> &indices);  ///< "name[offset]"
    std::string extent_text(const Extent &extent);
    Text conditional(Text load, const Halide::Expr &e);
    Text named(Text value, const std::string &type, const std::string &hint);
    std::string text_of(const Halide::Expr &e) { return value(e).text; }

    void line(const std::string &text) { scopes_.back().lines.push_back(text); }
    void open(bool conditional);
    std::vector<std::string> close();
    void append_body(const std::string &head, std::vector<std::string> lines);
    std::string fresh(const std::string &hint);
    std::string type_of(const tile::Buffer &buffer) const;
    void written(const std::string &buffer);
    void forget_values();
    void forget_written_in(const tile::Block &statements);
    void declare(const tile::Buffer &buffer);
    void plan_declarations(const tile::Block &statements, const std::set<std::string> &buffers);
    void count_uses(const tile::Block &statements);

    const tile::Launch &launch_;
    VariableRanges ranges_;
    std::set<std::string> mutable_;  ///< buffers that this launch writes
    std::map<std::string, const tile::Leaf *> leaves_;
    std::map<std::string, const tile::Axis *> axes_;
    std::map<const tile::Statement *, std::vector<std::string>> declarations_;
    std::map<const Halide::Internal::IRNode *, int> uses_;
    std::set<std::string> arrays_;        ///< registers that device functions take as arrays
    std::set<const tile::Store *> wide_;  ///< of floats whose 16-bit forms are wanted after the loop over the lanes alone
    std::map<std::string, bool> held_;    ///< vectors of 16-bit values that several passes read, and whether one has
    std::vector<Scope> scopes_;
    std::vector<std::string> conditions_;  ///< under which the value being printed is wanted
    std::map<std::pair<const void *, std::string>, Text> seen_;
    std::set<std::string> names_;
    std::set<std::string> constants_;  ///< loop variables that are always 0
    int counter_ = 0;
    Exchanges exchanges_;  ///< of an iteration of the innermost loop that is being printed
};

/// A buffer's printed name and those of variables: dots become underscores.
std::string cuda_name(const std::string &name);
/// Buffers written anywhere in these statements.
std::set<std::string> buffers_written(const tile::Block &statements);
/// The struct and functor of a combiner.
std::string emit_combiner(const tile::CombinerDefinition &definition);

}  // namespace tilewright
