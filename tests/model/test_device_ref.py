"""References to NICs and GPUs of hosts."""

import json

import pytest

from fablint.model.component import ComponentRef
from fablint.model.host_name import DeviceRef, GpuRef, NicRef
from fablint.model.names import fold


@pytest.mark.parametrize(
    ("text", "host", "device"),
    [
        ("h05/hsn0", "h05", "hsn0"),
        ("h05.site.org/mlx5_0/1", "h05.site.org", "mlx5_0/1"),  # port 1 of a card
        ("h05", "h05", ""),
        ("[fd00::5]/gpu3", "[fd00::5]", "gpu3"),
    ],
)
def test_what_is_written_is_read(text: str, host: str, device: str) -> None:
    for kind in (NicRef, GpuRef):
        ref = kind(text)
        assert (ref.host, ref.device) == (host, device)
        assert kind.of(host, device) == ref == text
        assert type(kind.of(host, device)) is kind


def test_a_reference_is_a_name_among_names() -> None:
    refs = [NicRef.of(f"h{number}", "hsn0") for number in (1, 2, 3)]
    assert fold(refs) == "h[1-3]/hsn0"
    assert json.loads(json.dumps({refs[0]: refs[1]})) == {"h1/hsn0": "h2/hsn0"}
    assert {refs[0]: "s0"}["h1/hsn0"] == "s0"


def test_a_component_has_the_label_of_its_reference() -> None:
    ref = GpuRef.of("h05", "gpu3")
    component = ComponentRef.device("gpu", ref)
    assert component.label == ref == DeviceRef.of("h05", "gpu3")
    assert component.hosts == ("h05",)
