#include "libraries/ucp_worker.hpp"

#if __has_include(<ucp/api/ucp.h>)

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "base/errors.hpp"
#include "base/shared_library.hpp"
#include "base/values.hpp"

namespace fablint {

namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr auto close_limit = std::chrono::seconds(2);

std::uint64_t features_of(Capabilities required) {
    std::uint64_t features = UCP_FEATURE_TAG;
    if ((required & capability::rma) != 0) features |= UCP_FEATURE_RMA;
    if ((required & capability::atomics) != 0) features |= UCP_FEATURE_AMO64;
    return features;
}

// What `print` writes to a stream; empty if memory for it cannot be had.
template <typename Print>
std::string printed(const Print& print) {
    char* text = nullptr;
    std::size_t length = 0;
    FILE* const stream = open_memstream(&text, &length);
    if (stream == nullptr) return "";
    print(stream);
    std::fclose(stream);
    const std::string copy(text, length);
    std::free(text);
    return copy;
}

// Is one of the devices that a list names among the lines of ucp_context_print_info? They are such as
//     #      resource 4  :  md 1  dev 1  flags -- tcp/eth0
bool has_device(const std::string& text, const std::string& list) {
    std::set<std::string> devices{"all"};
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t slash = line.rfind('/');
        if (line.find("resource") != std::string::npos && slash != std::string::npos)
            devices.insert(line.substr(slash + 1));
    }
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');)
        if (devices.count(name) > 0) return true;
    return false;
}

// Why the kernel did not connect, which UCX prints and does not return: a refused TCP connection is to UCX an
// unreachable destination, as a peer without a common transport. Empty if `error` has another origin.
std::string refusal(int error) {
    const bool is_of_connection = error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
                                  error == ETIMEDOUT || error == EPERM || error == EACCES;
    return is_of_connection ? std::string(" (") + std::strerror(error) + ")" : "";
}

// Lines of ucp_ep_print_info such as
//     #    lane[0]:  3:tcp/eth0.0 md[1]    -> addr[1].md[1]/tcp/sysdev[255] am am_bw#0
void add_lanes(const std::string& text, std::set<std::string>& lanes) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string hash, lane, resource;
        words >> hash >> lane >> resource;
        const std::size_t colon = resource.find(':');
        if (lane.rfind("lane[", 0) == 0 && colon != std::string::npos)
            lanes.insert(resource.substr(colon + 1, resource.rfind('.') - colon - 1));
    }
}

}  // namespace

Ucp::Ucp() {
    const SharedLibrary library("libucp.so.0",
                                "load the UCX module or install UCX (Debian: libucx0, Red Hat: ucx), or choose another "
                                "--transport");
#define LOAD(name) library.load(name, "ucp_" #name)
    LOAD(config_read);
    LOAD(config_modify);
    LOAD(config_release);
    LOAD(init_version);
    LOAD(cleanup);
    LOAD(worker_create);
    LOAD(context_query);
    LOAD(worker_destroy);
    LOAD(worker_get_address);
    LOAD(worker_release_address);
    LOAD(worker_progress);
    LOAD(worker_flush_nbx);
    LOAD(ep_create);
    LOAD(ep_close_nbx);
    LOAD(ep_flush_nbx);
    LOAD(context_print_info);
    LOAD(ep_print_info);
    LOAD(ep_rkey_unpack);
    LOAD(tag_send_nbx);
    LOAD(tag_recv_nbx);
    LOAD(put_nbx);
    LOAD(get_nbx);
    LOAD(atomic_op_nbx);
    LOAD(mem_map);
    LOAD(mem_unmap);
    LOAD(mem_query);
    LOAD(rkey_pack);
    LOAD(rkey_buffer_release);
    LOAD(rkey_destroy);
    LOAD(request_check_status);
    LOAD(request_free);
#undef LOAD
    library.load(status_string, "ucs_status_string");
}

const Ucp& ucp() {
    static const Ucp library;
    return library;
}

void check_ucs(ucs_status_t status, const std::string& action) {
    if (status != UCS_OK) throw usage_error("UCX: " + action + ": " + ucp().status_string(status));
}

UcpWorker::UcpWorker(const TransportSettings& settings) : yielding_(settings.yielding) {
    ucp_config_t* config = nullptr;
    check_ucs(ucp_.config_read(nullptr, nullptr, &config), "configuration");
    ucs_status_t status = UCS_OK;
    if (!settings.device.empty()) status = ucp_.config_modify(config, "NET_DEVICES", settings.device.c_str());
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = features_of(settings.required);
    if (status == UCS_OK) status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
    ucp_.config_release(config);
    check_ucs(status, settings.device.empty() ? "start" : "start with --device " + settings.device);
    // UCX prints a warning and goes on without a network.
    const auto print_context = [this](FILE* stream) { ucp_.context_print_info(context_, stream); };
    if (!settings.device.empty() && !has_device(printed(print_context), settings.device)) {
        ucp_.cleanup(context_);
        throw usage_error("UCX has no device " + settings.device + " on this host: ucx_info -d lists its devices");
    }
    ucp_worker_params_t worker_parameters{};
    worker_parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
    status = ucp_.worker_create(context_, &worker_parameters, &worker_);
    if (status != UCS_OK) ucp_.cleanup(context_);
    check_ucs(status, "worker");
}

UcpWorker::~UcpWorker() {
    std::vector<void*> closing;
    for (const auto& [peer, endpoint] : endpoints_) {
        ucp_request_param_t no_flags{};
        void* request = ucp_.ep_close_nbx(endpoint, &no_flags);
        if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
    }
    // A peer that has ended confirms nothing.
    const auto deadline = SteadyTime::now() + close_limit;
    for (void* request : closing) {
        while (ucp_.request_check_status(request) == UCS_INPROGRESS && SteadyTime::now() < deadline) wait();
        ucp_.request_free(request);
    }
    ucp_.worker_destroy(worker_);
    ucp_.cleanup(context_);
}

bool UcpWorker::has_memory_type(ucs_memory_type_t type) const {
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    check_ucs(ucp_.context_query(context_, &attributes), "memory types");
    return (attributes.memory_types >> type & 1U) != 0;
}

std::string UcpWorker::address() const {
    ucp_address_t* bytes = nullptr;
    std::size_t length = 0;
    check_ucs(ucp_.worker_get_address(worker_, &bytes, &length), "address");
    const std::string text(reinterpret_cast<const char*>(bytes), length);
    ucp_.worker_release_address(worker_, bytes);
    return text;
}

void UcpWorker::connect(int peer, const std::string& address) {
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint = nullptr;
    errno = 0;
    const ucs_status_t status = ucp_.ep_create(worker_, &parameters, &endpoint);
    if (status != UCS_OK)
        throw PeerFailure(peer, std::string("UCX: no endpoint: ") + ucp_.status_string(status) + refusal(errno));
    endpoints_[peer] = endpoint;
}

void UcpWorker::flush() {
    ucp_request_param_t no_flags{};
    void* request = ucp_.worker_flush_nbx(worker_, &no_flags);
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_.request_check_status(request) == UCS_INPROGRESS) wait();
    ucp_.request_free(request);
}

std::string UcpWorker::devices() const {
    std::set<std::string> lanes;
    for (const auto& connection : endpoints_)
        add_lanes(printed([&](FILE* stream) { ucp_.ep_print_info(connection.second, stream); }), lanes);
    return joined(lanes);
}

// With more ranks than CPUs, a rank that spins takes the CPU from its peer.
void UcpWorker::wait() {
    if (!progress() && yielding_) sched_yield();
}

}  // namespace fablint

#endif
