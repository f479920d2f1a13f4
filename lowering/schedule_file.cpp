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

std::vector<std::string> stages_of(const Kernel &kernel) {
    std::vector<std::string> stages;
    for (const Stage &stage : kernel.algorithm.stages) {
        stages.push_back(stage.name());
    }
    return stages;
}

std::vector<std::string> places_of(const Partition &partition, std::size_t kernel) {
    std::vector<std::string> places;
    for (const KernelCall &call : partition.calls) {
        if (call.kernel == static_cast<int>(kernel) && !call.place.empty()) {
            places.push_back(call.place);
        }
    }
    return places;
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
        entry.covers = places_of(compilation.partition, k);
    }
    return file;
}

}  // namespace tilewright
