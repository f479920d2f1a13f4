#include "lowering/schedule_file.h"

#include "runtime/digest.h"

namespace tilewright {

std::string partition_hash(const Partition &partition) {
    Digest digest;
    for (const KernelCall &call : partition.calls) {
        digest.add(partition.kernels[call.kernel].hash.to_string());
    }
    return digest.hex().substr(0, 16);
}

ScheduleFile schedule_file_of(const Compilation &compilation) {
    ScheduleFile file;
    file.model = compilation.program.name;
    file.graph = partition_hash(compilation.partition);
    file.target = compilation.target.to_string();
    file.device = compilation.target.gpu ? compilation.target.gpu->name : compilation.target.device;
    file.kernels = compilation.schedules;
    for (std::size_t k = 0; k < file.kernels.size(); ++k) {
        KernelSchedule &entry = file.kernels[k];
        entry.name = compilation.partition.kernels[k].name;
        entry.covers.clear();
        for (const KernelCall &call : compilation.partition.calls) {
            if (call.kernel == static_cast<int>(k) && !call.place.empty()) {
                entry.covers.push_back(call.place);
            }
        }
    }
    return file;
}

}  // namespace tilewright
