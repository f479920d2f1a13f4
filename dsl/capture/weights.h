// The weights and constants of an archive, found by their names in the model.
#pragma once

#include <string>
#include <unordered_map>

#include "dsl/capture/export_types.h"
#include "dsl/capture/zip_archive.h"

namespace tilewright {

class Weights {
public:
    /// Reads one configuration file (weights or constants) of the archive; `folder` is where it and its payloads lie.
    void read_config(const ZipArchive &archive, const std::string &config, const std::string &folder);

    /// The value of a parameter, buffer or constant, checked against the bytes that are there. UserError where there is none.
    HostTensor load(const ZipArchive &archive, const std::string &qualified_name);

private:
    struct Payload {
        std::string entry;
        bool pickled = false;
        std::optional<TensorMeta> meta;
        std::string problem;  ///< why the metadata cannot be used; said when the weight is asked for
    };
    std::unordered_map<std::string, Payload> payloads_;
    std::unordered_map<std::string, Bytes> storages_;  ///< by entry, so that tied weights share one
};

/// UserError where a tensor reaches beyond `storage_bytes`, or repeats few bytes to an absurd size.
void check_fits(const TensorMeta &meta, std::size_t storage_bytes);

}  // namespace tilewright
