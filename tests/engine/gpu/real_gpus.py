"""The NVIDIA GPUs of this machine."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

FAKES = Path(__file__).parents[3] / "engine" / "tests" / "fakes"


def problem(fewest: int = 1) -> str:
    """Why so many NVIDIA GPUs cannot be used here; '' if they can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    count = ctypes.c_int()
    if status := driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return f"the driver returns {status}"
    return "" if count.value >= fewest else f"{fewest} GPUs are needed, this host has {count.value}"


def bytes_of_gpu() -> int:
    """Memory of the first GPU."""
    driver, device, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
    assert driver.cuInit(0) == driver.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0
    return size.value


def driver_with_addresses(folder: Path) -> Path:
    """A folder with a libcuda.so.1 that is the driver, but for the PCI addresses, which are those of RANK_PCI.

    The engine refuses copies between two ranks with the same GPU by its address.
    """
    driver = Path(_path_of_driver())
    (folder / "driver").mkdir()
    stub = folder / "stub.so"
    # The library needs the driver by its file name: both have the soname libcuda.so.1.
    subprocess.run(
        ["c++", "-shared", f"-Wl,-soname,{driver.name}", "-o", stub, "-xc++", "-"], input="", text=True, check=True
    )
    words = ["c++", "-std=c++17", "-shared", "-fPIC", "-Wl,--no-as-needed", f"-Wl,-rpath,{driver.parent}"]
    subprocess.run([*words, "-o", folder / "driver" / "libcuda.so.1", FAKES / "rank_pci.cpp", stub], check=True)
    return folder / "driver"


def _path_of_driver() -> str:
    """The file of the driver library that a program loads."""
    ctypes.CDLL("libcuda.so.1")
    loaded = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line)
    return os.path.realpath(next(loaded))
