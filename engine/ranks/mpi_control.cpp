#include "ranks/mpi_control.hpp"

#include "base/errors.hpp"
#include "base/mpi_c.hpp"

#ifdef FABLINT_WITHOUT_MPI

namespace fablint {

void start_mpi(int&, char**&, bool) { throw without_mpi(); }
void end_mpi() {}
bool is_mpi_started() { return false; }
std::unique_ptr<ControlChannel> make_mpi_control() { throw without_mpi(); }
void choose_mpi_ranks(const std::vector<int>&) {}
std::optional<MpiLibrary> mpi_library() { return std::nullopt; }
std::string loaded_mpi() { return "none: the engine is built without MPI"; }

}  // namespace fablint

#else

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "ranks/mpi_abi.hpp"
#include "ranks/mpi_communicator.hpp"

namespace fablint {

namespace {

double init_s = 0.0;  // duration of MPI_Init

void sleep_for(double seconds) {
    if (seconds <= 0.0) return;
    const timespec pause = {0, static_cast<long>(seconds * 1e9)};
    nanosleep(&pause, nullptr);
}

class MpiControl : public ControlChannel {
  public:
    MpiControl() {
        MPI_Comm_dup(MPI_COMM_WORLD, &control_);
        MPI_Comm_rank(control_, &rank_);
        MPI_Comm_size(control_, &size_);
    }
    ~MpiControl() override { MPI_Comm_free(&control_); }
    MpiControl(const MpiControl&) = delete;
    MpiControl& operator=(const MpiControl&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::string host_name() const override {
        char name[MPI_MAX_PROCESSOR_NAME] = "";
        int length = 0;
        MPI_Get_processor_name(name, &length);
        return std::string(name, static_cast<std::size_t>(length));
    }

    void send(int to, int tag, const void* data, std::size_t bytes) override {
        MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, tag, control_);
    }
    void receive(int from, int tag, void* data, std::size_t bytes, const Idle& idle) override {
        if (!idle) {
            MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, control_, MPI_STATUS_IGNORE);
            return;
        }
        MPI_Request request;
        MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, control_, &request);
        wait(1, &request, idle);
    }
    void exchange(int to, const void* sent, int from, void* received, std::size_t bytes, int tag,
                  const Idle& idle) override {
        MPI_Request requests[2];
        MPI_Irecv(received, static_cast<int>(bytes), MPI_BYTE, from, tag, control_, &requests[0]);
        MPI_Isend(sent, static_cast<int>(bytes), MPI_BYTE, to, tag, control_, &requests[1]);
        wait(2, requests, idle);
    }
    int sender_of_arrived(int from, int tag) override {
        int arrived = 0;
        MPI_Status status;
        MPI_Iprobe(from == any_rank ? MPI_ANY_SOURCE : from, tag, control_, &arrived, &status);
        return arrived != 0 ? status.MPI_SOURCE : -1;
    }

    [[noreturn]] void abort(int status) override {
        MPI_Abort(MPI_COMM_WORLD, status);
        std::abort();
    }

  private:
    static void wait(int count, MPI_Request* requests, const Idle& idle) {
        if (!idle) {
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
            return;
        }
        for (int done = 0;;) {
            MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
            if (done != 0) return;
            sleep_for(idle());
        }
    }

    MPI_Comm control_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
};

const char* thread_level() {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    switch (level) {
        case MPI_THREAD_FUNNELED:
            return "funneled";
        case MPI_THREAD_SERIALIZED:
            return "serialized";
        case MPI_THREAD_MULTIPLE:
            return "multiple";
        default:
            return "single";
    }
}

