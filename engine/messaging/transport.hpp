// Transports: what moves the bytes between two ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "memories/memory.hpp"
#include "messaging/capabilities.hpp"
#include "messaging/connectable.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

// Point-to-point messages. Messages between two ranks arrive in order. The constructor of a transport opens it; then
// the ranks exchange their addresses, and the two ends of a pair connect before their first message.
class Transport : public Connectable {
  public:
    // Posts `buffers.count` messages of `bytes` bytes each. The buffers must stay untouched until complete() returns.
    // A window is posted in one call: a call for each message would take a twentieth of the time of a small one.
    virtual void post_sends(int peer, const Buffers<const char>& buffers, std::size_t bytes) = 0;
    virtual void post_receives(int peer, const Buffers<char>& buffers, std::size_t bytes) = 0;
    virtual void complete() = 0;  // of everything that is posted

    // The next messages from the peer are `times` windows of `buffers`, which this rank receives in this order, and
    // no other. Both ends may announce it before the first of them. For transports on which a message must not arrive
    // before its receive is posted: they post it ahead.
    virtual void expect_receives(int /*peer*/, const Buffers<char>& /*buffers*/, std::size_t /*bytes*/,
                                 std::int64_t /*times*/) {}

    // Puts every message on the wire that was sent: this rank will not call the transport for some time. For libraries
    // whose messages move only while they are called.
    virtual void finish() {}
    // Are remote accesses executed by the target, while it calls the library? serve() does so, and returns whether
    // anything happened.
    virtual bool has_active_target() const { return false; }
    virtual bool serve() { return false; }
    // What the library has chosen for the connections of this rank, as "tcp/eth0"; empty where it chooses nothing.
    virtual std::string devices() const { return {}; }

    // One blocking message. A transport with a shorter path than posting and completing overrides them.
    virtual void send(int peer, const void* data, std::size_t bytes) {
        post_sends(peer, {static_cast<const char*>(data), 0, 1}, bytes);
        complete();
    }
    virtual void receive(int peer, void* data, std::size_t bytes) {
        post_receives(peer, {static_cast<char*>(data), 0, 1}, bytes);
        complete();
    }

    // Has the library reported that it takes pointers to memory of a GPU? Otherwise messages go through host memory.
    virtual bool takes_gpu_memory(GpuApi /*api*/) const { return false; }

    // The capabilities of registry/transports.inc: null where the transport does not offer them.
    virtual Persistent* persistent() { return nullptr; }
    virtual ThreadLanes* thread_lanes() { return nullptr; }
    virtual Rma* rma() { return nullptr; }
    virtual RequestQueue* request_queue() { return nullptr; }
    virtual Collectives* collectives() { return nullptr; }
    virtual MpiCollectives* mpi_collectives() { return nullptr; }
};

// A message to or from that rank cannot be transferred: the rank ended, or there is no connection.
class PeerFailure : public std::runtime_error {
  public:
    PeerFailure(int rank, const std::string& reason) : std::runtime_error(reason), rank_(rank) {}
    int rank() const { return rank_; }

  private:
    int rank_;
};

// What the constructor of a transport may need. Transports use what registry/transports.inc lists.
struct TransportSettings {
    std::string device;    // NIC to use; empty: the choice of the transport
    int streams = 1;       // connections of a pair
    std::string provider;  // of libfabric; empty: its choice
    // Of verbs:
    std::optional<std::int64_t> gid_index;  // absent: a GID that is an address of this host
    int service_level = 0;
    int mtu = 0;                                  // bytes; 0: that of the port
    Capabilities required = capability::nothing;  // of the kernel
    // Of this rank:
    int rank = 0;
    int ranks = 1;                        // of the run
    std::optional<GpuApi> gpu;            // the message buffers are in memory of a GPU
    bool yielding = false;                // wait without spinning: there are more ranks than CPUs
    std::vector<std::string> interfaces;  // network interfaces of the NIC nearest to the rank
    // For a connection to a peer.
    double connect_limit_s = fablint::connect_limit_s;
};

// A row of registry/transports.inc, which documents the fields.
struct TransportInfo {
    const char* name = "";
    Capabilities offers = capability::nothing;
    const char* options = "";
    const char* wins = "";
    const char* syncs = "";
    bool moves_nothing = false;
    bool damages_payloads = false;
    bool is_within_host = false;
    bool needs_mpi = false;
    const char* memories = "";
    const char* description = "";
    std::unique_ptr<Transport> (*make)(const TransportSettings& settings) = nullptr;

    bool accepts(const std::string& option) const;  // an option that does not apply to every transport
    std::string default_memory() const;
    bool is_of_gpus() const { return memory_named(default_memory()).gpu.has_value(); }  // it moves no other memory
};

// The table registry/transports.inc.
const std::vector<TransportInfo>& transports();
const TransportInfo& transport_named(const std::string& name);  // throws a usage error

// One file each in transports/.
#define TRANSPORT(identifier, ...) \
    std::unique_ptr<Transport> make_##identifier##_transport(const TransportSettings& settings);
#include "registry/transports.inc"

}  // namespace fablint
