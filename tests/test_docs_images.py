"""Every drawing under docs/ is shown by a page, and every drawing that a page shows is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = {".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg", ".webp"}


def shown_by(page: Path) -> set[Path]:
    """The files of the images in a page's text; those of other sites are left out."""
    targets = re.findall(r"!\[[^\]]*\]\(([^)\s]+)|<img\b[^>]*\bsrc=\"([^\"]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / (mark or tag)).resolve() for mark, tag in targets if "://" not in mark + tag}


def test_every_drawing_is_shown_by_a_page() -> None:
    drawings = {path for path in (ROOT / "docs").rglob("*") if path.suffix in KINDS}
    shown = set().union(*map(shown_by, PAGES))
    assert drawings, "docs/ has no drawings: has the folder moved?"
    assert sorted(drawings - shown) == [], "show them on a page, or remove them: a command draws them again"
