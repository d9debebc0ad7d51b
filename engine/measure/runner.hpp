// One row: all of its rounds, measured and stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "host/cpu_wait.hpp"
#include "measure/medium.hpp"
#include "measure/retest.hpp"
#include "measure/row_attributes.hpp"
#include "measure/run_context.hpp"
#include "measure/schedule.hpp"

namespace fablint {

struct RowOutcome {
    std::optional<Error> refusal;  // of the transport or the memory, before the first message
    bool interrupted = false;
    bool damaged = false;
    std::string table;    // OSU's format, on rank 0; empty for patterns that have none
    std::string slowest;  // the slowest pairs, one per round as --rounds takes them; empty unless --retest is given
};

// For a signal handler: end the run after the current round.
void request_stop();
bool is_stop_requested();

class Runner {
  public:
    // `file_rounds`: what this rank does in the rounds of the rounds file. Collective. Throws a usage error where the
    // ranks do not suffice.
    Runner(const RunContext& context, const RowOptions& row, const RoundRoles& file_rounds);

    // Collective. Throws on all ranks where the transport or the memory does not start on one of them.
    void try_medium() { medium_.try_out(); }

    // Collective. Nothing is measured or written where the transport or the memory does not start.
    RowOutcome run();

  private:
    RowState state(const char* word, const std::string& corrupt) const;
    Json attributes(const char* word, const std::string& corrupt) const;
    void begin_row();
    void read_counters();
    void end_row(const char* word, const std::string& corrupt);
    void measure_rounds();
    bool begin_round();
    void flush();
    void flush_rounds();
    bool end_size(const Cell& cell, std::size_t done);
    bool is_by_size() const;
    void report_damage() const;
    void take_part(std::int64_t round, const Role& role);
    void keep(const Cell& cell, const Role& role);
    void show_progress(std::size_t done, std::size_t all);
    std::string table();

    RunContext context_;
    RankGroup& rank_group_;
    RowOptions row_;
    Schedule schedule_;
    Medium medium_;
    SlowestPairs slowest_;
    Signal signal_;
    double began_ = 0.0;
    double last_flush_ = 0.0;
    double last_progress_ = 0.0;
    double measuring_s_ = 0.0;
    std::size_t done_ = 0;  // rounds
    std::size_t all_ = 0;
    bool interrupted_ = false;
    std::vector<char> table_cells_;
    std::optional<CounterTable> counters_;  // none: NIC counters are not read
    CpuWait cpu_wait_{rank_group_};
    std::vector<float> cpu_waited_s_;
    std::optional<TcpSegments> tcp_segments_;
    Json devices_ = Json::null();
};

}  // namespace fablint
