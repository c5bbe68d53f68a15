# ruff: noqa: D301  (click takes a real backspace as "do not wrap")
"""The commands `gramvec-train evaluate`, `report` and `card`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from gramvec.cli.jobs.job_report import report_option
from gramvec.cli.jobs.run import command_line
from gramvec.errors import InputError
from gramvec.jobs.common.bars import TerminalWatch
from gramvec.jobs.common.run import JobRun
from gramvec.jobs.tables.staging import check_place
from gramvec_training.api import open_model
from gramvec_training.cli.support import PATH, one_sentence

if TYPE_CHECKING:
    from gramvec.embed.vectors import Space
    from gramvec_training.evaluation.backend import ComponentSides, ModelForTexts, ScoredModel, Typos
    from gramvec_training.evaluation.similarity import SimilaritySet
    from gramvec_training.evaluation.tasks import Families
    from gramvec_training.sections import Measure


P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    click.option("--matching", type=PATH, multiple=True,
                 help="Matching set, or folder of some: left.csv, right.csv, and train.csv, valid.csv, test.csv with "
                 "left,right,match; repeatable."),
    click.option("--columns", multiple=True, metavar="SET=COLUMN,...",
                 help="Compare these columns of the matching set of this name; repeatable.  "
                 "[default: the benchmark's, or all]"),
    click.option("--retrieval", type=PATH, multiple=True,
                 help="Retrieval set, or folder of some: corpus.tsv, queries.tsv, qrels.tsv; repeatable."),
    click.option("--translations", type=PATH, multiple=True,
                 help="File of text<TAB>translation, or folder of some; repeatable."),
    click.option("--classification", type=PATH, multiple=True,
                 help="File of label<TAB>text, a fifth of it scored, or folder of a train.tsv and a test.tsv; "
                 "repeatable."),
    click.option("--spelling", type=PATH, multiple=True, help="File of word<TAB>misspelling; repeatable."),
    click.option("--words", type=PATH,
                 help="With --spelling: the words to find the right one among, one a line, the most frequent first."),
    click.option("--frequent", type=click.IntRange(min=2), default=50_000, show_default=True,
                 help="How many of --words."),
    click.option("--sample", type=click.IntRange(min=1),
                 help="Score N lines of each file of --spelling, drawn by --seed.  [default: all]"),
    click.option("--seen", type=PATH, multiple=True,
                 help="Misspellings that a model was trained on, word<TAB>misspelling: not used for --typos, and "
                 "--spelling is scored without them too; repeatable."),
    click.option("--peer", "peers", multiple=True, metavar="NAME",
                 help="Score a rival as well: tfidf, tfidf-3-5, tfidf-words, rapidfuzz, match (`gramvec match`), all "
                 "of these that are installed (all), model2vec=FOLDER, transformer=FOLDER, or lexical=MODEL, "
                 "both=MODEL: a bundle whose n-grams are weighed by the texts at hand, or search=MODEL: what "
                 "`gramvec search` finds; repeatable."),
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """Values of the options for tasks beside similarity."""

    matching: tuple[Path, ...]
    columns: tuple[str, ...]
    retrieval: tuple[Path, ...]
    translations: tuple[Path, ...]
    classification: tuple[Path, ...]
    spelling: tuple[Path, ...]
    words: Path | None
    frequent: int
    sample: int | None
    seen: tuple[Path, ...]
    peers: tuple[str, ...]

    def check(self, *, with_sets: bool) -> None:
        """Raise UsageError where an option needs another one, or nothing is named to score on."""
        sources = self.matching, self.retrieval, self.translations, self.classification, self.spelling
        if not (with_sets or any(sources)):
            families = "--matching, --retrieval, --translations, --classification or --spelling"
            raise click.UsageError(f"name what to score on: --sets, {families}")
        if bool(self.spelling) != (self.words is not None):
            raise click.UsageError("--spelling and --words belong together")
        if self.columns and not self.matching:
            raise click.UsageError("--columns belongs to --matching")


def family_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options of Named to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_families(named: Named, seed: int) -> Families:
    """Read the sets.

    Raises:
        InputError: A set cannot be used.
    """
    from gramvec_training.evaluation.classification import read_classification_set
    from gramvec_training.evaluation.matching import find_matching_sets
    from gramvec_training.evaluation.ranking import (
        find_retrieval_sets,
        find_translation_sets,
        read_spelling_set,
        read_words,
    )
    from gramvec_training.evaluation.tasks import Families
    from gramvec_training.readers.vectors import read_misspellings

    columns = dict(_columns(value) for value in named.columns)
    matching = [matching_set for path in named.matching for matching_set in find_matching_sets(path, columns)]
    absent = sorted(columns.keys() - {matching_set.name for matching_set in matching})
    if absent:
        raise InputError(f"--columns: no matching set {absent[0]!r}; name one of --matching")
    words = read_words(named.words, named.frequent) if named.words is not None else []
    seen = read_misspellings(named.seen)
    return Families(
        matching=matching,
        retrieval=[retrieval_set for path in named.retrieval for retrieval_set in find_retrieval_sets(path)],
        classification=[read_classification_set(path, seed=seed) for path in named.classification],
        translations=[
            translation_set for path in named.translations for translation_set in find_translation_sets(path)
        ],
        spelling=[
            read_spelling_set(path, words, seen=seen, max_words=named.sample, seed=seed) for path in named.spelling
        ],
    )


def open_peers(names: Sequence[str]) -> dict[str, ModelForTexts]:
    """Open the baselines by name; those of `all` whose library is missing are named on stderr."""
    from gramvec_training.evaluation.baselines import find_installed_peers, open_peer

    peers: dict[str, ModelForTexts] = {}
    for name in dict.fromkeys(names):
        opened, notes = find_installed_peers() if name == "all" else ({name: open_peer(name)}, [])
        peers.update(opened)
        for note in notes:
            click.echo(note, err=True)
    return peers


def score_all(
    reports: dict[str, dict[str, Any]],
    scored: Sequence[ScoredModel],
    peers: Mapping[str, ModelForTexts],
    sets: Sequence[SimilaritySet],
    families: Families,
    typos: Typos,
) -> None:
    """Add task scores to the models' reports, in the order of `scored`, and a report for each baseline."""
    from gramvec_training.evaluation.baselines import wrap_scored
    from gramvec_training.evaluation.tasks import score_families, score_similarity

    models = {label: wrap_scored(model) for label, model in zip(reports, scored, strict=True)}
    with closing(TerminalWatch()) as watch:
        for label, model in peers.items():
            watch.start(f"{label}: similarity", len(sets), "sets")
            reports[label] = {"name": label, "device": "cpu", **score_similarity(sets, model, typos)}
            watch.advance(len(sets))
        for label, model in {**models, **peers}.items():
            if families:
                watch.start(label, len(families), "sets")
                reports[label]["families"] = score_families(families, model, typos, progress=watch)


