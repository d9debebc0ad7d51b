// The one loop: meet in rounds, measure, store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/facts.hpp"
#include "host/retransmissions.hpp"
#include "measure/instrument.hpp"
#include "measure/meeting.hpp"
#include "measure/traffic.hpp"
#include "output/store.hpp"
#include "patterns/pattern.hpp"
#include "ranks/team.hpp"
#include "spec/options.hpp"

namespace fablint {

// What is common to the rows of a run.
struct RunContext {
    Team& team;
    const Clock& clock;
    const Instrument& instrument;
    Store* store;  // null: nothing is written
    Facts* facts;  // null: NIC counters are not read
    Retransmissions& retransmissions;
    double epoch;  // instant of the common clock from which `started` counts
    bool progress;
};

struct RowOutcome {
    bool interrupted = false;
    bool damaged = false;
    std::string table;    // OSU's format, on rank 0; empty for patterns that have none
    std::string slowest;  // the slowest pairs, one per round as --rounds takes them; empty unless asked for
};

// A pair and its mean time per message at the largest size: what LinkTest ranks pairs by.
struct SlowPair {
    float time_s;
    int src, dst;
};

// Set by the signal handler: end after the round under way.
void request_stop();

class Runner {
  public:
    // `rounds_text`: content of the rounds file. Throws a usage error when the ranks do not suffice.
    Runner(const RunContext& context, const RowOptions& row, const std::string& rounds_text);

    // Collective.
    RowOutcome run();

  private:
    const Pattern& pattern_of(std::int64_t round) const;
    Seat seat(std::int64_t round) const;
    void drop_sizes_beyond_memory();
    void make_meeting();
    Grid grid() const;
    Json cells_per_round() const;
    void describe_request(JsonObject& object) const;
    Json attributes(const char* state, const std::string& corrupt) const;
    std::vector<std::int64_t> plan_rounds() const;
    void measure_rounds();
    bool meet_before_round();
    void take_part(std::int64_t round, const Seat& seat);
    void show_progress(std::size_t done, std::size_t all);
    void keep_slow(const Cell& cell);
    std::string collect_damages();
    std::string collect_slowest();
    std::string table();

    RunContext context_;
    Team& team_;
    RowOptions row_;
    const KernelInfo& info_;
    std::vector<std::unique_ptr<Pattern>> patterns_;  // one per repeat
    std::int64_t rounds_per_repeat_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Memory> memory_;
    std::unique_ptr<Meeting> meeting_;
    std::unique_ptr<Traffic> traffic_;
    Signal signal_;
    double began_ = 0.0;
    double last_flush_ = 0.0;
    double last_progress_ = 0.0;
    double measuring_s_ = 0.0;
    bool interrupted_ = false;
    std::vector<char> table_cells_;
    std::vector<SlowPair> slow_;  // the slowest of this rank, at most as many as are asked for
    Json counters_before_ = Json::null();
    Json counters_after_ = Json::null();
    Json tcp_ = Json::null();
};

}  // namespace fablint
