#include "measure/row_attributes.hpp"

#include <algorithm>
#include <map>

namespace fablint {

namespace {

// One number where all rounds have the same number of cells, otherwise a list.
Json cells_json(const std::vector<int>& cells) {
    const bool same = std::all_of(cells.begin(), cells.end(), [&](int count) { return count == cells.front(); });
    return same ? Json(cells.front()) : Json::list(cells);
}

Json stop_json(const RowOptions& row) {
    std::vector<std::int64_t> iterations;
    if (row.iterations)
        for (const std::size_t size : row.sizes) iterations.push_back(*row.iterations_for(size));
    return JsonObject()
        .add("samples", row.stop.samples ? Json(*row.stop.samples) : Json::null())
        .add("budget_s", row.stop.budget_s)
        .add("precision", row.stop.precision ? Json(*row.stop.precision) : Json::null())
        .add("iterations", row.iterations ? Json::list(iterations) : Json::null())
        .json();
}

const char* directions(const RowOptions& row) {
    if (!row.pattern_info().has_pairs()) return "one";
    return row.single_direction ? "single" : "both";
}

void add_request(JsonObject& object, const RowOptions& row, const Schedule& schedule) {
    const KernelInfo& kernel = row.kernel_info();
    const PatternInfo& pattern = row.pattern_info();
    std::vector<int> windows, warmups;
    for (const std::size_t size : row.sizes) {
        windows.push_back(row.window_for(size, schedule.pattern().fan()));
        warmups.push_back(row.warmup_for(size));
    }
    object.add("kernel", row.kernel)
        .add("purpose", row.purpose)
        .add("pattern", row.pattern)
        .add("transport", row.transport)
        .add("memory", row.memory)
        .add("order", row.serial ? "serial" : "parallel")
        .add("options", row.text())
        .add("quantity", word(kernel.quantity))
        .add("payload", word(pattern.sender == StarSender::hub ? Sender::dst : kernel.payload))
        .add("directions", directions(row))
        .add("repeats", row.repeats)
        .add("seed", row.seed)
        .add("windows", Json::list(windows))
        .add("warmup", row.warmup.small)
        .add("warmups", Json::list(warmups))
        .add("stop", stop_json(row))
        .add("validate", row.validate);
}

// Attributes that only some kernels and patterns have.
void add_options_of_kernel_and_pattern(JsonObject& object, const RowOptions& row) {
    const KernelInfo& kernel = row.kernel_info();
    if (kernel.windowed()) object.add("buffers", row.single_buffer ? "single" : "distinct");
    if (row.pattern_info().has_pairs()) object.add("barrier", row.barrier_each ? "sample" : "start");
    object.add("mean", row.loop_mean ? "loop" : "samples");
    if (!row.peer_memory.empty()) object.add("peer_memory", row.peer_memory);
    if (row.applies("device")) object.add("device", row.device);
    if (row.applies("streams")) object.add("streams", row.streams);
    if (row.applies("ofi-provider")) object.add("ofi_provider", row.ofi_provider);
    if (row.applies("gid-index") && row.gid_index) object.add("gid_index", *row.gid_index);
    if (row.applies("service-level")) object.add("service_level", row.service_level);
    if (row.applies("mtu") && !row.mtu.empty()) object.add("mtu", row.mtu);
    if (row.applies("reconnect")) object.add("reconnect", row.reconnect ? passes_per_connection : 0);
    if (kernel.accepts("copy")) object.add("copy", row.copy);
    if (kernel.accepts("compute")) object.add("compute", row.compute).add("tests", row.tests);
    if (kernel.accepts("win")) object.add("win", row.win);
    if (kernel.accepts("sync")) object.add("sync", row.sync);
    if (kernel.accepts("server-flight")) object.add("server_flight", row.server_flight);
    if (kernel.accepts("workers"))
        object.add("workers", Json::list(std::vector<int>{row.workers.senders, row.workers.receivers}));
    if (kernel.accepts("in-place")) object.add("in_place", row.in_place);
    if (kernel.collective()) object.add("batch", row.validate ? 1 : row.batch.value_or(1));
    if (row.applies("servers")) object.add("servers", row.servers);
    if (row.applies("aggressor")) object.add("aggressor", row.all_to_all ? "all-to-all" : "incast");
    if (!row.retest_of.empty()) object.add("retest_of", row.retest_of);
}

}  // namespace

Json row_attributes(const RowOptions& row, const Schedule& schedule, const RowState& state) {
    JsonObject object;
    add_request(object, row, schedule);
    add_options_of_kernel_and_pattern(object, row);
    object.add("layout", row.pattern_info().layout == Layout::matrix ? "matrix" : "list")
        .add("state", state.state)
        .add("rounds", schedule.total())
        .add("cells_per_round", cells_json(schedule.cells_per_round()))
        .add("measuring_s", state.measuring_s)
        .add("wall_s", state.wall_s);
    if (!state.gpu_path.empty()) object.add("gpu_path", state.gpu_path);
    if (!state.corrupt.empty()) object.add("corrupt", Json::parsed("[" + state.corrupt + "]"));
    if (state.tcp)
        object.add(
            "tcp",
            JsonObject().add("left_out", state.tcp->omitted).add("knows_spurious", state.tcp->knows_spurious).json());
    if (state.devices.text() != "null") object.add("devices", state.devices);
    return object.json();
}

void write_row_tables(const Tables& tables, const Schedule& schedule, const RowState& state) {
    const BackgroundTraffic* background = schedule.pattern().background();
    if (background == nullptr && state.cpu_wait_s.empty() && !state.tcp) return;
    tables.create();
    if (background != nullptr) tables.write("aggressors", "aggressor", background->aggressors());
    if (!state.cpu_wait_s.empty()) tables.write("cpu_wait_s", "rank", state.cpu_wait_s);
    if (!state.tcp) return;
    tables.write("tcp_ends", "end", state.tcp->ends);
    tables.write("tcp_sent", "end", state.tcp->sent);
    tables.write("tcp_received", "end", state.tcp->received);
    constexpr std::int64_t figures = 5;
    const auto pairs = static_cast<std::int64_t>(state.tcp->pairs.size()) / figures;
    write_array(tables.folder() / "tcp_pairs", {{"pair", pairs}, {"figure", figures}}, state.tcp->pairs);
}

std::string collect_damages(RankGroup& rank_group, const std::vector<Damage>& damages) {
    std::string own;
    for (const Damage& damage : damages)
        own += (own.empty() ? "" : ",") + JsonObject()
                                              .add("src", damage.src)
                                              .add("dst", damage.dst)
                                              .add("size", static_cast<std::uint64_t>(damage.size))
                                              .add("message", damage.message)
                                              .add("offset", static_cast<std::uint64_t>(damage.offset))
                                              .json()
                                              .text();
    std::string all;
    const GatheredTexts texts = rank_group.gather(own);
    for (const std::string& text : texts.values())  // a rank is the receiver of its damages: none are those of another
        if (!text.empty()) all += (all.empty() ? "" : ",") + text;
    return all;
}

Json collect_devices(RankGroup& rank_group, const std::string& own) {
    std::map<std::string, Ranges> ranks_of;
    const GatheredTexts texts = rank_group.gather(own);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty()) continue;
        const auto rank = static_cast<std::int64_t>(i);
        Ranges& ranges = ranks_of[texts[i]];
        if (ranges.empty() || ranges.back().second != rank - 1) ranges.emplace_back(rank, rank);
        ranges.back().second = rank;
    }
    if (ranks_of.empty()) return Json::null();
    JsonObject object;
    for (const auto& [devices, ranges] : ranks_of) object.add(devices, to_text(ranges));
    return object.json();
}

}  // namespace fablint
