// Programs that write their inputs and buffers (tests/data/mutations), with what PyTorch gives and leaves behind.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/api/tilewright.h"

namespace tilewright::tests {

class RecordedMutation {
public:
    RecordedMutation(const std::string &name, const std::string &target);

    const Model &model() const { return model_; }
    std::vector<HostTensor> inputs() const;
    /// Checks the tensors against the recorded `prefix`0, `prefix`1, …
    void expect(const std::string &prefix, const std::vector<HostTensor> &actual) const;

private:
    Model model_;
    std::map<std::string, HostTensor> tensors_;
};

/// Runs each program twice: outputs, inputs afterwards, inputs that the caller keeps, outputs of the second call.
void check_recorded_mutations(const std::string &target);

}  // namespace tilewright::tests
