"""Arrays that another program than the engine wrote, such as compressed ones, read through Zarr."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zarr
from zarr.storage import LocalStore, WrapperStore

from fablint.store.chunks import ChunkFiles

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype


class _ChunkStore(WrapperStore[LocalStore]):
    """The files of a run directory without those known to be broken."""

    def __init__(self, files: ChunkFiles) -> None:
        super().__init__(LocalStore(files.root, read_only=True))
        self.files = files

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        has_checksum = key in self.files.checksums
        if key in self.files.broken or (
            has_checksum and not self.files.is_intact(key, (self.files.root / key).read_bytes())
        ):
            return None
        from zarr.core.buffer import default_buffer_prototype

        return await super().get(key, prototype or default_buffer_prototype(), byte_range)


class RepackedArray:
    """An array of any codec that Zarr knows, read when it is sliced."""

    def __init__(self, files: ChunkFiles, folder: Path) -> None:
        self.path = folder.relative_to(files.root).as_posix()
        self._array: zarr.Array[Any] = zarr.open_array(_ChunkStore(files), path=self.path, mode="r")
        self.shape: tuple[int, ...] = self._array.shape
        self.chunks: tuple[int, ...] = self._array.chunks
        self.ndim = self._array.ndim
        self.dtype = self._array.dtype
        self.fill_value = self._array.fill_value

    def __getitem__(self, key: Any) -> Any:
        """Values at `key`. Raises whatever Zarr raises for a chunk that cannot be decoded."""
        return self._array[key]

    def chunk_key(self, place: Sequence[int]) -> str:
        """Name of the file of the chunk with these indices, below the array's folder."""
        return str(self._array.metadata.encode_chunk_key(tuple(place)))

    def read_chunk(self, place: Sequence[int]) -> None:
        """Raise if the chunk with these indices cannot be decoded."""
        self._array.blocks[tuple(place)]
