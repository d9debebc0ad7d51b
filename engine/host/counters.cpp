#include "host/counters.hpp"

#include <cerrno>
#include <cstdlib>

#include "base/sysfs.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;
using Counters = std::map<std::string, long long>;

// Reads a file with one number, or with `VALUE@SECONDS` as in Slingshot's telemetry. A value of all ones means that the
// hardware lacks the counter.
void read_one(const fs::path& file, Counters& counters) {
    const std::string line = first_line(file);
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(line.c_str(), &end, 10);
    if (end != line.c_str() && errno == 0) counters[file.filename().string()] = value;
}

void read_folder(const fs::path& folder, Counters& counters) {
    for (const fs::path& file : entries(folder))
        if (file.filename() != "lifespan") read_one(file, counters);  // of hw_counters: the refresh interval
}

std::vector<std::string> telemetry_names() {
    std::vector<std::string> names = {
        // traffic: bytes, and packets of the fabric's own protocol and of Ethernet
        "hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets", "hni_tx_ok_opt", "hni_rx_ok_opt", "hni_tx_ok_ieee",
        "hni_rx_ok_ieee",
        // the link: code words, replays, damaged packets
        "hni_pcs_good_cw", "hni_pcs_corrected_cw", "hni_pcs_uncorrected_cw", "hni_llr_tx_replay_event",
        "hni_llr_rx_replay_event", "hni_llr_tx_discard", "hni_rx_bad_opt", "hni_rx_bad_ieee", "hni_tx_poisoned_opt",
        "hni_tx_poisoned_ieee",
        // congestion
        "hni_tx_stall_llr", "hni_fgfc_discard",
        // the reliable transport: retries, refusals, time-outs
        "pct_sct_timeouts", "pct_spt_timeouts", "pct_tct_timeouts", "pct_no_tct_nacks", "pct_no_trs_nacks",
        "pct_no_mst_nacks", "pct_bad_seq_nacks", "pct_retry_srb_requests", "pct_trs_rsp_nack_drops", "pct_rsp_err_rcvd",
        "pct_rsp_dropped_timeout", "pct_rsp_dropped_try"};
    for (const char* per_class : {"hni_tx_paused_", "hni_rx_paused_", "hni_discard_cntr_", "hni_pfc_fifo_oflw_cntr_"})
        for (int number = 0; number < 8; ++number) names.push_back(per_class + std::to_string(number));
    return names;
}

void read_telemetry(const fs::path& folder, Counters& counters) {
    static const std::vector<std::string> names = telemetry_names();
    for (const std::string& name : names) read_one(folder / name, counters);
}

}  // namespace

Counters read_counters(const fs::path& sysfs, const Nic& nic) {
    Counters counters;
    if (!nic.netdevs.empty()) {
        const fs::path netdev = sysfs / "class" / "net" / nic.netdevs.front();
        read_folder(netdev / "statistics", counters);
        read_one(netdev / "carrier_changes", counters);
    }
    if (nic.kind == "cxi") read_telemetry(sysfs / "class" / "cxi" / nic.name / "device" / "telemetry", counters);
    const std::size_t slash = nic.name.find('/');
    if (slash != std::string::npos) {
        const fs::path port =
            sysfs / "class" / "infiniband" / nic.name.substr(0, slash) / "ports" / nic.name.substr(slash + 1);
        read_folder(port / "counters", counters);
        read_folder(port / "hw_counters", counters);
    }
    return counters;
}

std::vector<NicCounters> counters_of(const fs::path& sysfs, const std::vector<Nic>& nics) {
    std::vector<NicCounters> counters;
    for (const Nic& nic : nics) counters.emplace_back(nic.name, read_counters(sysfs, nic));
    return counters;
}

}  // namespace fablint
