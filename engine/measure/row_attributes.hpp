// Attributes of a row's group in the run directory: docs/reference/run-format.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "host/retransmissions.hpp"
#include "kernels/kernel.hpp"
#include "measure/schedule.hpp"
#include "output/tables.hpp"
#include "ranks/rank_group.hpp"

namespace fablint {

// State of a row, in addition to its request.
struct RowState {
    std::string state;               // measuring, complete, interrupted
    std::string corrupt;             // JSON objects of damaged messages, separated by commas
    std::string gpu_path;            // of messages of GPU memory: direct or staged; empty: host memory
    double measuring_s = 0.0;        // time within rounds
    double wall_s = 0.0;             // time since the row began
    std::vector<float> cpu_wait_s;   // time that ranks waited for a CPU; empty: not known
    std::optional<TcpSegments> tcp;  // none: no TCP traffic
    Json devices = Json::null();     // choice of the transport's library by rank; null: it chooses nothing
};

// Collective. The damages of all ranks as `RowState` has them, on rank 0.
std::string collect_damages(RankGroup& rank_group, const std::vector<Damage>& damages);

// Collective. The choice of the transport's library and the ranks that have it, on rank 0: {"tcp/eth0": "0-3,5"}.
Json collect_devices(RankGroup& rank_group, const std::string& own);

// Writes what a row has of each rank or host.
void write_row_tables(const Tables& tables, const Schedule& schedule, const RowState& state);

Json row_attributes(const RowOptions& row, const Schedule& schedule, const RowState& state);

}  // namespace fablint
