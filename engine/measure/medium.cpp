#include "measure/medium.hpp"

#include <cstdio>
#include <utility>

#include "gpu/gpu_runtime.hpp"
#include "transports/staged.hpp"

namespace fablint {

void Medium::connect() {
    rank_group_.throw_if_any_failed(attempt([&] { open(); }));
    if (const auto gpu = row_.gpu(); gpu && row_.kernel_info().sends_messages()) choose_gpu_path(*gpu);
    rank_group_.throw_if_any_failed(attempt([&] { prepare(); }));
}

void Medium::try_out() {
    rank_group_.throw_if_any_failed(attempt([&] { open(); }));
    transport_.reset();
    memory_.reset();
}

void Medium::disconnect() {
    rank_group_.barrier();
    transport_->disconnect();
    rank_group_.barrier();
}

void Medium::connect_anew() {
    disconnect();
    earlier_damages_ = damages();
    traffic_.reset();
    measurement_.reset();
    transport_.reset();
    memory_.reset();
    connect();
}

std::vector<Damage> Medium::damages() const {
    std::vector<Damage> all = earlier_damages_;
    all.insert(all.end(), measurement_->damages().begin(), measurement_->damages().end());
    return all;
}

void Medium::open() {
    MemorySettings settings;
    settings.index_on_host = index_on_host(rank_group_.rank_host(), rank_group_.rank());
    settings.sysfs = context_.sysfs;
    memory_ = make_memory(own_memory(), settings);
    transport_ = transport_named(row_.transport).make(transport_settings());
}

TransportSettings Medium::transport_settings() const {
    TransportSettings settings;
    settings.device = row_.device;
    settings.streams = row_.streams;
    settings.provider = row_.ofi_provider;
    settings.gid_index = row_.gid_index;
    settings.service_level = std::stoi(row_.service_level);
    settings.mtu = row_.mtu.empty() ? 0 : std::stoi(row_.mtu);
    settings.required = row_.kernel_info().required;
    settings.rank = rank_group_.rank();
    settings.ranks = rank_group_.size();
    settings.gpu = memory_named(own_memory()).gpu;
    settings.yielding = rank_group_.yielding();
    settings.interfaces = context_.interfaces;
    settings.connect_limit_s = context_.connect_limit_s;
    return settings;
}

// Collective: the messages of all ranks take the same path.
void Medium::choose_gpu_path(GpuApi gpu) {
    const bool staged = rank_group_.maximum(transport_->takes_gpu_memory(gpu) ? 0.0 : 1.0) > 0.0;
    if (context_.progress && rank_group_.rank() == 0 && gpu_path_.empty())
        std::fprintf(stderr, "fablint-engine: %s: %s\n", row_.name.c_str(),
                     staged ? "messages of GPU memory are staged through host memory: the transport does not report "
                              "that it takes them directly"
                            : "the transport takes messages of GPU memory directly");
    gpu_path_ = staged ? "staged" : "direct";
    if (staged) rank_group_.throw_if_any_failed(attempt([&] { stage(gpu); }));
}

const std::string& Medium::own_memory() const { return row_.memory_of(rank_group_.rank(), rank_group_.size()); }

void Medium::stage(GpuApi gpu) {
    if (row_.kernel_info().required != 0)
        throw usage_error(row_.kernel + " requires a transport with " + capability_names(row_.kernel_info().required) +
                          " that takes GPU memory directly, which " + row_.transport +
                          " does not report here: choose --memory host, or a library built for the GPUs");
    if (memory_named(own_memory()).gpu)  // otherwise no message of this rank is in memory of a GPU
        transport_ = make_staged_transport(std::move(transport_), *memory_, GpuRuntime::of(gpu));
}

void Medium::prepare() {
    const Pattern& pattern = schedule_.pattern();
    GroupMeasurement::GroupShape group_shape;
    group_shape.fan = pattern.fan();
    group_shape.own_fan = schedule_.largest_fan();
    group_shape.hub_leads = row_.pattern_info().sender == StarSender::hub;
    const double overhead_s = context_.instrument.clock.overhead_s;
    measurement_ = std::make_unique<GroupMeasurement>(rank_group_, context_.clock, overhead_s, row_, *transport_,
                                                      *memory_, group_shape);
    if (pattern.background() != nullptr)
        traffic_ = std::make_unique<Traffic>(rank_group_, context_.clock, overhead_s, pattern, !row_.all_to_all,
                                             *transport_, *memory_);
}

}  // namespace fablint
