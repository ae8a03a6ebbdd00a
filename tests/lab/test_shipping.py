"""Nothing that ships holds the lab."""

from __future__ import annotations

import re

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.architecture.source import ROOT


def test_no_distribution_holds_the_lab() -> None:
    for builder in (WheelBuilder(str(ROOT)), SdistBuilder(str(ROOT))):
        builder.config.set_build_data(builder.get_default_build_data())
        rooms = {file.distribution_path.split("/")[0] for file in builder.recurse_included_files()}
        assert "edge" in rooms
        assert "tests" not in rooms


def test_no_image_holds_the_lab() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.M)

    assert "edge" in copied
    assert all(name != "." and not name.startswith("tests") for name in " ".join(copied).split())
