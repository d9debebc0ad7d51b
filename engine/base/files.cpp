#include "base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/errors.hpp"

namespace fablint {

namespace {

namespace fs = std::filesystem;

Error failure(const fs::path& file, int reason) {
    const std::string hint = reason == ENOSPC || reason == EDQUOT ? ": free space, then continue" : "";
    return incomplete_error("cannot write " + file.string() + ": " + std::strerror(reason) + hint);
}

void write_fully(int descriptor, const fs::path& file, const char* data, std::size_t bytes, off_t offset) {
    while (bytes > 0) {
        const ssize_t written = pwrite(descriptor, data, bytes, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw failure(file, errno);
        data += written;
        offset += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

// `named`: the file name in the message.
int open_file(const fs::path& file, int flags, const fs::path& named) {
    const int descriptor = open(file.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor < 0) throw failure(named, errno);
    return descriptor;
}

// Calls `produce(descriptor)` on a new file next to `file` and renames it. Temporary names are unique per process.
template <typename Produce>
void write_beside(const fs::path& file, Produce produce) {
    const fs::path beside = file.parent_path() / ("." + file.filename().string() + "." + std::to_string(getpid()));
    const int descriptor = open_file(beside, O_WRONLY | O_CREAT | O_TRUNC, file);
    try {
        produce(descriptor);
    } catch (...) {
        close(descriptor);
        unlink(beside.c_str());
        throw;
    }
    if (close(descriptor) != 0 || rename(beside.c_str(), file.c_str()) != 0) throw failure(file, errno);
}

}  // namespace

std::ifstream open_file(const fs::path& file) {
    std::ifstream stream(file);
    if (!stream) throw usage_error("cannot read " + file.string() + ": no such file, or no permission");
    return stream;
}

std::string read_file(const fs::path& file) {
    std::ifstream stream = open_file(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void replace_file(const fs::path& file, std::string_view bytes) {
    write_beside(file, [&](int descriptor) { write_fully(descriptor, file, bytes.data(), bytes.size(), 0); });
}

void create_filled(const fs::path& file, const std::string& element, std::size_t count) {
    std::error_code absent;
    if (fs::file_size(file, absent) == count * element.size() && !absent) return;
    if (element.find_first_not_of('\0') == std::string::npos) {  // a hole reads as zeros
        write_beside(file, [&](int descriptor) {
            if (ftruncate(descriptor, static_cast<off_t>(count * element.size())) != 0) throw failure(file, errno);
        });
        return;
    }
    constexpr std::size_t block_elements = 1 << 15;
    std::string block;
    for (std::size_t i = 0; i < std::min(count, block_elements); ++i) block += element;
    write_beside(file, [&](int descriptor) {
        off_t offset = 0;
        for (std::size_t left = count; left > 0;) {
            const std::size_t now = std::min(left, block_elements);
            write_fully(descriptor, file, block.data(), now * element.size(), offset);
            offset += static_cast<off_t>(now * element.size());
            left -= now;
        }
    });
}

void make_folder(const fs::path& folder) {
    std::error_code reason;
    fs::create_directories(folder, reason);
    if (reason) throw failure(folder, reason.value());
}

CellFile::CellFile(const fs::path& file) : file_(file), descriptor_(open_file(file, O_WRONLY, file)) {}

CellFile::~CellFile() { close(descriptor_); }

void CellFile::write(std::size_t offset, const void* data, std::size_t bytes) {
    write_fully(descriptor_, file_, static_cast<const char*>(data), bytes, static_cast<off_t>(offset));
}

}  // namespace fablint