def _columns(value: str) -> tuple[str, tuple[str, ...]]:
    name, equals, columns = value.partition("=")
    if not name or not equals or not all(columns.split(",")):
        raise InputError(f"--columns {value!r} is not a set's name, = and its columns separated by commas")
    return name, tuple(columns.split(","))


OUTPUT = click.Path(path_type=Path, allow_dash=True)
_SETS_HELP = "Folder of tasks, or of sets, or a set: score<TAB>text<TAB>text; repeatable."
SETS = click.option("--sets", type=PATH, multiple=True, required=True, help=_SETS_HELP)
MISSPELLINGS = click.option(
    "--misspellings",
    type=PATH,
    multiple=True,
    help="Real misspellings for --typos: word<TAB>misspelling; repeatable.",
)
DEVICE = click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)


def _percentages(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    if not value:
        return ()
    try:
        numbers = tuple(dict.fromkeys(int(number) for number in value.split(",")))
    except ValueError:
        numbers = (0,)
    if not all(1 <= number <= 100 for number in numbers):
        raise click.BadParameter("give percentages from 1 to 100 with commas between them, as in 10,20,50")
    return numbers


@click.command()
@click.argument("models", nargs=-1)
@click.option("--sets", type=PATH, multiple=True, help=_SETS_HELP)
@click.option("--components-of-sets", "components", type=click.IntRange(min=1),
              help="Remove N common components of each set from its vectors, as SIF's paper does.")  # fmt: skip
@click.option("--of-sides", type=click.Choice(["both", "each"]), default="both", show_default=True,
              help="With --components-of-sets: from both sides together, or from each by itself.")  # fmt: skip
@family_options
@click.option("--typos", callback=_percentages, metavar="PERCENT,...",
              help="Score also with these percentages of the words misspelt: 10,20,50.")  # fmt: skip
@MISSPELLINGS
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True,
              help="Of the misspellings and of what is drawn.")  # fmt: skip
