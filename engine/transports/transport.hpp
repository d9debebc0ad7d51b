// How bytes get to the other rank.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "memories/memory.hpp"
#include "transports/capabilities.hpp"
#include "transports/one_sided.hpp"

namespace fablint {

// Messages prepared once and started many times. Frees them when it ends; none may be under way then.
class Prepared {
  public:
    virtual ~Prepared() = default;
    virtual void add_send(int peer, const void* data, std::size_t bytes) = 0;
    virtual void add_receive(int peer, void* data, std::size_t bytes) = 0;
    virtual void start() = 0;     // all of them
    virtual void complete() = 0;  // of all of them
};

// Blocking calls for ping-pong, posted calls for windows. Messages between two ranks arrive in order.
// Posted buffers must stay untouched until complete() returns. A window is posted in one call: one call for each
// message would be a twentieth of the time of a small one within a host.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual void send(int peer, const void* data, std::size_t bytes) = 0;
    virtual void receive(int peer, void* data, std::size_t bytes) = 0;
    virtual void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) = 0;
    virtual void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) = 0;
    virtual void complete() = 0;  // of everything posted

    // As send() and receive(), for several threads at once: each uses a lane of its own.
    virtual void send_on(int lane, int peer, const void* data, std::size_t bytes) = 0;
    virtual void receive_on(int lane, int peer, void* data, std::size_t bytes) = 0;

    virtual std::unique_ptr<Prepared> prepare() = 0;

    // Requests: messages of one int that a server takes in the order in which they come, whoever sent them.
    virtual void request(int peer, int what) = 0;
    virtual int next_request(int& what) = 0;  // returns who sent it
    virtual bool request_waits() = 0;

    // Of all ranks; every one must call.
    virtual void barrier() = 0;
    virtual void broadcast(int root, void* data, std::size_t bytes) = 0;
    virtual void sum(const void* data, void* result, std::size_t floats) = 0;
    virtual void all_gather(const void* data, void* result, std::size_t bytes) = 0;  // bytes: of one rank
    virtual void all_to_all(const void* data, void* result, std::size_t bytes) = 0;  // bytes: for one rank

    // Collective.
    virtual std::unique_ptr<OneSided> expose(Memory& memory, const WindowRequest& request) = 0;
};

struct TransportInfo {
    const char* name;
    const char* description;
    Capabilities offers;
    bool moves_bytes;  // false: nothing arrives, so nothing can be validated
    std::unique_ptr<Transport> (*make)();
};

// The table registry/transports.inc.
const std::vector<TransportInfo>& transports();
const TransportInfo& transport_named(const std::string& name);  // throws a usage error

// One file each in transports/.
#define TRANSPORT(name, offers, bytes, description) std::unique_ptr<Transport> make_##name##_transport();
#include "registry/transports.inc"

// A window of MPI_COMM_WORLD, transports/mpi_window.cpp.
std::unique_ptr<OneSided> make_mpi_window(Memory& memory, const WindowRequest& request);

}  // namespace fablint
