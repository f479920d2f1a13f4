#include "runtime/plan_archive.h"

#include <cstring>
#include <map>
#include <stdexcept>

#include "dsl/error.h"
#include "runtime/digest.h"

namespace tilewright {
namespace {

constexpr std::string_view magic = "tilewright plan 3\n";

struct Damaged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Writer {
public:
    static constexpr bool reading = false;
    void raw(void *data, std::size_t size) {
        const auto *bytes = static_cast<const std::byte *>(data);
        out.insert(out.end(), bytes, bytes + size);
    }
    std::size_t count(std::size_t n) {
        std::uint64_t value = n;
        raw(&value, sizeof value);
        return n;
    }
    std::vector<std::byte> out;
};

class Reader {
public:
    static constexpr bool reading = true;
    explicit Reader(std::span<const std::byte> bytes) : in(bytes) {}
    void raw(void *data, std::size_t size) {
        if (size > in.size()) {
            throw Damaged("too short");
        }
        if (size > 0) {
            std::memcpy(data, in.data(), size);
        }
        in = in.subspan(size);
    }
    std::size_t count(std::size_t) {
        std::uint64_t value = 0;
        raw(&value, sizeof value);
        if (value > in.size()) {  // every element takes at least a byte
            throw Damaged("absurd count");
        }
        return value;
    }
    std::span<const std::byte> in;
};

// One description of each type serves both directions.
template<typename A, typename T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void field(A &archive, T &value) { archive.raw(&value, sizeof value); }
template<typename A> void field(A &archive, std::string &text) {
    text.resize(archive.count(text.size()));
    archive.raw(text.data(), text.size());
}
template<typename A> void field(A &archive, std::vector<std::byte> &bytes) {
    bytes.resize(archive.count(bytes.size()));
    archive.raw(bytes.data(), bytes.size());
}
template<typename A> void field(A &archive, Extent &extent) {
    std::uint8_t constant = extent.is_constant();
    field(archive, constant);
    if (constant) {
        std::int64_t value = A::reading ? 0 : extent.value();
        field(archive, value);
        extent = Extent(value);
    } else {
        std::string text = A::reading ? std::string() : extent.to_string();
        field(archive, text);
        extent = Extent::parse(text);
    }
}
template<typename A, typename T, std::size_t N> void field(A &archive, std::array<T, N> &values) {
    for (T &value : values) {
        field(archive, value);
    }
}
template<typename A, typename T> void field(A &archive, std::vector<T> &values);
template<typename A, typename... T> void field(A &archive, std::variant<T...> &value);
template<typename A, typename T> void field(A &archive, std::optional<T> &value);

template<typename A, typename... T> void fields(A &archive, T &...values) { (field(archive, values), ...); }

template<typename A> void field(A &, std::monostate &) {}
template<typename A> void field(A &a, TensorMeta &m) { fields(a, m.dtype, m.sizes, m.strides, m.offset); }
template<typename A> void field(A &a, PlanBuffer &b) { fields(a, b.kind, b.name, b.meta, b.index, b.write_back_to, b.alias_of); }
template<typename A> void field(A &a, CodeObject &c) {
    fields(a, c.name, c.image, c.source, c.registers, c.spill_stores, c.spill_loads, c.shared_bytes, c.stack_bytes);
}
template<typename A> void field(A &a, BufferArgument &b) { fields(a, b.buffer, b.written, b.view); }
template<typename A> void field(A &a, ScalarArgument &s) { fields(a, s.value, s.bytes); }
template<typename A> void field(A &, StatusArgument &) {}
template<typename A> void field(A &a, ScratchArgument &s) { fields(a, s.bytes, s.zeroed, s.slot); }
template<typename A> void field(A &a, TensorMapArgument &t) {
    fields(a, t.buffer, t.dtype, t.sizes, t.byte_strides, t.box, t.swizzle_bytes, t.l2_promotion_bytes, t.element_offset, t.written,
           t.rounds_to_tf32);
}
template<typename A> void field(A &a, CpuStep &s) { fields(a, s.code, s.function, s.arguments); }
template<typename A> void field(A &a, LaunchStep &s) {
    fields(a, s.code, s.function, s.grid, s.block, s.cluster, s.dynamic_shared_bytes, s.cooperative, s.arguments);
}
template<typename A> void field(A &a, MatmulEngineStep &s) {
    fields(a, s.a, s.b, s.bias, s.d, s.batch, s.m, s.n, s.k, s.a_offset, s.b_offset, s.bias_offset, s.d_offset, s.a_row_stride,
           s.b_row_stride, s.d_row_stride, s.a_batch_stride, s.b_batch_stride, s.d_batch_stride, s.transpose_a, s.transpose_b, s.input_type,
           s.output_type, s.epilogue, s.alpha, s.algorithm);
}
template<typename A> void field(A &a, EngineTensor &t) { fields(a, t.buffer, t.dtype, t.sizes, t.strides, t.offset); }
template<typename A> void field(A &a, EnginePointwise &p) { fields(a, p.op, p.tensor, p.number); }
template<typename A> void field(A &a, GraphEngineStep &s) {
    fields(a, s.operation, s.tensors, s.padding, s.strides, s.dilations, s.scale, s.causal, s.epilogue, s.algorithm);
}
template<typename A> void field(A &a, ExtentCondition &c) { fields(a, c.extent, c.op, c.value); }
template<typename A> void field(A &a, Step &s) { fields(a, s.kernel, s.sites, s.action, s.when, s.unless); }
template<typename A> void field(A &a, IndexSite &s) { fields(a, s.message); }
template<typename A> void field(A &a, InputSpec &s) { fields(a, s.kind, s.placeholder, s.qualified_name); }
template<typename A> void field(A &a, SymbolRange &r) { fields(a, r.min, r.max); }

template<typename A> void field(A &archive, SymbolRanges &ranges) {
    std::vector<std::string> names;
    for (const auto &[name, range] : ranges) {
        names.push_back(name);
    }
    field(archive, names);
    for (const std::string &name : names) {
        field(archive, ranges[name]);
    }
}
template<typename A, typename T> void field(A &archive, std::vector<T> &values) {
    values.resize(archive.count(values.size()));
    for (T &value : values) {
        field(archive, value);
    }
}
template<typename A, typename... T> void field(A &archive, std::variant<T...> &value) {
    std::uint8_t which = static_cast<std::uint8_t>(value.index());
    field(archive, which);
    if constexpr (A::reading) {
        std::uint8_t candidate = 0;
        const bool known = ((candidate++ == which ? (value.template emplace<T>(), true) : false) || ...);
        if (!known) {
            throw Damaged("unknown alternative");
        }
    }
    std::visit([&](auto &alternative) { field(archive, alternative); }, value);
}

template<typename A, typename T> void field(A &archive, std::optional<T> &value) {
    std::uint8_t present = value.has_value();
    field(archive, present);
    if constexpr (A::reading) {
        value.reset();
        if (present) {
            value.emplace();
        }
    }
    if (value) {
        field(archive, *value);
    }
}

template<typename A> void field(A &a, Plan &p) {
    fields(a, p.target, p.device, p.symbols, p.buffers, p.inputs, p.user_inputs, p.user_outputs, p.code, p.steps, p.index_sites);
}

}  // namespace

std::vector<std::byte> save_plan(const Plan &plan) {
    Writer writer;
    Plan copy = plan;  // the one description of fields takes mutable references
    field(writer, copy);
    const std::string checksum = Digest().add(std::span<const std::byte>(writer.out)).hex();
    std::vector<std::byte> bytes;
    for (std::string_view part : {magic, std::string_view(checksum)}) {
        const auto *start = reinterpret_cast<const std::byte *>(part.data());
        bytes.insert(bytes.end(), start, start + part.size());
    }
    bytes.insert(bytes.end(), writer.out.begin(), writer.out.end());
    return bytes;
}

std::optional<Plan> load_plan(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    constexpr std::size_t checksum_size = 40;
    if (!text.starts_with(magic) || text.size() < magic.size() + checksum_size) {
        return std::nullopt;
    }
    const std::span<const std::byte> body = bytes.subspan(magic.size() + checksum_size);
    if (Digest().add(body).hex() != text.substr(magic.size(), checksum_size)) {
        return std::nullopt;
    }
    try {
        Reader reader(body);
        Plan plan;
        field(reader, plan);
        verify(plan);
        return plan;
    } catch (const Damaged &) {
        return std::nullopt;
    } catch (const UserError &) {  // an extent that does not parse
        return std::nullopt;
    } catch (const InternalError &) {
        return std::nullopt;
    }
}

bool attach_weights(Plan &plan, const Program &program) {
    std::map<std::string, const InputSpec *> placeholders;
    for (const InputSpec &input : program.inputs) {
        placeholders[input.placeholder] = &input;
    }
    for (InputSpec &input : plan.inputs) {
        const auto found = placeholders.find(input.placeholder);
        if (found == placeholders.end() || found->second->kind != input.kind) {
            return false;
        }
        input.value = found->second->value;
        input.constant = found->second->constant;
    }
    return true;
}

}  // namespace tilewright
