// The root group of a run directory: the facts of the launch.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "host/facts.hpp"
#include "output/store.hpp"
#include "spec/options.hpp"

namespace fablint {

// Properties of the instrument itself: clock, overhead, skew of the barrier.
struct Instrument {
    ClockFacts clock{};
    double empty_kernel_s = 0.0;  // per message of the latency kernel on the null transport
    double barrier_skew_s = 0.0;  // spread of the ranks' exits from a barrier, median of several

    Json json(const RankGroup& rank_group, bool oversubscribed) const;
};

class Root {
  public:
    // Collective. `epoch_s`: seconds since 1970 from which `started` cells count.
    Root(RankGroup& rank_group, const Facts& facts, const Instrument& instrument,
         const std::vector<std::string>& command, const std::vector<RowOptions>& rows, double epoch_s);

    // Collective. `state`: measuring, complete or interrupted.
    void add_row(const RowOptions& row);  // a row that is not in the plan, such as a retest
    void write(Store& store, const char* state);
    // Collective: the arrays of ranks and hosts, once. Each is gathered, written and released before the next.
    void write_tables(Store& store) const;
    // As write(), when the run ends because of another error: a failure to write is not reported, but returned by rank
    // 0.
    bool write_at_the_end(Store& store, const char* state);

  private:
    Json json(const char* state, bool shared_files) const;

    RankGroup& rank_group_;
    const Facts& facts_;
    const Instrument& instrument_;
    std::vector<std::string> command_;
    std::vector<std::string> names_;
    std::vector<std::string> plan_;
    double epoch_s_;
};

}  // namespace fablint
