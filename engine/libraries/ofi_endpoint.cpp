#include "libraries/ofi_endpoint.hpp"

#if __has_include(<rdma/fi_tagged.h>)

#include <sched.h>

#include <array>
#include <cstring>
#include <set>

#include "base/shared_library.hpp"
#include "base/values.hpp"

namespace fablint {

namespace {

std::string needs_of(Capabilities required) {
    std::string needs = "tagged messages";
    if ((required & capability::rma) != 0) needs += " and remote memory access";
    if ((required & (capability::atomics | capability::accumulation)) != 0) needs += " and atomics";
    return needs;
}

// Reliable datagrams with tags. Of the modes of registration all are offered that the window of ofi_window.cpp handles:
// a provider requires those that it needs (cxi: FI_MR_ENDPOINT, FI_MR_PROV_KEY, FI_MR_ALLOCATED). FI_MR_LOCAL is not
// offered: providers then register the buffers of messages themselves, as the utility provider ofi_rxm does.
Info hints_of(Capabilities required) {
    Info hints(libfabric().dupinfo(nullptr));
    hints->caps = FI_TAGGED;
    if ((required & capability::rma) != 0) hints->caps |= FI_RMA;
    if ((required & (capability::atomics | capability::accumulation)) != 0) hints->caps |= FI_ATOMIC;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    return hints;
}

// Null where there is none; `result` is then the error.
Info first_match(const Info& hints, int& result) {
    fi_info* list = nullptr;
    result = libfabric().getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints.get(), &list);
    return Info(result == 0 ? list : nullptr);
}

// The providers that suit, as --ofi-provider takes them: without the utility providers above them.
std::string suitable_providers(Capabilities required) {
    int result = 0;
    const Info all = first_match(hints_of(required), result);
    std::set<std::string> names;
    for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
        const std::string name = info->fabric_attr->prov_name;
        names.insert(name.substr(0, name.find(';')));
    }
    return names.empty() ? "none" : joined(names);
}

// The first match with that device. Providers such as `tcp;ofi_rxm` do not apply the name of the hints.
Info on_device(Info matches, const std::string& device) {
    std::set<std::string> devices;
    for (const fi_info* info = matches.get(); info != nullptr; info = info->next) {
        if (device == info->domain_attr->name) return Info(libfabric().dupinfo(info));
        devices.insert(info->domain_attr->name);
    }
    throw usage_error("libfabric has no --device " + device + " on this host; there are: " + joined(devices));
}

Info find_provider(const TransportSettings& settings) {
    const Info hints = hints_of(settings.required);
    // fi_freeinfo frees the names with the hints.
    if (!settings.provider.empty()) hints->fabric_attr->prov_name = strdup(settings.provider.c_str());
    if (!settings.device.empty()) hints->domain_attr->name = strdup(settings.device.c_str());
    int result = 0;
    Info info = first_match(hints, result);
    if (info) return settings.device.empty() ? std::move(info) : on_device(std::move(info), settings.device);
    const std::string request = (settings.provider.empty() ? "" : " --ofi-provider " + settings.provider) +
                                (settings.device.empty() ? "" : " --device " + settings.device);
    throw usage_error("libfabric has no provider of " + needs_of(settings.required) +
                      (request.empty() ? "" : " for" + request) + ": " + libfabric().error_text(-result) +
                      "; on this host there are: " + suitable_providers(settings.required));
}

}  // namespace

Libfabric::Libfabric() {
    const SharedLibrary library("libfabric.so.1",
                                "load the libfabric module or install libfabric (Debian: libfabric1, Red Hat: "
                                "libfabric), or choose another --transport");
    library.load(getinfo, "fi_getinfo");
    library.load(freeinfo, "fi_freeinfo");
    library.load(dupinfo, "fi_dupinfo");
    library.load(fabric, "fi_fabric");
    library.load(error_text, "fi_strerror");
}

const Libfabric& libfabric() {
    static const Libfabric library;
    return library;
}

OfiEndpoint::OfiEndpoint(const TransportSettings& settings)
    : yielding_(settings.yielding),
      info_(find_provider(settings)),
      is_rxd_(std::strstr(info_->fabric_attr->prov_name, "ofi_rxd") != nullptr) {
    fid_fabric* fabric = nullptr;
    check_ofi(libfabric().fabric(info_->fabric_attr, &fabric, nullptr), "fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    check_ofi(fi_domain(fabric, info_.get(), &domain, nullptr), "domain " + std::string(info_->domain_attr->name));
    domain_.reset(domain);
    fi_cq_attr queue_attributes{};
    queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
    queue_attributes.size = info_->tx_attr->size + info_->rx_attr->size;
    fid_cq* queue = nullptr;
    check_ofi(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "completion queue");
    completions_.reset(queue);
    // The type that the provider prefers: libfabric 2 has no FI_AV_MAP, and the addresses are opaque here.
    fi_av_attr vector_attributes{};
    vector_attributes.type = info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
    fid_av* vector = nullptr;
    check_ofi(fi_av_open(domain, &vector_attributes, &vector, nullptr), "address vector");
    addresses_.reset(vector);
    fid_ep* endpoint = nullptr;
    check_ofi(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "endpoint");
    endpoint_.reset(endpoint);
    check_ofi(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "binding of the completion queue");
    check_ofi(fi_ep_bind(endpoint, &vector->fid, 0), "binding of the address vector");
    check_ofi(fi_enable(endpoint), "endpoint");
}

std::string OfiEndpoint::address() const {
    std::array<char, 512> bytes;
    std::size_t length = bytes.size();
    check_ofi(fi_getname(&endpoint_->fid, bytes.data(), &length), "address");
    return {bytes.data(), length};
}

void OfiEndpoint::connect(int peer, const std::string& address) {
    fi_addr_t place = FI_ADDR_UNSPEC;
    if (fi_av_insert(addresses_.get(), address.data(), 1, &place, 0, nullptr) != 1)
        throw PeerFailure(peer, "libfabric does not accept the address of the rank");
    peers_[peer] = place;
}

std::string OfiEndpoint::device() const {
    return std::string(info_->fabric_attr->prov_name) + "/" + info_->domain_attr->name;
}

bool OfiEndpoint::progress() {
    std::array<fi_cq_entry, 16> entries;
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    for (ssize_t i = 0; i < count; ++i) remove(entries[static_cast<std::size_t>(i)].op_context);
    if (count < 0 && count != -FI_EAGAIN) fail();
    return count > 0;
}

// With more ranks than CPUs, a rank that spins takes the CPU from its peer.
void OfiEndpoint::wait() {
    if (!progress() && yielding_) sched_yield();
}

void OfiEndpoint::fail() {
    fi_cq_err_entry error{};
    fi_cq_readerr(completions_.get(), &error, 0);
    const int peer =
        error.op_context != nullptr ? static_cast<Operation*>(error.op_context)->peer : peers_.begin()->first;
    throw PeerFailure(peer, std::string("libfabric: ") + libfabric().error_text(error.err));
}

}  // namespace fablint

#endif
