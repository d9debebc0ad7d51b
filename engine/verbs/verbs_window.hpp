// Remote memory access over queue pairs. Included only where the headers of libibverbs exist.
#pragma once

#include <memory>

#include "verbs/verbs_queue_pair.hpp"

namespace fablint {

// What a window needs of the transport that owns the queue pairs.
class RemoteAccess {
  public:
    virtual ~RemoteAccess() = default;
    // Posts accesses to a peer; the local key of the work is filled in.
    virtual void post_access(int peer, VerbsWork work) = 0;
    virtual void complete_accesses() = 0;
};

// Registers memory for remote access. Throws a usage error if the device lacks atomics that the kernel requires.
std::unique_ptr<Window> make_verbs_window(VerbsDevice& device, RemoteAccess& access, Transport& transport,
                                          Memory& memory, const WindowRequest& request, Capabilities required);

}  // namespace fablint
