"""Run what a student wrote and say how it ended. Lives in the worker; knows questions and no answers."""

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from llminfer.grading.wire import decode, encode

STUB_MESSAGE = "this is your exercise"
"""What a stub of the overlay says: a student who meets it called the library's answer instead of writing one."""
ABSENT = ("llminfer.grading", "solutions")
"""What a worker never has; whoever imports it looks for answers."""
TRACEBACK_LIMIT = 4096
MODULE = "submission"


@dataclass
class Outcome:
    """How an act of the student's code ended: a status of results.Status, and what there is to tell."""

    status: str = "ok"
    value: Any = None
    error: str = ""
    traceback: str = ""
    arguments_after: dict[str, Any] = field(default_factory=dict)


class Submission:
    """One file of a student's, loaded by its path; nothing beside it can be imported."""

    def __init__(self, path: Path, entry: str) -> None:
        self._path, self._entry_name = path, entry
        self._entry: Callable | None = None

    def load(self) -> Outcome:
        """Run the file and find the entry."""
        outcome = self._outcome_of(self._run_file)
        if outcome.status != "ok":
            failed_import = outcome.status in ("exception", "not_done")
            return Outcome("import_error" if failed_import else outcome.status, None, outcome.error, outcome.traceback)
        entry = getattr(sys.modules[MODULE], self._entry_name, None)
        if not callable(entry):
            return Outcome("missing", error=f"{self._path.name} defines no {self._entry_name}")
        home = getattr(entry, "__module__", None)
        if isinstance(home, str) and home.split(".")[0] == "llminfer":
            return Outcome("forbidden_import", error=f"{self._entry_name} is the library's own, from {home}")
        self._entry = entry
        return Outcome()

    def call(self, arguments: dict[str, Any]) -> Outcome:
        """Call the entry by keyword."""
        outcome = self._outcome_of(lambda: self._entry(**arguments))
        outcome.arguments_after = arguments
        return outcome

    def drive(self, arguments: dict[str, Any], calls: Sequence[tuple[str, dict[str, Any]]]) -> Outcome:
        """Make an object of the entry and go through `calls`: ("returned", value) or ("raised", name) for each."""
        outcome = self._outcome_of(lambda: self._entry(**arguments))
        if outcome.status != "ok":
            return outcome
        made, steps = outcome.value, []
        told = Outcome(arguments_after=arguments)
        for method, its_arguments in calls:
            step = self._outcome_of(lambda name=method, given=its_arguments: getattr(made, name)(**given))
            if step.status == "exception":
                steps.append(("raised", step.value))
                if not told.error:  # the first is the one worth showing, if it was not wanted
                    told.error, told.traceback = step.error, step.traceback
            elif step.status != "ok":
                return step
            else:
                steps.append(("returned", _as_it_is_now(step.value)))
        told.value = steps
        return told

    def _run_file(self) -> None:
        spec = spec_from_file_location(MODULE, self._path)
        module = module_from_spec(spec)
        sys.modules[MODULE] = module  # dataclasses and annotations look their module up
        spec.loader.exec_module(module)

    def _outcome_of(self, act: Callable[[], Any]) -> Outcome:
        """Do it, whatever it raises. The value of an exception is the name of its type."""
        try:
            return Outcome(value=act())
        except MemoryError as problem:
            return self._told("memory", problem)
        except SystemExit as problem:
            return self._told("exit", problem)
        except NotImplementedError as problem:
            return self._told("forbidden_import" if STUB_MESSAGE in _words(problem) else "not_done", problem)
        except ImportError as problem:
            wanted = problem.name if isinstance(problem.name, str) else ""
            absent = any(f"{wanted}.".startswith(f"{name}.") for name in ABSENT)
            return self._told("forbidden_import" if absent else "exception", problem)
        except BaseException as problem:  # KeyboardInterrupt and what else a student may raise
            return self._told("exception", problem)

    def _told(self, status: str, problem: BaseException) -> Outcome:
        name = type(problem).__name__
        words = _words(problem)
        return Outcome(status, name, f"{name}: {words}" if words else name, self._own_frames(problem))

    def _own_frames(self, problem: BaseException) -> str:
        """The traceback without the frames of the worker and of libraries."""
        try:
            if isinstance(problem, SyntaxError):
                if problem.filename == str(self._path):
                    problem.filename = self._path.name  # not the folder, which is another one each time
                return "".join(traceback.format_exception_only(problem))[-TRACEBACK_LIMIT:]
            frames = traceback.extract_tb(problem.__traceback__)
            own = [frame for frame in frames if frame.filename == str(self._path)]
            for frame in own:
                frame.filename = self._path.name
            return "".join(traceback.format_list(own))[-TRACEBACK_LIMIT:]
        except BaseException:  # the exception's own methods are a student's code too
            return ""


def _as_it_is_now(value: Any) -> Any:
    """A copy, because what was returned may be the object's own list, which later calls change."""
    try:
        return decode(encode(value))
    except (TypeError, ValueError):
        return value  # the reply will be refused for it


def _words(problem: BaseException) -> str:
    """The message as one line, cut."""
    try:
        return " ".join(str(problem).split())[:500]
    except BaseException:
        return "(its message cannot be read)"
