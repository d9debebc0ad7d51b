// Messages of GPU memory through host memory, for transports that do not take pointers to it.
#pragma once

#include <memory>

#include "gpu/gpu_runtime.hpp"
#include "messaging/transport.hpp"

namespace fablint {

// Sends copy from the GPU before the message, receives copy to the GPU after it, as an application would with pinned
// buffers: the time of the copies is part of the measurement. Messages of host memory pass unchanged. Offers no
// capability. The memory must outlive the messages, not the transport.
std::unique_ptr<Transport> make_staged_transport(std::unique_ptr<Transport> transport, const Memory& memory,
                                                 const GpuRuntime& runtime);

}  // namespace fablint
