#include "dsl/capture/zip_archive.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <zip.h>

#include "dsl/error.h"

namespace tilewright {

/// libzip over the mapped file. libzip does not tell where an entry's bytes lie, but it reads them through this source, which sees where.
struct ZipArchive::Reader {
    std::string path;
    Bytes file;
    zip_t *zip = nullptr;
    std::uint64_t position = 0;
    std::optional<std::uint64_t> first_read;  ///< where the first read since it was cleared began
    zip_error_t error = {};
    std::unordered_map<std::string, zip_uint64_t> indices;

    ~Reader() {
        if (zip != nullptr) {
            zip_discard(zip);
        }
        zip_error_fini(&error);
    }
    static zip_int64_t serve(void *self, void *data, zip_uint64_t length, zip_source_cmd_t command);
    zip_int64_t serve(void *data, zip_uint64_t length, zip_source_cmd_t command);
};

zip_int64_t ZipArchive::Reader::serve(void *self, void *data, zip_uint64_t length, zip_source_cmd_t command) {
    return static_cast<Reader *>(self)->serve(data, length, command);
}

zip_int64_t ZipArchive::Reader::serve(void *data, zip_uint64_t length, zip_source_cmd_t command) {
    switch (command) {
        case ZIP_SOURCE_OPEN:
            position = 0;
            return 0;
        case ZIP_SOURCE_READ: {
            if (!first_read) {
                first_read = position;
            }
            const std::uint64_t count = std::min<std::uint64_t>(length, file.size - std::min<std::uint64_t>(position, file.size));
            if (count > 0) {
                std::memcpy(data, file.data.get() + position, count);
            }
            position += count;
            return static_cast<zip_int64_t>(count);
        }
        case ZIP_SOURCE_SEEK: {
            const zip_int64_t to = zip_source_seek_compute_offset(position, file.size, data, length, &error);
            if (to < 0) {
                return -1;
            }
            position = static_cast<std::uint64_t>(to);
            return 0;
        }
        case ZIP_SOURCE_TELL:
            return static_cast<zip_int64_t>(position);
        case ZIP_SOURCE_STAT: {
            auto *status = static_cast<zip_stat_t *>(data);
            zip_stat_init(status);
            status->size = file.size;
            status->valid |= ZIP_STAT_SIZE;
            return sizeof *status;
        }
        case ZIP_SOURCE_ERROR:
            return zip_error_to_data(&error, data, length);
        case ZIP_SOURCE_CLOSE:
        case ZIP_SOURCE_FREE:
            return 0;
        case ZIP_SOURCE_SUPPORTS:
            return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
                                                  ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
        default:
            zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0);
            return -1;
    }
}

ZipArchive::ZipArchive(const std::string &path) : reader_(std::make_unique<Reader>()) {
    Reader &reader = *reader_;
    reader.path = path;
    reader.file = map_file(path);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_function_create(&Reader::serve, &reader, &error);
    if (source != nullptr) {
        reader.zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    }
    if (reader.zip == nullptr) {
        const std::string reason = zip_error_strerror(&error);
        zip_error_fini(&error);
        if (source != nullptr) {
            zip_source_free(source);
        }
        user_error("{} is no readable archive: {}; export the model again with torch.export.save", path, reason);
    }
    zip_error_fini(&error);
    const zip_int64_t count = zip_get_num_entries(reader.zip, 0);
    for (zip_int64_t i = 0; i < count; ++i) {
        const char *name = zip_get_name(reader.zip, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
        if (name != nullptr && reader.indices.emplace(name, i).second) {
            names_.emplace_back(name);
        }
    }
}

ZipArchive::~ZipArchive() = default;

bool ZipArchive::contains(const std::string &name) const { return reader_->indices.contains(name); }

namespace {

/// Deflate never expands more than this; an entry that says so lies about its size.
constexpr std::uint64_t most_expansion = 1100;

struct OpenEntry {
    zip_file_t *file;
    ~OpenEntry() { zip_fclose(file); }
};

}  // namespace

void ZipArchive::refuse(const std::string &name, const std::string &why) const {
    user_error("{}: the entry {} {}; export the model again with torch.export.save", reader_->path, name, why);
}

ZipArchive::Entry ZipArchive::look_up(const std::string &name, std::size_t limit) const {
    const Reader &reader = *reader_;
    const auto found = reader.indices.find(name);
    if (found == reader.indices.end()) {
        refuse(name, "is missing");
    }
    zip_stat_t status;
    if (zip_stat_index(reader.zip, found->second, 0, &status) != 0) {
        refuse(name, "is damaged");
    }
    constexpr zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((status.valid & needed) != needed || status.encryption_method != ZIP_EM_NONE) {
        refuse(name, "is encrypted or damaged");
    }
    const bool stored = status.comp_method == ZIP_CM_STORE;
    if (status.comp_size > reader.file.size || (stored && status.size != status.comp_size) ||
        status.size / most_expansion > status.comp_size) {
        refuse(name, fmt::format("claims {} bytes in a file of {}", status.size, reader.file.size));
    }
    if (status.size > limit) {
        refuse(name, fmt::format("holds {} bytes; the limit is {}", status.size, limit));
    }
    return {static_cast<std::uint64_t>(found->second), status.size, stored};
}

Bytes ZipArchive::read(const std::string &name, std::size_t limit) const {
    const Entry entry = look_up(name, limit);
    Reader &reader = *reader_;
    zip_file_t *opened = zip_fopen_index(reader.zip, entry.index, 0);
    if (opened == nullptr) {
        refuse(name, fmt::format("cannot be read ({})", zip_strerror(reader.zip)));
    }
    const OpenEntry open{opened};
    reader.first_read.reset();
    // Reading to the end makes libzip compare the checksum. Stored bytes are compared with the map on the way and then used there.
    std::vector<std::byte> piece(std::min<std::uint64_t>(entry.size + 1, 1 << 20));
    std::vector<std::byte> unpacked;
    std::uint64_t done = 0;
    for (;;) {
        const zip_int64_t got = zip_fread(open.file, piece.data(), piece.size());
        if (got < 0) {
            refuse(name, fmt::format("is damaged ({})", zip_file_strerror(open.file)));
        }
        if (got == 0) {
            break;
        }
        if (done + static_cast<std::uint64_t>(got) > entry.size) {
            refuse(name, "holds more than it claims");
        }
        if (entry.is_stored) {
            const std::uint64_t at = reader.first_read.value_or(reader.file.size) + done;
            internal_assert(at + static_cast<std::uint64_t>(got) <= reader.file.size &&
                                std::memcmp(reader.file.data.get() + at, piece.data(), static_cast<std::size_t>(got)) == 0,
                            "the entry {} of {} does not lie where it was read", name, reader.path);
        } else {
            unpacked.insert(unpacked.end(), piece.begin(), piece.begin() + got);
        }
        done += static_cast<std::uint64_t>(got);
    }
    if (done != entry.size) {
        refuse(name, "ends early");
    }
    if (!entry.is_stored || done == 0) {
        return copy_bytes(unpacked.data(), unpacked.size());
    }
    return {std::shared_ptr<const std::byte>(reader.file.data, reader.file.data.get() + *reader.first_read), done};
}

std::string ZipArchive::read_text(const std::string &name, std::size_t limit) const {
    const Bytes bytes = read(name, limit);
    return {reinterpret_cast<const char *>(bytes.data.get()), bytes.size};
}

}  // namespace tilewright