@click.option("--json", "json_path", type=OUTPUT, help="Write the scores as JSON too; - for stdout, instead of text.")
@click.option("--markdown", "markdown_path", type=OUTPUT, help="Write Markdown too; - for stdout, instead of text.")
@click.option("--plot", type=PATH, help="Draw the scores into this PNG file (needs matplotlib).")
@report_option
@click.option("--space", type=click.Choice(["semantic", "lexical", "both"]), default="semantic", show_default=True,
              help="Score these columns of bundles that have lexical columns.")  # fmt: skip
@DEVICE
@one_sentence
def evaluate(
    models: tuple[str, ...], sets: tuple[Path, ...], components: int | None, of_sides: ComponentSides,
    typos: tuple[int, ...], misspellings: tuple[Path, ...], seed: int, json_path: Path | None,
    markdown_path: Path | None, plot: Path | None, report: Path | None,
    space: Space, device: str, **named: Any,
) -> None:  # fmt: skip
    """Score MODELS (bundles' names or folders, or finished run folders) and rivals side by side, on one family of tests
    or on several.

    Similarity: a folder is a task and a .tsv file in it a set. Pearson and Spearman times 100 of each set, their mean
    over the task's sets (the papers' way), and over the pairs of all its sets pooled (MTEB's way); then how much of
    the texts each model knows.

    Matching: F1 on the test pairs at the threshold that is best on train and valid together, and how many matches are
    the nearest, or among the 10 nearest, of the whole right table. Retrieval: nDCG@10. Translations: how
    often a text's translation is the nearest of the file's. Classification: accuracy of the
    nearest neighbor, of the centroid of 5 examples a class, and of logistic regression. Spelling: how often the right
    word is among the 3 nearest. docs/choosing.md has the files' forms and the shipped models' scores.

    A bundle is scored as it is served, a run as its trainer computes it.

    With --typos each word of three letters and more is misspelt with that probability, by a neighboring key, a
    swap, a loss, an insertion or, with --misspellings, as people misspell it: both texts of a pair,
    the left table, the queries, the texts that are classified. Sets of single words stay as they are.

    \b
    gramvec-train evaluate models/charagram-phrase models/sif --sets data/dev
    gramvec-train evaluate sif --sets data/dev/sts16 --json scores.json --plot scores.png
    gramvec-train evaluate gramvec-en sif --sets data/dev/sts16 --report scores.html
    gramvec-train evaluate runs/glove-w --sets data/dev/sts12 --components-of-sets 1
    gramvec-train evaluate sif --sets data/dev --typos 10,20,50 \\
        --misspellings data/dev/typos/wikipedia.tsv --markdown -
    gramvec-train evaluate gramvec-en --matching data/dev/matching --peer all --typos 20
    """
    run = JobRun(TerminalWatch(command_line()))
    families = Named(**named)
    if not models and not families.peers:
        raise click.UsageError("name MODELS, or a rival with --peer")
    families.check(with_sets=bool(sets))
    _check_settings(typos, misspellings, components, of_sides)
    _check_places(json_path, markdown_path, plot, report, with_sets=bool(sets))
    from gramvec_training.evaluation.backend import evaluate_models
    from gramvec_training.evaluation.report import check_matplotlib, format_markdown, format_table, plot_scores, to_json
    from gramvec_training.evaluation.report_page import make_evaluation_report

    if plot is not None:
        check_matplotlib()
    similarity_sets = _sets(sets) if sets else []
    opened, peers = open_families(families, seed), open_peers(families.peers)
    noise = _typos(typos, misspellings, seed, families.seen)
    models = tuple(dict.fromkeys(models))
    scored = [_model(model, device, components, of_sides, space) for model in models]
    reports = evaluate_models(scored, models, similarity_sets, noise)
    score_all(reports, scored, peers, similarity_sets, opened, noise)
    for name, scores in reports.items():
        for note in scores["notes"]:
            click.echo(f"{name}: {note}", err=True)
    texts = {json_path: to_json(reports).decode(), markdown_path: format_markdown(reports)}
    on_stdout = [text for path, text in texts.items() if str(path) == "-"]
    for path, text in texts.items():
        if path is not None and str(path) != "-":
            _write(path, text)
    if plot is not None:
        plot_scores(reports, plot)
    page = partial(make_evaluation_report, reports, dict(zip(models, scored, strict=True)), similarity_sets)
    rows = {path: len(similarity_set.scores) for path, similarity_set in _name_sets(similarity_sets)}
    run.write_report(report, page, lambda: ("models", _list_models(reports)), rows)
    click.echo((on_stdout or [format_table(reports)])[0].rstrip())


