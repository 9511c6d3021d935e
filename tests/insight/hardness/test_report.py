"""The hardness report on paper: JSON, one self-contained page, the command, and names that try to be something else."""

import html
import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli import main as cli
from allocopt.cli.insight import hardness as command
from allocopt.insight.hardness import report, report_document, report_page
from allocopt.insight.hardness.hardness import hardness
from allocopt.insight.instances import counter_example, random_unit

NASTY_LABELS = [
    "<script>document.title='broken'</script>",
    "[red]markup[/red] [/nope] \"quoted\" & 'single'",
    "</td></table><img src=x onerror=alert(1)> \u202e \x07 \ud800",
]
SECTIONS = [
    "Summary",
    "Informative arms",
    "Confusing arms",
    "Without an arm",
    "Price of optimism",
    "Sensitivity",
    "Geometry",
]
VOID = {"meta", "img", "br", "link"}


@pytest.fixture
def bandit():
    return ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0], labels=NASTY_LABELS)


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(
        json.dumps({"arms": [[1, 0], [0, 1], [0.99, 0.02]], "theta": [1, 0], "labels": NASTY_LABELS}), encoding="utf-8"
    )
    return path


@pytest.fixture
def main(monkeypatch, capsys):
    """Call the command in this process; gives the exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", "hardness", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


class Page(HTMLParser):
    """What a page holds: the tags in it, their attributes, its text; and that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.cells, self._open = set(), [], "", [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "td" in self._open:
            self.cells[-1] += data


def test_the_page_is_whole_and_needs_nothing_from_outside(bandit):
    page = Page(report_page.page(hardness(bandit)))
    assert page.tags <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "section", "p", "ul", "li", "div", "table",
        "thead", "tbody", "tr", "th", "td", "bdi", "figure", "figcaption", "img", "footer",
    }  # fmt: skip
    for tag, name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "srcset", "action", "style")
        if name == "src":
            assert tag == "img"
            assert value.startswith("data:image/png;base64,")
    assert "url(" not in page.text
    assert "@import" not in page.text
    policy = [v for t, n, v in page.attributes if n == "content" and "default-src" in v]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    for title in SECTIONS:
        assert title in page.text


def test_names_are_shown_as_they_are_and_never_become_markup(bandit):
    text = report_page.page(hardness(bandit), title="<i>a title</i>")
    page = Page(text)
    assert "<i>" not in text
    assert "<i>a title</i>" in page.text
    assert "script" not in page.tags
    assert NASTY_LABELS[0] in page.cells
    assert NASTY_LABELS[1] in page.cells
    assert "</td></table><img src=x onerror=alert(1)> \\u202e \\x07 \\ud800" in page.cells
    text.encode("utf-8")


def test_without_matplotlib_the_page_says_that_there_are_no_pictures(bandit, monkeypatch):
    monkeypatch.setattr(report_page.importlib.util, "find_spec", lambda name: None)
    text = report_page.page(hardness(bandit))
    assert "<img" not in text
    assert "pip install matplotlib" in html.unescape(text)


@pytest.mark.parametrize("noise", [1e-30, 1e30])
def test_numbers_beyond_64_bits_can_be_drawn(noise):
    page = report_page.page(hardness(ao.LinearBandit([[1, 0], [0, 1], [0.99, 0.02]], [1, 0], noise_variance=noise)))
    assert page.count("<img") == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"widths": 3}, "widths: expected a list of positive numbers, got 3"),
        ({"widths": ["x"]}, "widths: expected a positive, finite number, got 'x'"),
        ({"most": 0}, "most: expected a whole number >= 1"),
    ],
)
def test_wrong_options_of_the_page_are_one_clear_line(bandit, options, words):
    with pytest.raises(ao.InvalidOption) as refused:
        hardness(bandit).to_html(pictures=False, **options)
    assert words in str(refused.value)


def test_the_interval_is_proven_unless_that_is_refused(main, instance):
    assert "left out" not in main(instance)[1]
    for refusal in ("--no-verify", "--no-prove"):
        assert "left out" in main(instance, refusal)[1]


