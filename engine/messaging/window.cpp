#include "messaging/window.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<SyncInfo>& syncs() {
    constexpr bool origin = false;
    constexpr bool both = true;
    static const std::vector<SyncInfo> table = {
#define SYNC(name, ends, osu_name, description) {#name, osu_name, description, ends},
#include "registry/windows.inc"
    };
    return table;
}

const SyncInfo& sync_named(const std::string& name) { return row_named(syncs(), name, "synchronisation"); }

const std::vector<WinInfo>& wins() {
    static const std::vector<WinInfo> table = {
#define WIN(name, osu_name, description) {#name, osu_name, description},
#include "registry/windows.inc"
    };
    return table;
}

const WinInfo& win_named(const std::string& name) { return row_named(wins(), name, "window creation"); }

}  // namespace fablint
