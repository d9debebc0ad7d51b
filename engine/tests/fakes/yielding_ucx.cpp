// A wrapper of UCX, libyielding_ucx.so, for tests of more ranks than CPUs: MPICH waits for messages in a loop that
// never yields, so that each wait lasts until the scheduler takes the CPU away. Preloaded, a poll that finds nothing
// yields. The UCX that the engine itself loads is not changed: it asks the library for its functions, not the process.

#include <dlfcn.h>
#include <sched.h>

extern "C" unsigned ucp_worker_progress(void* worker) {
    using Progress = unsigned (*)(void*);
    static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
    const unsigned events = progress(worker);
    if (events == 0) sched_yield();
    return events;
}
