#if __has_include(<infiniband/verbs.h>)

#include "verbs/verbs_device.hpp"

#include <arpa/inet.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/shared_library.hpp"
#include "base/sysfs.hpp"
#include "base/values.hpp"

namespace fablint {

namespace {

const std::filesystem::path devices_folder = "/sys/class/infiniband";
constexpr std::uintptr_t page = 4096;

struct FreeDeviceList {
    void operator()(ibv_device** list) const { ibverbs().free_device_list(list); }
};

std::string system_error() { return std::strerror(errno); }

std::filesystem::path folder_of(const std::string& device, int port) {
    return devices_folder / device / "ports" / std::to_string(port);
}

std::vector<std::string> interfaces_of(const std::string& device) {
    std::vector<std::string> names;
    for (const auto& path : entries(devices_folder / device / "device" / "net")) names.push_back(path.filename());
    return names;
}

std::optional<Gid> gid_at(ibv_context* context, const VerbsPort& port, int index) {
    Gid gid;
    gid.index = index;
    if (ibverbs().query_gid(context, port.number, index, &gid.raw) != 0) return std::nullopt;
    if (gid.raw.global.subnet_prefix == 0 && gid.raw.global.interface_id == 0) return std::nullopt;
    const auto types = folder_of(port.device, port.number) / "gid_attrs" / "types" / std::to_string(index);
    gid.is_routable = first_line(types) == "RoCE v2";
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    std::memcpy(&address.sin6_addr, gid.raw.raw, sizeof gid.raw.raw);
    gid.address = address_text(reinterpret_cast<const sockaddr*>(&address));
    return gid;
}

std::vector<Gid> gids_of(ibv_context* context, const VerbsPort& port) {
    std::vector<Gid> gids;
    for (int index = 0; index < port.attributes.gid_tbl_len; ++index)
        if (auto gid = gid_at(context, port, index)) gids.push_back(*gid);
    return gids;
}

// Sets the GID of the port. False if the rank cannot send through it.
bool select_gid(ibv_context* context, VerbsPort& port, const std::optional<std::int64_t>& index) {
    if (index) {
        if (*index < port.attributes.gid_tbl_len) port.gid = gid_at(context, port, static_cast<int>(*index));
        return port.gid.has_value();
    }
    if (port.attributes.link_layer != IBV_LINK_LAYER_ETHERNET) return true;
    const std::vector<LocalAddress> own = local_addresses();
    const std::vector<Gid> gids = gids_of(context, port);
    if (const Gid* gid = preferred_gid(gids, own)) {
        port.gid = *gid;
        for (const LocalAddress& local : own)
            if (local.address == gid->address) port.interfaces = {local.interface};
    }
    return port.gid.has_value();
}

struct OpenPort {
    VerbsObject<ibv_context> context;
    VerbsPort port;
};

// The ports of the devices, each with a context of its own. `device` is NAME or NAME:PORT; empty: all.
std::vector<OpenPort> open_ports(const std::string& device) {
    int count = 0;
    const std::unique_ptr<ibv_device*, FreeDeviceList> list(ibverbs().get_device_list(&count));
    if (!list || count == 0)
        throw usage_error(
            "this host has no InfiniBand or RoCE device: load the driver of its NIC (rdma-core), or choose another "
            "--transport");
    const std::size_t colon = device.find(':');
    const std::string wanted = device.substr(0, colon);
    const int number = colon == std::string::npos ? 0 : parse_count("device", device.substr(colon + 1), 1);
    std::string names, refusal;
    std::vector<OpenPort> ports;
    for (int i = 0; i < count; ++i) {
        const std::string name = ibverbs().get_device_name(list.get()[i]);
        names += (names.empty() ? "" : ", ") + name;
        if (!wanted.empty() && name != wanted) continue;
        ibv_device_attr limits{};
        VerbsObject<ibv_context> context(ibverbs().open_device(list.get()[i]));
        if (!context || ibverbs().query_device(context.get(), &limits) != 0) {
            refusal = "device " + name + " cannot be opened: " + system_error();
            continue;
        }
        for (int each = 1; each <= limits.phys_port_cnt; ++each) {
            if (number != 0 && each != number) continue;
            VerbsPort port;
            port.device = name;
            port.number = static_cast<std::uint8_t>(each);
            port.interfaces = interfaces_of(name);
            if (!context) context.reset(ibverbs().open_device(list.get()[i]));
            if (!context || ibverbs().query_port(context.get(), port.number, &port.attributes) != 0) continue;
            ports.push_back({std::move(context), port});
        }
        if (number > limits.phys_port_cnt) refusal = "device " + name + " has no port " + std::to_string(number);
    }
    if (!ports.empty()) return ports;
    if (!refusal.empty()) throw usage_error(refusal);
    throw usage_error("no RDMA device '" + wanted + "': this host has " + names);
}

OpenPort select_port(const TransportSettings& settings) {
    std::vector<OpenPort> ports = open_ports(settings.device);
    std::string down, without_gid;
    const auto is_near = [&](const OpenPort& open) {
        return std::find_first_of(open.port.interfaces.begin(), open.port.interfaces.end(), settings.interfaces.begin(),
                                  settings.interfaces.end()) != open.port.interfaces.end();
    };
    std::vector<OpenPort> usable;
    for (OpenPort& open : ports) {
        const std::string name = open.port.name();
        if (!open.port.is_active()) {
            down += (down.empty() ? "" : ", ") + name;
        } else if (!select_gid(open.context.get(), open.port, settings.gid_index)) {
            without_gid += (without_gid.empty() ? "" : ", ") + name;
        } else {
            usable.push_back(std::move(open));
        }
    }
    if (!usable.empty()) {
        const auto near = std::find_if(usable.begin(), usable.end(), is_near);
        return std::move(near != usable.end() ? *near : usable.front());
    }
    if (without_gid.empty())
        throw usage_error("no RDMA port is active: " + down + " is down: check its cable and its subnet manager");
    if (settings.gid_index)
        throw usage_error("--gid-index " + std::to_string(*settings.gid_index) + ": " + without_gid +
                          " has no such GID: 'ibv_devinfo -v' lists the GIDs");
    throw usage_error("no GID of " + without_gid +
                      " is an IP address of this host: configure its network interface, or choose a --gid-index");
}

}  // namespace

LibIbverbs::LibIbverbs() {
    const SharedLibrary library("libibverbs.so.1",
                                "install libibverbs and its drivers (Debian: ibverbs-providers, Red Hat: libibverbs), "
                                "or choose another --transport");
#define LOAD(name) library.load(name, "ibv_" #name)
    LOAD(get_device_list);
    LOAD(free_device_list);
    LOAD(get_device_name);
    LOAD(open_device);
    LOAD(close_device);
    LOAD(query_device);
    LOAD(query_port);
    LOAD(query_gid);
    LOAD(alloc_pd);
    LOAD(dealloc_pd);
    LOAD(reg_mr);
    LOAD(dereg_mr);
    LOAD(create_cq);
    LOAD(destroy_cq);
    LOAD(create_qp);
    LOAD(modify_qp);
    LOAD(destroy_qp);
    LOAD(fork_init);
    LOAD(wc_status_str);
    LOAD(port_state_str);
#undef LOAD
    fork_init();  // for latency_mp; newer kernels need no preparation, and MPI may have prepared already
}

const LibIbverbs& ibverbs() {
    static const LibIbverbs library;
    return library;
}

const Gid* preferred_gid(const std::vector<Gid>& gids, const std::vector<LocalAddress>& own) {
    const Gid* best = nullptr;
    int best_rank = 0;
    for (const Gid& gid : gids) {
        const bool is_own = std::any_of(own.begin(), own.end(),
                                        [&](const LocalAddress& local) { return local.address == gid.address; });
        if (!is_own) continue;
        const int family = !is_ipv6(gid.address) ? 3 : is_link_local(gid.address) ? 1 : 2;
        const int rank = (gid.is_routable ? 4 : 0) + family;
        if (rank > best_rank) {
            best = &gid;
            best_rank = rank;
        }
    }
    return best;
}

VerbsDevice::VerbsDevice(const TransportSettings& settings) {
    OpenPort open = select_port(settings);
    context_ = std::move(open.context);
    port_ = open.port;
    ibverbs().query_device(context_.get(), &limits_);
    domain_.reset(ibverbs().alloc_pd(context_.get()));
    if (!domain_) throw usage_error("no protection domain on " + port_.name() + ": " + system_error());
}

std::string VerbsDevice::port_failure() const {
    ibv_port_attr now{};
    if (ibverbs().query_port(context_.get(), port_.number, &now) != 0) return "device " + port_.device + " is gone";
    if (now.state == IBV_PORT_ACTIVE) return "";
    return "port " + port_.name() + " is " + ibverbs().port_state_str(now.state);
}

VerbsObject<ibv_mr> VerbsDevice::registered(const void* data, std::size_t bytes, int access) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(data) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes + page - 1) / page * page;
    VerbsObject<ibv_mr> region(ibverbs().reg_mr(domain_.get(), reinterpret_cast<void*>(begin), end - begin, access));
    if (region) return region;
    const std::string reason = system_error();
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    throw incomplete_error(port_.device + " cannot register " + std::to_string(end - begin) + " bytes: " + reason +
                           (limit.rlim_cur == RLIM_INFINITY
                                ? std::string()
                                : ": locked memory is limited to " + std::to_string(limit.rlim_cur) +
                                      " bytes: raise memlock in limits.conf"));
}

const ibv_mr& VerbsDevice::first_region(const void* data, std::size_t bytes) {
    const auto found = std::find_if(regions_.begin(), regions_.end(),
                                    [&](const VerbsObject<ibv_mr>& region) { return covers(*region, data, bytes); });
    if (found == regions_.end()) {
        regions_.insert(regions_.begin(), registered(data, bytes, IBV_ACCESS_LOCAL_WRITE));
    } else if (found != regions_.begin()) {
        std::iter_swap(regions_.begin(), found);
    }
    return *regions_.front();
}

}  // namespace fablint

#endif
