// Driver libraries of GPUs, against the fakes of engine/tests/fakes.
#include <doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "base/errors.hpp"
#include "gpu/gpu_inbox.hpp"
#include "gpu/gpu_runtime.hpp"
#include "host/gpus.hpp"
#include "spec/row.hpp"
#include "tests/fake_gpus.hpp"
#include "tests/fake_sysfs.hpp"

using namespace fablint;

namespace {

const GpuRuntime& fake_cuda() {
    load_fake_cuda();
    const GpuRuntime& runtime = GpuRuntime::of(GpuApi::cuda);
    runtime.use(0);
    return runtime;
}

std::string message_of(const std::function<void()>& work) {
    const auto error = attempt(work);
    return error ? error->what() : "no error";
}

// Does the work end a process?
bool is_fatal(const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
        for (const int caught : {SIGABRT, SIGSEGV}) std::signal(caught, SIG_DFL);
        std::freopen("/dev/null", "w", stderr);
        work();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}

std::string copied(const GpuRuntime& runtime, const void* data, std::size_t bytes) {
    std::string text(bytes, ' ');
    runtime.copy(GpuCopy::to_host, text.data(), data, bytes);
    return text;
}

}  // namespace

TEST_CASE("a host without usable GPUs is an error that names the reason") {
    load_fake_hip();
    const auto start = [] { GpuRuntime::of(GpuApi::hip); };
    {
        const FakeSetting none("FAKE_GPU_DEVICES", "0");
        CHECK(message_of(start) == "hip: no GPU can be used: no GPU is detected (100)");
    }
    {
        const FakeSetting mismatch("FAKE_GPU_INIT", "803");
        CHECK(message_of(start) ==
              "hip: no GPU can be used: system has unsupported display driver / driver combination (803)");
    }
    CHECK(GpuRuntime::of(GpuApi::hip).count() == 2);
}

TEST_CASE("a GPU has a name and the PCI address of sysfs") {
    const GpuProperties gpu = fake_cuda().properties(1);
    CHECK(gpu.name == "fake GPU of libcuda");
    CHECK(gpu.pci == "0000:2a:00.0");
    CHECK(message_of([] { fake_cuda().properties(7); }) == "cuda: device 7: invalid device ordinal (101)");
}

TEST_CASE("bytes that are copied to a GPU come back") {
    const GpuRuntime& runtime = fake_cuda();
    void* const data = runtime.allocate(10000);
    void* const pinned = runtime.allocate_host(5);
    char* const end = static_cast<char*>(data) + 9995;
    runtime.copy(GpuCopy::to_device, data, "hello", 5);
    const GpuStream stream = runtime.create_stream();
    runtime.queue_copy(GpuCopy::between_devices, end, data, 5, stream);
    runtime.queue_copy(GpuCopy::to_host, pinned, end, 5, stream);
    runtime.synchronise(stream);
    CHECK(std::string(static_cast<char*>(pinned), 5) == "hello");
    CHECK(copied(runtime, end, 5) == "hello");
    runtime.destroy(stream);
    runtime.release_host(pinned);
    runtime.release(data);
}

TEST_CASE("a GPU has a number on its host and the NIC behind the same PCI switch") {
    FakeSysfs sysfs;
    const std::string root = "devices/pci0000:00/0000:00:01.0/";
    const auto add = [&](const std::string& place, const std::string& pci, const std::string& vendor,
                         const std::string& type) {
        sysfs.set(root + place + pci + "/vendor", vendor);
        sysfs.set(root + place + pci + "/class", type);
        sysfs.link("bus/pci/devices/" + pci, "../../../" + root + place + pci);
    };
    const auto add_nic = [&](const std::string& place, const std::string& pci, const std::string& name) {
        add(place, pci, "0x15b3", "0x020000");
        sysfs.set(root + place + pci + "/net/" + name + "/operstate", "up");
        sysfs.set(root + place + pci + "/net/" + name + "/speed", "100000");
        sysfs.link(root + place + pci + "/net/" + name + "/device", "../..");
        sysfs.link("class/net/" + name, "../../" + root + place + pci + "/net/" + name);
    };
    add("0000:02:00.0/", "0000:1a:00.0", "0x10de", "0x030200");
    add_nic("0000:02:00.0/", "0000:1b:00.0", "eth0");
    add("0000:03:00.0/", "0000:2a:00.0", "0x10de", "0x030200");
    add_nic("0000:03:00.0/", "0000:2b:00.0", "eth1");
    add("", "0000:05:00.0", "0x1a03", "0x030000");  // of the board's management controller
    const auto nics = find_nics(sysfs.root());
    REQUIRE(nics.size() == 2);
    CHECK(gpu_label(sysfs.root(), GpuApi::cuda, "0000:1a:00.0") == "gpu0");
    CHECK(gpu_label(sysfs.root(), GpuApi::cuda, "0000:2a:00.0") == "gpu1");
    CHECK(gpu_label(sysfs.root(), GpuApi::hip, "0000:2a:00.0") == "0000:2a:00.0");
    CHECK(nic_near_gpu(sysfs.root(), nics, "0000:1a:00.0") == "eth0");
    CHECK(nic_near_gpu(sysfs.root(), nics, "0000:2a:00.0") == "eth1");
    CHECK(nic_near_gpu(sysfs.root(), nics, "0000:9a:00.0") == "");
}