def test_numbers_stay_whole_in_a_narrow_terminal_and_nothing_is_cut_off(instance):
    shown = CliRunner().invoke(cli.app, ["hardness", str(instance), "--no-prove"], env={"COLUMNS": "80"})
    assert max(map(cell_len, shown.output.splitlines())) <= 80
    assert "1.000000000" in shown.output and "informative" in shown.output
    narrow = CliRunner().invoke(cli.app, ["hardness", str(instance), "--no-prove"], env={"COLUMNS": "50"})
    assert max(map(cell_len, narrow.output.splitlines())) <= 50


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_the_page_has_the_pictures_that_the_dimension_allows(dim):
    assert report_page.page(hardness(random_unit(dim, 8))).count("<img") == (2 if dim <= 3 else 1)


@pytest.mark.parametrize(
    "bandit",
    [
        ao.LinearBandit([[1, 0], [0.5, 0]], [1, 0]),  # nothing to explore
        ao.LinearBandit([[1, 0, 0], [0, 1, 0], [0.5, 0.2, 1], [0.3, 0.3, 0.3]], [1, 1, 0.1], 4.0),  # a tie
        ao.LinearBandit([[0, 0], [-1, 0], [0, -1], [-1, -2], [-1, 0]], [1, 2]),  # x* = 0, duplicates
        ao.LinearBandit([[1, 0], [0, 1], [0.9, 0.3], [0.9, -0.3]], [1, 0]),  # a kink
        ao.LinearBandit(np.eye(4), [0, -1, -2, -1e-9]),  # k = d, a near tie
        ao.LinearBandit([[1, 1, 0], [0, 0, 1], [0.5, 0.5, 0.7]], [1, 0, 0]),  # rank-deficient
    ],
)
def test_awkward_instances_have_pages_and_documents(bandit):
    h = hardness(bandit)
    text = report_page.page(h, pictures=False)
    assert "nan" not in Page(text).text
    document = json.loads(json.dumps(report_document.document(h), allow_nan=False))
    assert len(document["gap_derivatives"]) == len(document["evidence"]) == bandit.n_arms
    assert (document["gradient"] is None) == (h.gradient is None)


def test_the_document_holds_the_numbers_of_the_object(bandit):
    h = hardness(bandit)
    document = json.loads(
        json.dumps(report_document.document(h, [1.0, 0.01], [h.with_arm([0.5, 0.5])]), allow_nan=False)
    )
    assert document["constant"]["value"] == h.constant
    assert document["proven"]["lower"] == h.proven.lower
    assert document["gradient"] == h.gradient.tolist()
    assert document["gap_derivatives"][0] is None
    assert document["evidence"][0] == "inf"
    assert [r["label"] for r in document["leave_one_out"]] == [NASTY_LABELS[r.arm] for r in h.leave_one_out]
    assert document["confusing"][0]["label"] == NASTY_LABELS[2]
    assert document["alternatives"][0]["theta"] == h.alternatives[0].theta.tolist()
    priced, refused = document["price_of_optimism"]
    assert priced["price"] == h.price_of_optimism(1.0)
    assert refused["price"] is None
    assert refused["remark"]
    assert document["additions"][0]["note"].startswith("it changes nothing")


def test_long_tables_say_how_much_is_left_out():
    h = hardness(random_unit(5, 20))
    tables = {s.title: s for s in report.sections(h, most=2)}
    assert len(tables["Informative arms"].rows) == 2
    assert tables["Informative arms"].omitted == len(h.informative) - 2
    assert f"and {len(h.informative) - 2} more" in report_page.page(h, most=2, pictures=False)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_a_real_browser_shows_the_page_and_runs_nothing(bandit, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report_page.page(hardness(bandit)), encoding="utf-8")
    found = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    page = Page(found.stdout)
    assert "broken" not in found.stdout.partition("</title>")[0]
    assert NASTY_LABELS[0] in page.cells
    assert "script" not in page.tags


