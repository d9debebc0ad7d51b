// How bytes get to the other rank.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fablint {

// Blocking calls for ping-pong, posted calls for windows. Messages between two ranks arrive in order.
// Posted buffers must stay untouched until complete() returns.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual void send(int peer, const void* data, std::size_t bytes) = 0;
    virtual void receive(int peer, void* data, std::size_t bytes) = 0;
    virtual void post_send(int peer, const void* data, std::size_t bytes) = 0;
    virtual void post_receive(int peer, void* data, std::size_t bytes) = 0;
    virtual void complete() = 0;  // of everything posted
};

struct TransportInfo {
    const char* name;
    const char* what;
    bool moves_bytes;  // false: nothing arrives, so nothing can be validated
    std::unique_ptr<Transport> (*make)();
};

// The table of transports, in the order in which --list prints them.
const std::vector<TransportInfo>& transports();
const TransportInfo& transport_named(const std::string& name);  // throws a usage error

// The rows of the table, one file each in transports/.
std::unique_ptr<Transport> make_mpi_transport();
std::unique_ptr<Transport> make_null_transport();
std::unique_ptr<Transport> make_corrupt_transport();

}  // namespace fablint
