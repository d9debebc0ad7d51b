#include "measure/row_suitability.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "base/errors.hpp"
#include "kernels/kernel.hpp"
#include "memories/memory.hpp"
#include "memories/payload.hpp"

namespace fablint {

namespace {

void refuse_idle_rank(const RankGroup& rank_group, const RowOptions& row, const Schedule& schedule) {
    if (!schedule.role(0).idle()) return;
    throw usage_error("--barrier sample needs a partner for every rank, and rank " + std::to_string(rank_group.rank()) +
                      " has none: use " + (row.pattern == "pair" ? "2 ranks" : "an even number of ranks"));
}

// Of this rank.
void refuse_pair_of_hosts(const RankGroup& rank_group, const RowOptions& row, const Schedule& schedule) {
    const std::optional<int> peer = schedule.peer_on_another_host(rank_group.rank_host());
    if (!peer) return;
    const auto rank_text = [&](int rank) { return "rank " + std::to_string(rank) + " on " + rank_group.host_of(rank); };
    throw usage_error("transport " + row.transport + " connects ranks of one host, and row " + row.name +
                      " has a pair of " + rank_text(rank_group.rank()) + " and " + rank_text(*peer) +
                      ": measure one host, or pairs within hosts (--pattern rounds), or use --transport nccl or mpi");
}

}  // namespace

void refuse_unsuitable(RankGroup& rank_group, const RowOptions& row, const Schedule& schedule) {
    if (row.kernel_info().accepts("sync") && row.sync == "fence" && rank_group.size() != 2)
        throw usage_error("--sync fence synchronises all ranks of the run: it needs exactly 2, not " +
                          std::to_string(rank_group.size()));
    // A rank knows its own role only. No rank measures anything before all rows have passed.
    if (row.barrier_each || transport_named(row.transport).is_within_host)
        rank_group.throw_if_any_failed(attempt([&] {
            if (row.barrier_each) refuse_idle_rank(rank_group, row, schedule);
            if (transport_named(row.transport).is_within_host) refuse_pair_of_hosts(rank_group, row, schedule);
        }));
    if (!row.kernel_info().sends_messages()) row.kernel_info().make(row);  // throws where the row does not suit it
}

void drop_sizes_beyond_memory(RowOptions& row, int ranks) {
    // Requested sizes may fill a GPU, whose driver refuses what it cannot allocate; a host may have other work.
    if (row.sizes_given && row.gpu()) return;
    constexpr std::size_t most = std::size_t{512} << 20;
    const std::unique_ptr<Kernel> kernel = row.kernel_info().make(row);
    const auto layout = kernel->traits().slot_per_rank ? Payload::Layout::dense : Payload::Layout::spaced;
    const auto too_large = [&](std::size_t bytes) {
        return 2 * Payload::half_footprint(bytes, kernel->slots(1, 1, ranks), layout) > most;
    };
    const auto first =
        std::stable_partition(row.sizes.begin(), row.sizes.end(), [&](std::size_t bytes) { return !too_large(bytes); });
    if (first == row.sizes.end()) return;
    if (row.sizes_given || first == row.sizes.begin())
        throw usage_error(row.kernel + " of " + std::to_string(*first) + " bytes with " + std::to_string(ranks) +
                          " ranks needs more than 512 MiB per rank: choose smaller --sizes");
    row.sizes.erase(first, row.sizes.end());
}

}  // namespace fablint
