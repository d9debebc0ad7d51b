#include "output/root.hpp"

#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "base/version.hpp"
#include "ranks/mpi_control.hpp"

namespace fablint {

namespace {

std::string utc(double epoch_s) {
    const auto seconds = static_cast<std::time_t>(epoch_s);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

Json mpi_json() {
    const std::optional<MpiLibrary> mpi = mpi_library();
    if (!mpi) return Json::null();
    return JsonObject()
        .add("library", mpi->text)
        .add("standard", mpi->standard)
        .add("thread_level", mpi->thread_level)
        .json();
}

}  // namespace

Json Instrument::json(const RankGroup& rank_group, bool oversubscribed) const {
    return JsonObject()
        .add("clock", wall_clock().name())
        .add("resolution_s", clock.resolution_s)
        .add("overhead_s", clock.overhead_s)
        .add("empty_kernel_s", empty_kernel_s)
        .add("barrier_skew_s", barrier_skew_s)
        .add("clock_sync_s", rank_group.clock_uncertainty())
        .add("oversubscribed", oversubscribed)
        .json();
}

Root::Root(RankGroup& rank_group, const Facts& facts, const Instrument& instrument,
           const std::vector<std::string>& command, const std::vector<RowOptions>& rows, double epoch_s)
    : rank_group_(rank_group), facts_(facts), instrument_(instrument), command_(command), epoch_s_(epoch_s) {
    for (const RowOptions& row : rows) add_row(row);
}

void Root::add_row(const RowOptions& row) {
    names_.push_back(row.name);
    plan_.push_back(row.text());
}

void Root::write(Store& store, const char* state) {
    rank_group_.on_rank_0([&] { store.write_root(json(state, store.shared_files())); });
}

void Root::write_tables(Store& store) const {
    const Tables tables = store.run_tables();
    std::optional<Error> failure;
    const auto write = [&](const std::string& name, const std::string& dimension, const auto& values) {
        if (rank_group_.rank() == 0 && !failure) failure = attempt([&] { tables.write(name, dimension, values); });
    };
    if (rank_group_.rank() == 0) failure = attempt([&] { tables.create(); });
    write("hosts", "host", rank_group_.hosts());
    write("rank_host", "rank", rank_group_.rank_host());
    for (const auto& [name, text] : facts_.texts()) write(name, "rank", rank_group_.gather(text));
    write("rank_numa", "rank", rank_group_.gather_numbers(static_cast<std::int32_t>(facts_.numa())));
    write("rank_pid", "rank", rank_group_.gather_numbers(static_cast<std::int32_t>(getpid())));
    if (const std::optional<MpiLibrary> mpi = mpi_library())
        write("mpi_init_s", "rank", rank_group_.gather_numbers(static_cast<float>(mpi->init_s)));
    const GatheredTexts nics = rank_group_.gather(facts_.nics_text());
    write("host_nics", "host", rank_group_.rank() == 0 ? nics.of(rank_group_.first_ranks()) : nics);
    rank_group_.throw_if_any_failed(failure);
}

bool Root::write_at_the_end(Store& store, const char* state) {
    if (rank_group_.rank() != 0) return true;
    return !attempt([&] { store.write_root(json(state, store.shared_files())); });
}

Json Root::json(const char* state, bool shared_files) const {
    JsonObject root;
    root.add("format", 1)
        .add("state", state)
        .add("creator", std::string("fablint-engine ") + engine_version)
        .add("command", Json::list(command_))
        .add("started", utc(epoch_s_))
        .add("started_epoch_s", epoch_s_)
        .add("rows", Json::list(names_))
        .add("plan", Json::list(plan_))  // resume needs the rows that have not started
        .add("mpi", mpi_json())
        .add("instrument", instrument_.json(rank_group_, facts_.oversubscribed()))
        .add("shared_files", shared_files);
    facts_.describe(root);
    return root.json();
}

}  // namespace fablint
