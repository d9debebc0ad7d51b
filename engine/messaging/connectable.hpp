// What the ends of a pair connect by an exchange of addresses: transports, and windows that need the peer's key.
#pragma once

#include <string>
#include <vector>

namespace fablint {

class Connectable {
  public:
    virtual ~Connectable() = default;
    // What another rank needs in order to connect to this one; empty where connections need no set-up.
    virtual std::string address() const { return {}; }
    // All ranks call it, with the addresses of all ranks by rank, before any connection: for libraries that connect the
    // ranks together. Called once or more; where no rank has an address, never.
    virtual void join(const std::vector<std::string>& /*addresses*/) {}
    // What `peer` needs in addition: the end of a connection that this rank opens for it alone. Both ends open theirs
    // before either connects, and both are connected before their first message.
    virtual std::string open_connection(int /*peer*/) { return {}; }
    // Both ends call it, with each other's address and what the other end has opened, at about the same time.
    virtual void connect(int /*peer*/, const std::string& /*address*/) {}
    // All ranks call it after their last message, and release their buffers when all have returned: for libraries that
    // use memory of a peer, which must not be released before.
    virtual void disconnect() {}
};

}  // namespace fablint