@click.command()
@click.argument("runs", nargs=-1, type=PATH, required=True)
@click.option("-o", "--out", type=PATH, help="PNG file to draw into.  [default of one: RUN/report.png]")
@click.option("--no-plot", is_flag=True, help="Print only the summary.")
@click.option("--measure", type=click.Choice(["pearson", "spearman"]), default="pearson", show_default=True)
@one_sentence
def report(runs: tuple[Path, ...], out: Path | None, no_plot: bool, measure: Measure) -> None:
    """Print what finished RUNS did, and draw the loss and development scores of one, or the scores of several in one
    figure, over steps.

    \b
    gramvec-train report runs/charagram-phrase
    gramvec-train report runs/charagram-phrase -o curves.png
    gramvec-train report runs/charagram-phrase runs/paragram-phrase -o both.png
    """
    if no_plot and out:
        raise click.UsageError("give --out or --no-plot, not both")
    runs = tuple(dict.fromkeys(runs))
    if len(runs) > 1 and not (out or no_plot):
        raise click.UsageError("give --out, the file for the figure of several runs, or --no-plot")
    from gramvec_training.evaluation.report import check_matplotlib, plot_run, plot_runs, read_record, summarize_run

    records = {str(run): read_record(run) for run in runs}
    if not no_plot:
        check_matplotlib()
    if out and len(runs) > 1:
        plot_runs(records, out, measure)
        click.echo(f"drawn in {out}", err=True)
    if len(runs) > 1:
        click.echo("\n\n".join(summarize_run(record, measure) for record in records.values()))
        return
    (run,), (record,) = runs, records.values()
    if not no_plot and (record.get("loss") or record.get("dev") or out):
        path = out or run / "report.png"
        plot_run(record, path, measure)
        click.echo(f"drawn in {path}", err=True)
    click.echo(summarize_run(record, measure))


@click.command()
@click.argument("bundle")
@SETS
@click.option("--typos", callback=_percentages, metavar="PERCENT,...", default="10,20,50", show_default=True,
              help="Shares of words to misspell in the sets of sentences.")  # fmt: skip
@MISSPELLINGS
@click.option("--beside", help="Bundle of a word model, whose scores on misspelt text stand beside.")
@click.option("--words", type=PATH,
              help='Words to seek neighbors among, "word count" a line.  '
              "[default: those of the sets and of the models]")  # fmt: skip