TEST_CASE("memory that a GPU does not have is an error with the size") {
    const FakeSetting small("FAKE_GPU_BYTES", "100000");
    CHECK(message_of([] { fake_cuda().allocate(100001); }) ==
          "cuda: GPU memory of 100001 bytes: out of memory (2): choose smaller --sizes or a smaller --window");
}

TEST_CASE("another process maps memory of a GPU") {
    const GpuRuntime& runtime = fake_cuda();
    void* const data = runtime.allocate(64);
    const auto shared = runtime.share(static_cast<char*>(data) + 8);
    const pid_t child = fork();
    if (child == 0) {
        char* const mapped = static_cast<char*>(runtime.map(shared));
        runtime.copy(GpuCopy::to_device, mapped + shared.offset, "from there", 10);
        runtime.unmap(mapped);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(copied(runtime, static_cast<char*>(data) + 8, 10) == "from there");
    runtime.release(data);
}

TEST_CASE("a GPU reports how it reaches the memory of another one") {
    const GpuRuntime& runtime = fake_cuda();
    CHECK(runtime.current().pci == "0000:1a:00.0");
    CHECK(runtime.peer_access("0000:2a:00.0") == GpuPeerAccess::with_atomics);
    CHECK(runtime.peer_access("0000:9a:00.0") == GpuPeerAccess::not_visible);
    const FakeSetting no_atomics("FAKE_GPU_NO_ATOMICS", "0-1");
    CHECK(runtime.peer_access("0000:2a:00.0") == GpuPeerAccess::without_atomics);
    const FakeSetting no_access("FAKE_GPU_NO_ACCESS", "0-1");
    CHECK(runtime.peer_access("0000:2a:00.0") == GpuPeerAccess::none);
}

// Returns what the work returned in another process, its exit status.
int status_of_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("an inbox passes windows in order, counts messages, and shows the end of its owner") {
    GpuInbox own;
    std::uint64_t posted = 0;
    PostedWindow window{};
    for (window.count = 1; own.post(window); ++window.count) ++posted;
    CHECK(posted == 64);
    CHECK(own.arrived() == 0);
    const int taken = status_of_child([&] {
        GpuInbox other(own.address());
        int expected = 1;
        for (; other.next() != nullptr; other.remove())
            if (other.next()->count != expected++) return -1;
        other.add_arrived(2);
        other.add_arrived(3);
        return other.has_owner() ? expected - 1 : -2;
    });
    CHECK(taken == 64);
    CHECK(own.arrived() == 5);
    CHECK(own.post(window));

    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t owner = fork();
    if (owner == 0) {
        const GpuInbox inbox;
        const std::string address = inbox.address();
        if (write(ends[1], address.data(), address.size()) < 0) _exit(1);
        pause();
    }
    std::string address(64, ' ');
    address.resize(static_cast<std::size_t>(read(ends[0], address.data(), address.size())));
    const GpuInbox other(address);
    CHECK(other.has_owner());
    kill(owner, SIGKILL);
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(owner), &ended, WEXITED | WNOWAIT);  // a zombie
    CHECK_FALSE(other.has_owner());
    waitpid(owner, nullptr, 0);
    CHECK(message_of([&] { const GpuInbox gone(address); }).find("No such file or directory: start the ranks") !=
          std::string::npos);
    for (const int end : ends) close(end);
}

TEST_CASE("the fake detects a wrong use of the driver") {
    const GpuRuntime& runtime = fake_cuda();
    char* const data = static_cast<char*>(runtime.allocate(64));
    std::string host(64, ' ');
    CHECK(is_fatal([&] { data[0] = 1; }));
    CHECK(is_fatal([&] { std::thread([&] { runtime.allocate(64); }).join(); }));
    CHECK(is_fatal([&] { runtime.copy(GpuCopy::to_device, host.data(), host.data(), 1); }));
    CHECK(is_fatal([&] { runtime.copy(GpuCopy::to_host, data, data, 1); }));
    CHECK(is_fatal([&] { runtime.copy(GpuCopy::to_host, host.data(), data + 1, 64); }));
    CHECK(is_fatal([&] { runtime.release(data + 1); }));
    CHECK(is_fatal([&] { runtime.queue_copy(GpuCopy::to_device, data, host.data(), 8, runtime.create_stream()); }));
    CHECK(is_fatal([&] {
        runtime.queue_copy(GpuCopy::between_devices, data, data + 32, 8, nullptr);
        runtime.release(data);
    }));
    CHECK(is_fatal([&] {
        void* const own = runtime.allocate(64);
        const auto shared = runtime.share(own);
        const pid_t child = fork();
        if (child == 0) {
            runtime.map(shared);
            _exit(0);  // leaves it mapped
        }
        waitpid(child, nullptr, 0);
        runtime.release(own);
    }));
    CHECK_FALSE(is_fatal([&] { runtime.copy(GpuCopy::to_device, data, host.data(), 64); }));
    runtime.release(data);
}

TEST_CASE("copies of a GPU are no measurement of host memory") {
    RowOptions row;
    row.memory = "host";
    CHECK(message_of([&] { make_gpu_loopback(row); }) ==
          "gpu_loopback copies memory of a GPU: use --memory cuda or --memory hip");
}