// The library that mpi.h belongs to, in its own words; empty if it is not known. A version may be a text or a number.
std::string compiled_for() {
#define FABLINT_TEXT(version) #version
#define FABLINT_TEXT_OF(version) FABLINT_TEXT(version)
#if defined(OMPI_MAJOR_VERSION)
    std::string text = "Open MPI v" FABLINT_TEXT_OF(OMPI_MAJOR_VERSION) "." FABLINT_TEXT_OF(
        OMPI_MINOR_VERSION) "." FABLINT_TEXT_OF(OMPI_RELEASE_VERSION);
#elif defined(OPEN_MPI)
    std::string text = "Open MPI";
#elif defined(I_MPI_VERSION)
    std::string text = "Intel(R) MPI Library " FABLINT_TEXT_OF(I_MPI_VERSION);
#elif defined(MVAPICH2_VERSION)
    std::string text = "MVAPICH2 " FABLINT_TEXT_OF(MVAPICH2_VERSION);
#elif defined(MPICH_VERSION)
    std::string text = "MPICH " FABLINT_TEXT_OF(MPICH_VERSION);
#elif defined(MPICH)
    std::string text = "MPICH";
#else
    std::string text;
#endif
#undef FABLINT_TEXT_OF
#undef FABLINT_TEXT
    text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
    return text;
}

// What the library says of itself; it may be called before MPI_Init, with the same interface in every library.
std::string library_text() {
    static char text[std::size_t{1} << 16];  // another library's MPI_MAX_LIBRARY_VERSION_STRING may be longer
    int length = 0;
    MPI_Get_library_version(text, &length);
    return text;
}

// Path of the library, links resolved. By name, since a program may have an address of its own for a function that it
// takes the address of.
std::string library_path() {
    Dl_info place{};
    void* function = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (function == nullptr || dladdr(function, &place) == 0) return "linked into the engine";
    std::error_code failure;
    const std::filesystem::path path = std::filesystem::canonical(place.dli_fname, failure);
    return failure ? place.dli_fname : path.string();
}

// With another library the first MPI call that takes a communicator would end with SIGSEGV.
void refuse_other_library() {
    const std::string compiled = compiled_for();
    if (compiled.empty()) return;  // as for a simulated MPI, which cannot be called before it starts
    const std::string loaded = library_text();
    if (is_compatible(compiled, loaded)) return;
    throw usage_error("the engine is compiled for " + compiled + ", but loads " + name_and_version(loaded) + " (" +
                      library_path() +
                      "): load the MPI module of the engine's mpicxx only, and check LD_LIBRARY_PATH, LD_PRELOAD and "
                      "LIBRARY_PATH");
}

// Open MPI waits for its TCP connections by poll(2) by default, and poll(2) takes the longer the more
// connections a rank has: rank 0, which has one to every rank for the results, had latencies of 1.2 times the others.
// epoll(7) takes the same time for any number. Other libraries ignore the variable; the user's own value is kept.
void choose_event_mechanism() {
    constexpr int keep = 0;
    setenv("OMPI_MCA_opal_event_include", "epoll", keep);
}

}  // namespace

std::string loaded_mpi() {
    refuse_other_library();
    return name_and_version(library_text()) + " (" + library_path() + ")";
}

void start_mpi(int& argc, char**& argv, bool threads) {
    refuse_other_library();
    choose_event_mechanism();
    const auto begin = std::chrono::steady_clock::now();  // a simulated MPI has no time before it starts
    int provided = 0;                                     // check_threads() of session.cpp asks the library again
    if (threads) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (!threads) MPI_Init(&argc, &argv);
    init_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void end_mpi() {
    if (is_mpi_started()) MPI_Finalize();
}

bool is_mpi_started() {
    int started = 0;
    MPI_Initialized(&started);
    return started != 0;
}

void choose_mpi_ranks(const std::vector<int>& ranks) {
    if (!is_mpi_started()) return;
    if (chosen_ranks != MPI_COMM_NULL) MPI_Comm_free(&chosen_ranks);
    if (ranks.empty()) return;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group chosen = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &chosen);
    MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 0, &chosen_ranks);
    MPI_Group_free(&chosen);
    MPI_Group_free(&all);
}

std::unique_ptr<ControlChannel> make_mpi_control() { return std::make_unique<MpiControl>(); }

std::optional<MpiLibrary> mpi_library() {
    if (!is_mpi_started()) return std::nullopt;
    int major = 0;
    int minor = 0;
    MPI_Get_version(&major, &minor);
    std::string text = library_text();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return MpiLibrary{text, std::to_string(major) + "." + std::to_string(minor), thread_level(), init_s};
}

}  // namespace fablint

#endif
