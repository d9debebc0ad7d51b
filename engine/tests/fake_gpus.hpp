// The fake driver libraries of engine/tests/fakes, loaded in place of those of this machine.
#pragma once

#include <dlfcn.h>
#include <doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

// A later dlopen of `file` returns the loaded library of that name.
inline void load_fake(const char* file) {
    const std::string path = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake" / file).string();
    if (dlopen(path.c_str(), RTLD_NOW) == nullptr) FAIL(dlerror());
}

inline void load_fake_cuda() { load_fake("libcuda.so.1"); }
inline void load_fake_hip() { load_fake("libamdhip64.so"); }

// A variable of the environment that controls a fake, until the end of the block.
class FakeSetting {
  public:
    FakeSetting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~FakeSetting() { unsetenv(name_); }
    FakeSetting(const FakeSetting&) = delete;
    FakeSetting& operator=(const FakeSetting&) = delete;

  private:
    const char* name_;
};
