// What the messages of a row pass: its transport, its memory, and the message buffers in that memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/group_measurement.hpp"
#include "measure/run_context.hpp"
#include "measure/schedule.hpp"
#include "measure/traffic.hpp"

namespace fablint {

class Medium {
  public:
    Medium(const RunContext& context, const RowOptions& row, const Schedule& schedule)
        : context_(context), rank_group_(context.rank_group), row_(row), schedule_(schedule) {}

    // Collective. Throws on all ranks where the transport or the memory does not start on one of them.
    void connect();
    // Collective. Throws as `connect` does before the ranks exchange addresses, and closes what it has opened.
    void try_out();
    // Collective. No rank closes or releases what another one still uses.
    void disconnect();
    // Collective. Libraries may keep connections that they have opened for an address: all is opened anew, as by
    // another start of the program, the message buffers included.
    void connect_anew();

    GroupMeasurement& measurement() { return *measurement_; }
    Traffic& traffic() { return *traffic_; }  // of a pattern with background traffic only
    std::vector<Damage> damages() const;      // over all connections so far
    const std::string& gpu_path() const { return gpu_path_; }
    std::string devices() const { return transport_->devices(); }

  private:
    void open();
    void choose_gpu_path(GpuApi gpu);
    void stage(GpuApi gpu);
    void prepare();
    TransportSettings transport_settings() const;
    const std::string& own_memory() const;  // where the buffers of this rank are

    const RunContext& context_;
    RankGroup& rank_group_;
    const RowOptions& row_;
    const Schedule& schedule_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Memory> memory_;
    std::string gpu_path_;  // direct or staged; empty for host memory, and before the first connection
    std::unique_ptr<GroupMeasurement> measurement_;
    std::unique_ptr<Traffic> traffic_;
    std::vector<Damage> earlier_damages_;  // with --reconnect: those over connections that are closed
};

}  // namespace fablint
