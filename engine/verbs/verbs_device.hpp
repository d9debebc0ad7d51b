// RDMA devices through libibverbs: ports, GIDs, registered memory. Included only where the headers of libibverbs exist.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messaging/transport.hpp"
#include "sockets/addresses.hpp"

namespace fablint {

// The exported functions of libibverbs in use; the others are entries of its contexts. The library is loaded at run
// time: the engine links MPI only.
struct LibIbverbs {
    LibIbverbs();
    decltype(ibv_get_device_list)* get_device_list;
    decltype(ibv_free_device_list)* free_device_list;
    decltype(ibv_get_device_name)* get_device_name;
    decltype(ibv_open_device)* open_device;
    decltype(ibv_close_device)* close_device;
    decltype(ibv_query_device)* query_device;
    // Fills the attributes up to link_layer. The header's declaration has another type, for a macro of the same name.
    int (*query_port)(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes);
    decltype(ibv_query_gid)* query_gid;
    decltype(ibv_alloc_pd)* alloc_pd;
    decltype(ibv_dealloc_pd)* dealloc_pd;
    decltype(ibv_reg_mr)* reg_mr;
    decltype(ibv_dereg_mr)* dereg_mr;
    decltype(ibv_create_cq)* create_cq;
    decltype(ibv_destroy_cq)* destroy_cq;
    decltype(ibv_create_qp)* create_qp;
    decltype(ibv_modify_qp)* modify_qp;
    decltype(ibv_destroy_qp)* destroy_qp;
    decltype(ibv_fork_init)* fork_init;
    decltype(ibv_wc_status_str)* wc_status_str;
    decltype(ibv_port_state_str)* port_state_str;
};

const LibIbverbs& ibverbs();  // throws a usage error if the library is missing

struct CloseVerbsObject {
    void operator()(ibv_context* context) const { ibverbs().close_device(context); }
    void operator()(ibv_pd* domain) const { ibverbs().dealloc_pd(domain); }
    void operator()(ibv_mr* region) const { ibverbs().dereg_mr(region); }
    void operator()(ibv_cq* queue) const { ibverbs().destroy_cq(queue); }
    void operator()(ibv_qp* pair) const { ibverbs().destroy_qp(pair); }
};

template <typename Object>
using VerbsObject = std::unique_ptr<Object, CloseVerbsObject>;

// An entry of the GID table of a port.
struct Gid {
    int index = 0;
    bool is_routable = false;  // RoCE v2, over UDP; otherwise RoCE v1
    std::string address;       // numeric IP address
    ibv_gid raw{};
};

// The GID for messages over Ethernet: a GID that is an address of this host's `own` ones (a port of a container may
// show those of others), RoCE v2 before RoCE v1, IPv4 before global IPv6 before link-local IPv6. Null if none is.
const Gid* preferred_gid(const std::vector<Gid>& gids, const std::vector<LocalAddress>& own);

// A port, and the GID that identifies it.
struct VerbsPort {
    std::string device;
    std::uint8_t number = 1;
    ibv_port_attr attributes{};
    std::optional<Gid> gid;               // absent: InfiniBand within a subnet, addressed by LID
    std::vector<std::string> interfaces;  // network interfaces of the port
    std::string name() const { return device + ":" + std::to_string(number); }
    bool is_active() const { return attributes.state == IBV_PORT_ACTIVE; }
};

// An open device with the port that the settings select: by default the first active port of the NIC nearest to the
// rank, otherwise the first active port.
class VerbsDevice {
  public:
    // Throws a usage error if the library, the device, the port or the GID does not exist, or the port is down.
    explicit VerbsDevice(const TransportSettings& settings);

    ibv_context* context() const { return context_.get(); }
    ibv_pd* domain() const { return domain_.get(); }
    const ibv_device_attr& limits() const { return limits_; }
    const VerbsPort& port() const { return port_; }
    // "" while the port is active, otherwise what its state is.
    std::string port_failure() const;

    // The region that covers these bytes: registered at first use, and until the device is closed. Memory that is used
    // must stay allocated as long. Throws an incomplete_error if the memory cannot be registered.
    const ibv_mr& region_of(const void* data, std::size_t bytes) {
        return !regions_.empty() && covers(*regions_.front(), data, bytes) ? *regions_.front()
                                                                           : first_region(data, bytes);
    }
    VerbsObject<ibv_mr> registered(const void* data, std::size_t bytes, int access) const;

  private:
    static bool covers(const ibv_mr& region, const void* data, std::size_t bytes) {
        const char* begin = static_cast<const char*>(region.addr);
        const char* wanted = static_cast<const char*>(data);
        return wanted >= begin && wanted + bytes <= begin + region.length;
    }
    const ibv_mr& first_region(const void* data, std::size_t bytes);

    VerbsObject<ibv_context> context_;
    VerbsPort port_;
    ibv_device_attr limits_{};
    VerbsObject<ibv_pd> domain_;
    std::vector<VerbsObject<ibv_mr>> regions_;  // the last used one first
};

}  // namespace fablint
