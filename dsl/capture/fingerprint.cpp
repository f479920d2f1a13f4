#include "dsl/capture/fingerprint.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <zip.h>

#include "dsl/error.h"

namespace tilewright {

std::string archive_fingerprint(const std::string &path) {
    std::error_code absent;
    if (std::filesystem::is_directory(path, absent)) {
        user_error("{}: it is a folder; give an archive that torch.export.save wrote", path);
    }
    int code = 0;
    const std::unique_ptr<zip_t, void (*)(zip_t *)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code), zip_discard);
    if (!archive) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const std::string reason = zip_error_strerror(&error);
        zip_error_fini(&error);
        user_error("{}: {}; give an archive that torch.export.save wrote", path, reason);
    }
    std::string key;
    const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t entry;
        if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &entry) != 0) {
            user_error("{}: the archive's directory is damaged; export the model again", path);
        }
        key += fmt::format("{} {} {:08x}\n", entry.name, entry.size, entry.crc);
        if (!std::string_view(entry.name).ends_with(".json") || entry.size > (std::uint64_t{1} << 30)) {
            continue;
        }
        const std::unique_ptr<zip_file_t, int (*)(zip_file_t *)> file(zip_fopen_index(archive.get(), static_cast<zip_uint64_t>(i), 0),
                                                                      zip_fclose);
        char block[65536];
        for (zip_int64_t n = 0; file && (n = zip_fread(file.get(), block, sizeof block)) > 0;) {
            key.append(block, static_cast<std::size_t>(n));
        }
    }
    return key;
}

}  // namespace tilewright
