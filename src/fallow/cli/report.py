"""`fallow report`: a study as one page."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class ReportCommand:
    """Turn a study into one page to read and to share, with its figures and tables.

    A study that is not finished gives a page that says what is missing.
    """

    folder: tyro.conf.Positional[Path]
    """The study's folder."""
    compare: Path | None = None
    """Another study's folder: put the two side by side on a page of its own."""
    also: tuple[Path, ...] = ()
    """More studies to report together with it, e.g. the sweeps of one figure."""
    until: int | None = None
    """Leave out evaluations after this branch frame, to compare at equal length."""
    out: Path | None = None
    """Folder for the page, its figures and tables; the study's unless given."""
    tables: bool = False
    """Show the tables here as well."""
    open: bool = False
    """Show the page in the browser."""

    def run(self) -> None:
        from fallow.console.progress import track
        from fallow.report.comparison_page import write_comparison
        from fallow.report.study_page import write_report

        if self.tables:
            self._show_tables()
        if self.compare is None:
            page = write_report(self.folder, self.until, track, self.also, self.out)
        else:
            page = write_comparison(self.folder, self.compare, self.until, self.out)
        print(f"report: {page}")
        if self.open:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())

    def _show_tables(self) -> None:
        from rich.console import Console

        from fallow.report.findings import findings
        from fallow.report.formats import terminal
        from fallow.report.phrases import headline_note, headlines, sentences
        from fallow.report.tables import study_tables
        from fallow.study.results import read_study_results

        study = read_study_results(self.folder, self.until)
        found, console = findings(study), Console(highlight=False)
        for headline in headlines(found):
            console.print(headline, markup=False, style="bold")
        console.print(headline_note(found), markup=False)
        for table in study_tables(study):
            console.print("", terminal(table))
        console.print("", *sentences(found), sep="\n", markup=False)
