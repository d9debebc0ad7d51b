#include "transports/one_sided.hpp"

#include "base/table.hpp"

namespace fablint {

const std::vector<SyncInfo>& syncs() {
    static const std::vector<SyncInfo> table = {
        {"lock", "MPI_Win_lock/unlock", "lock and unlock the target for every access", false},
        {"flush", "MPI_Win_flush", "flush in a lock that is held: until it is at the target", false},
        {"flush_local", "MPI_Win_flush_local", "the same until the origin's buffer is free again", false},
        {"lock_all", "MPI_Win_lock_all/unlock_all", "lock and unlock all ranks for every access", false},
        {"pscw", "MPI_Win_post/start/complete/wait", "both ends open and close the access", true},
        {"fence", "MPI_Win_fence", "all ranks meet around every access", true},
    };
    return table;
}

const SyncInfo& sync_named(const std::string& name) { return row_named(syncs(), name, "synchronisation"); }

const std::vector<WinInfo>& wins() {
    static const std::vector<WinInfo> table = {
        {"create", "MPI_Win_create", "memory of the engine's"},
        {"allocate", "MPI_Win_allocate", "memory of the library's"},
        {"dynamic", "MPI_Win_create_dynamic", "the engine's memory, attached later"},
    };
    return table;
}

const WinInfo& win_named(const std::string& name) { return row_named(wins(), name, "window creation"); }

}  // namespace fablint
