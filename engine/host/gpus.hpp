// GPUs of this host: their PCI place, and the NIC near each.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpu/gpu_runtime.hpp"
#include "host/nics.hpp"

namespace fablint {

// Name of a GPU on its host: gpu3 for the fourth card of its vendor in the order of PCI addresses, as nvidia-smi
// counts. The index that the driver gives in a process may be another one (CUDA_VISIBLE_DEVICES). The address itself if
// sysfs does not list the card. `pci`: 0000:3b:00.0.
std::string gpu_label(const std::filesystem::path& sysfs, GpuApi api, const std::string& pci);

// The interface of the fabric with the most PCI bridges in common with a GPU, then of its NUMA node, then the fastest.
// Empty if no interface is up, or if sysfs does not list the GPU.
std::string nic_near_gpu(const std::filesystem::path& sysfs, const std::vector<Nic>& nics, const std::string& pci);

}  // namespace fablint