def test_the_command_shows_every_section_and_every_label(main, instance):
    code, out, err = main(instance, "--add", "0.5,0.5", "--width", "1")
    assert code == 0
    assert err == ""
    for title in (*SECTIONS, "With one more arm"):
        assert f"\n{title}\n" in out
    assert NASTY_LABELS[0] in out
    assert NASTY_LABELS[1] in out
    assert "\\u202e \\x07 \\ud800" in out
    assert "\x07" not in out


def test_the_command_prints_json(main, instance):
    code, out, _ = main(instance, "--json", "--no-prove", "--noise-variance", "2")
    document = json.loads(out, parse_constant=pytest.fail)
    assert code == 0
    assert document["constant"]["value"] == pytest.approx(16)
    assert document["proven"] is None
    assert document["solution"]["labels"] == NASTY_LABELS


def test_the_command_writes_page_and_picture_and_overwrites_only_by_force(main, instance, tmp_path):
    page, picture = tmp_path / "r.html", tmp_path / "p.svg"
    code, out, _ = main(instance, "--html", page, "--plot", picture)
    assert code == 0
    assert str(page) in out
    assert "<svg" in picture.read_text()
    first = page.read_bytes()
    for option, path in (("--html", page), ("--plot", picture)):
        before = path.read_bytes()
        code, out, err = main(instance, option, path)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {option}: ")
        assert "exists already" in err
        assert path.read_bytes() == before
    assert main(instance, "--html", page, "--plot", picture, "--force", "--theta", "1,0.1")[0] == 0
    assert page.read_bytes() != first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["instance.json", "p.svg", "r.html"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(ao.InvalidFile, match="exists already"):
        command._write(path, "other", force=False)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--html", "nowhere/r.html"], "no directory nowhere"),
        (["--html", "."], "is a directory"),
        (["--plot", "p.txt"], "--plot: expected a name that ends in .png, .svg or .pdf"),
        (["--html", "a.svg", "--plot", "a.svg"], "--plot: expected another file than --html"),
        (["--add", "1,2,3"], "--add: expected 2 entries"),
        (["--add", "x"], "--add: expected numbers"),
        (["--width", "0"], "--width: expected a positive number"),
        (["--width", "nan"], "--width: expected a positive number"),
        (["--theta", "1,1,1"], "theta: expected 2 entries"),
        (["--tol", "-1"], "tol: expected"),
        (["--noise-variance", "0"], "noise_variance: expected"),
    ],
)
def test_bad_options_get_one_line_and_exit_code_2(main, instance, arguments, words, monkeypatch):
    monkeypatch.chdir(instance.parent)
    code, out, err = main(instance, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err


def test_the_instance_itself_is_never_overwritten(main, instance):
    before = instance.read_bytes()
    code, _, err = main(instance, "--html", instance, "--force")
    assert code == 2
    assert "is the input itself" in err
    assert instance.read_bytes() == before


def test_files_without_theta_are_told_what_is_missing(main, tmp_path):
    gaps = tmp_path / "g.json"
    gaps.write_text('{"arms": [[1, 0], [0, 1]], "gaps": [0, 1]}')
    code, _, err = main(gaps)
    assert code == 2
    assert "gaps only" in err
    assert main(gaps, "--theta", "1,0")[0] == 0


def test_plot_without_matplotlib_names_the_extra(main, instance, tmp_path, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    code, _, err = main(instance, "--plot", tmp_path / "p.png")
    assert code == 2
    assert "pip install matplotlib" in err


def test_help_names_every_option():
    shown = CliRunner().invoke(cli.app, ["hardness", "--help"], env={"COLUMNS": "120", "NO_COLOR": "1"}).output
    for option in ("--html", "--plot", "--force", "--json", "--width", "--add", "--theta", "--noise-variance", "--tol"):
        assert option in shown


def test_progress_is_shown_on_a_terminal_only_after_a_while(capsys):
    with command._progress() as (tell, _):
        tell("[bold]label[/nope]", 0, 3)
    assert capsys.readouterr() == ("", "")


def test_counter_example_page_shows_the_papers_row():
    rows = {s.title: s.rows for s in report.sections(hardness(counter_example(0.01)))}
    assert ("1", "informative", "200", "+192", "25", "") in rows["Without an arm"]
