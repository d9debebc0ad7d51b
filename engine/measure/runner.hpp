// One row: all of its rounds, measured and stored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "host/cpu_wait.hpp"
#include "host/facts.hpp"
#include "host/retransmissions.hpp"
#include "measure/group_measurement.hpp"
#include "measure/instrument.hpp"
#include "measure/retest.hpp"
#include "measure/row_attributes.hpp"
#include "measure/schedule.hpp"
#include "measure/traffic.hpp"
#include "output/store.hpp"
#include "ranks/rank_group.hpp"
#include "sockets/connect_limit.hpp"

namespace fablint {

// What the rows of a run have in common.
struct RunContext {
    RankGroup& rank_group;
    const Clock& clock;
    const Instrument& instrument;
    Store* store;  // null: nothing is written
    Facts* facts;  // null: NIC counters are not read
    Retransmissions& retransmissions;
    const std::vector<std::string>& interfaces;  // of the NIC nearest to this rank
    double epoch;                                // instant of the common clock from which `started` counts
    bool progress;
    bool by_size;  // write and report each size of a row of one round when it is measured
    std::string sysfs = "/sys";
    double connect_limit_s = fablint::connect_limit_s;  // of transports, for a connection to a peer
};

struct RowOutcome {
    std::optional<Error> refusal;  // of the transport or the memory, before the first message
    bool interrupted = false;
    bool damaged = false;
    std::string table;    // OSU's format, on rank 0; empty for patterns that have none
    std::string slowest;  // the slowest pairs, one per round as --rounds takes them; empty unless --retest is given
};

// For a signal handler: end the run after the current round.
void request_stop();

class Runner {
  public:
    // `rounds_text`: content of the rounds file. Throws a usage error where the ranks do not suffice.
    Runner(const RunContext& context, const RowOptions& row, const std::string& rounds_text);

    // Collective. Nothing is measured or written where the transport or the memory does not start.
    RowOutcome run();

  private:
    void refuse_pairs_of_hosts() const;
    void drop_sizes_beyond_memory();
    void connect();
    void disconnect();
    void connect_anew();
    void open();
    void choose_gpu_path(GpuApi gpu);
    void stage(GpuApi gpu);
    void prepare();
    TransportSettings transport_settings() const;
    Json attributes(const char* state, const std::string& corrupt) const;
    void measure_rounds();
    bool begin_round();
    void flush();
    bool end_size(const Cell& cell, std::size_t done);
    bool is_by_size() const;
    void report_damage() const;
    void take_part(std::int64_t round, const Role& role);
    void keep(const Cell& cell, const Role& role);
    void show_progress(std::size_t done, std::size_t all);
    std::vector<Damage> damages() const;
    std::string collect_damages();
    Json collect_devices();
    std::string table();

    RunContext context_;
    RankGroup& rank_group_;
    RowOptions row_;
    const KernelInfo& info_;
    Schedule schedule_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Memory> memory_;
    std::string gpu_path_;  // direct or staged; empty for host memory
    std::unique_ptr<GroupMeasurement> measurement_;
    std::unique_ptr<Traffic> traffic_;
    std::vector<Damage> earlier_damages_;  // with --reconnect: those over connections that are closed
    SlowestPairs slowest_;
    Signal signal_;
    double began_ = 0.0;
    double last_flush_ = 0.0;
    double last_progress_ = 0.0;
    double measuring_s_ = 0.0;
    bool interrupted_ = false;
    std::vector<char> table_cells_;
    Json counters_before_ = Json::null();
    Json counters_after_ = Json::null();
    CpuWait cpu_wait_{rank_group_};
    Json cpu_waited_ = Json::null();
    Json tcp_segments_ = Json::null();
    Json devices_ = Json::null();
};

}  // namespace fablint
