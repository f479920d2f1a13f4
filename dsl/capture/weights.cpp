#include "dsl/capture/weights.h"

#include "dsl/capture/json.h"

namespace tilewright {
namespace {

constexpr std::size_t largest_config = 256U << 20;
/// A stride of 0 repeats elements; beyond this many the size is taken for damage.
constexpr std::int64_t most_repeated_elements = std::int64_t{1} << 28;

}  // namespace

void Weights::read_config(const ZipArchive &archive, const std::string &config, const std::string &folder) {
    in_context([&] { return config; },
               [&] {
                   const auto document = parse_json(archive.read_text(config, largest_config));
                   SizeReader sizes;
                   for (const auto &entry : as_object(field(as_object(document, "the file"), "config"), "config")) {
                       const std::string name(entry.key());
                       in_context([&] { return name; },
                                  [&] {
                                      const auto &object = as_object(entry.value(), "an entry");
                                      Payload payload;
                                      payload.entry = folder + std::string(as_text(field(object, "path_name"), "path_name"));
                                      payload.pickled = as_boolean(field(object, "use_pickle"), "use_pickle");
                                      if (const auto *meta = optional_field(object, "tensor_meta"); meta != nullptr && !payload.pickled) {
                                          try {
                                              payload.meta = sizes.tensor(*meta);
                                          } catch (const UserError &error) {
                                              payload.problem = error.what();
                                          }
                                      }
                                      payloads_[name] = std::move(payload);
                                  });
                   }
               });
}

HostTensor Weights::load(const ZipArchive &archive, const std::string &qualified_name) {
    const auto found = payloads_.find(qualified_name);
    if (found == payloads_.end()) {
        user_error("the archive holds no value for {}; export the model again", qualified_name);
    }
    const Payload &payload = found->second;
    return in_context(
        [&] { return qualified_name; },
        [&] {
            if (payload.pickled) {
                user_error(
                    "it is stored as a pickle, which is never executed; export the model with plain tensors instead of tensor subclasses");
            }
            if (!payload.meta) {
                user_error("{}", payload.problem.empty() ? "it is no tensor; only tensors are supported as weights and constants"
                                                         : payload.problem);
            }
            const auto [storage, added] = storages_.try_emplace(payload.entry);
            if (added) {
                // Payloads of torch.export are aligned to 64 bytes; loads may rely on an element's own alignment.
                storage->second = aligned(archive.read(payload.entry), 16);
            }
            check_fits(*payload.meta, storage->second.size);
            return HostTensor{*payload.meta, storage->second.data, storage->second.size};
        });
}

void check_fits(const TensorMeta &meta, std::size_t storage_bytes) {
    for (const auto *list : {&meta.sizes, &meta.strides}) {
        for (const Extent &extent : *list) {
            if (!extent.is_constant()) {
                user_error("its size {} is not a constant", extent.to_string());
            }
        }
    }
    if (!meta.offset.is_constant()) {
        user_error("its offset {} is not a constant", meta.offset.to_string());
    }
    const __int128 bytes = size_in_bytes(meta.dtype);
    const std::int64_t elements = meta.elements().value();
    if (elements == 0) {
        if (meta.offset.value() * bytes > static_cast<__int128>(storage_bytes)) {
            user_error("it begins at element {} of a storage of {} bytes", meta.offset.value(), storage_bytes);
        }
        return;
    }
    __int128 last = meta.offset.value();
    for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
        last += static_cast<__int128>(meta.sizes[i].value() - 1) * meta.strides[i].value();
    }
    if ((last + 1) * bytes > static_cast<__int128>(storage_bytes)) {
        user_error("{} does not fit into its storage of {} bytes", meta.to_string(), storage_bytes);
    }
    if (elements * bytes > static_cast<__int128>(storage_bytes) && elements > most_repeated_elements) {
        user_error("{} repeats a storage of {} bytes too often", meta.to_string(), storage_bytes);
    }
}

}  // namespace tilewright