@DEVICE
@one_sentence
def card(
    bundle: str, sets: tuple[Path, ...], typos: tuple[int, ...], misspellings: tuple[Path, ...], beside: str | None,
    words: Path | None, device: str,
) -> None:  # fmt: skip
    """Score a finished BUNDLE and rewrite its model card.

    README.md gets the scores on every set, those on misspelt text, and nearest neighbors, all computed through the
    bundle as it is served. manifest.json records them; the model's own files keep their bytes.

    \b
    gramvec-train card models/charagram-phrase --sets data/dev \\
        --misspellings data/dev/typos/wikipedia.tsv --beside models/paragram-phrase
    """
    import gramvec
    from gramvec_training.evaluation.card import Candidates, assess, check_renewable, renew
    from gramvec_training.evaluation.similarity import list_candidate_words, read_words

    embedder = gramvec.load(bundle, device=device)  # type: ignore[arg-type]
    check_renewable(embedder)
    other = gramvec.load(beside, device=device) if beside is not None else None  # type: ignore[arg-type]
    similarity_sets = _sets(sets)
    if words is not None:
        candidates = Candidates(read_words(words), words.name)
    else:
        models = [model for model in (embedder, other) if model is not None]
        named = [f"the vocabulary of {model.name}" for model in models if model.bundle.vocabulary.n_words]
        origin = " and ".join(["the development sets", *named])
        candidates = Candidates(list_candidate_words(models, similarity_sets), origin)
    evaluation = assess(embedder, other, similarity_sets, _typos(typos, misspellings, seed=1), candidates)
    evaluation["misspellings"] = [path.name for path in misspellings]
    manifest = renew(embedder, evaluation)
    for note in evaluation["notes"]:
        click.echo(note, err=True)
    click.echo(f"{embedder.bundle.path}: card of {manifest.name} written, {len(similarity_sets)} sets scored")


def _model(name: str, device: str, components: int | None, sides: ComponentSides, space: Space) -> ScoredModel:
    """Open a run folder's model, or a bundle's."""
    from gramvec_training.evaluation.backend import remove_components_of_sets

    model = open_model(name, device=device, space=space)
    return model if components is None else remove_components_of_sets(model, components, sides)


def _list_models(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the names of the models and rivals, with the digests of bundles."""
    return "; ".join(
        f"{label}, SHA-256 {report['digest']}" if "digest" in report else label for label, report in reports.items()
    )


def _name_sets(sets: Sequence[SimilaritySet]) -> Iterator[tuple[Path, SimilaritySet]]:
    for similarity_set in sets:
        yield Path(similarity_set.task, similarity_set.name), similarity_set


def _sets(paths: Sequence[Path]) -> list[SimilaritySet]:
    from gramvec_training.evaluation.similarity import find_sets

    similarity_sets, notes = find_sets(paths)
    for note in notes:
        click.echo(note, err=True)
    return similarity_sets


def _typos(percentages: tuple[int, ...], misspellings: Sequence[Path], seed: int, seen: Sequence[Path] = ()) -> Typos:
    from gramvec_training.evaluation.backend import Typos
    from gramvec_training.readers.vectors import read_misspellings

    learned = {
        (word, misspelling.lower()) for word, listed in read_misspellings(seen).items() for misspelling in listed
    }
    known = {
        word: [misspelling for misspelling in listed if (word, misspelling.lower()) not in learned]
        for word, listed in read_misspellings(misspellings).items()
    }
    return Typos(percentages, known, seed)


def _check_settings(
    typos: tuple[int, ...], misspellings: tuple[Path, ...], components: int | None, of_sides: ComponentSides
) -> None:
    """Raise UsageError where an option needs another one."""
    if misspellings and not typos:
        raise click.UsageError("--misspellings belongs to --typos")
    if components is None and of_sides != "both":
        raise click.UsageError("--of-sides belongs to --components-of-sets")


def _check_places(
    json_path: Path | None, markdown_path: Path | None, plot: Path | None, report: Path | None, *, with_sets: bool
) -> None:
    """Refuse, before anything is scored, outputs that cannot be written at the end."""
    from gramvec.errors import InputError

    if json_path is not None and json_path == markdown_path:
        raise click.UsageError("give --json and --markdown different places")
    if plot is not None and not with_sets:
        raise click.UsageError("--plot draws the scores of --sets")
    if report is not None:
        check_place(report)
    for path in (json_path, markdown_path, plot):
        if path is not None and not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written (there is no folder {path.parent}); give another file")


def _write(path: Path, text: str) -> None:
    from gramvec.errors import InputError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another file") from error
