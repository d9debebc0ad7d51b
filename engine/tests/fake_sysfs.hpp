// Copies of /sys of other machines: tests/fixtures/sysfs, whose README.md gives their origin.
#pragma once

#include <sstream>

#include "tests/scratch.hpp"

class FakeSysfs {
  public:
    FakeSysfs() = default;
    explicit FakeSysfs(const std::string& fixture) {
        std::ifstream file(folder() / (fixture + ".txt"));
        REQUIRE_MESSAGE(file, "no fixture ", fixture);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string name, sign, text;
            words >> name >> sign;
            std::getline(words >> std::ws, text);
            if (sign == "=") set(name, text);
            if (sign == "->") link(name, text);
        }
    }

    void set(const std::string& name, const std::string& text) { write_text(root() / name, text + "\n"); }

    void link(const std::string& name, const std::string& target) {
        std::filesystem::create_directories((root() / name).parent_path());
        std::filesystem::remove(root() / name);
        std::filesystem::create_symlink(target, root() / name);
    }

    const std::filesystem::path& root() const { return scratch_.path; }

  private:
    // Tests are started from the repository, from engine/ or from a build folder in it.
    static std::filesystem::path folder() {
        namespace fs = std::filesystem;
        const fs::path source = fs::absolute(__FILE__).parent_path() / ".." / ".." / "tests" / "fixtures" / "sysfs";
        if (fs::exists(source)) return source;
        fs::path up = fs::current_path();
        while (!fs::exists(up / "tests" / "fixtures" / "sysfs") && up != up.parent_path()) up = up.parent_path();
        return up / "tests" / "fixtures" / "sysfs";
    }

    Scratch scratch_;
};
