"""The judge on exercises of its own: what earns points, what each mistake is called, and what hidden groups keep."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llminfer.grading import judge, shrinking
from llminfer.grading.causes import STATE
from llminfer.grading.results import ExerciseResult, Status
from llminfer.grading.sessions import Session

SECRET = b"0123456789abcdef0123456789abcdef"
RIGHT = "return (x - x.mean(axis=1, keepdims=True)) * by"

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def our_own_mistakes_are_seen(monkeypatch):
    """And the net under slow programs does not decide on a busy machine."""
    monkeypatch.setenv("LLMINFER_TRACEBACK", "1")
    monkeypatch.setattr(shrinking.shrink, "__defaults__", (None, shrinking.TRIES, 600.0))


@pytest.fixture
def graded(centred, tmp_path):
    """graded(body) -> the result of a submission with this body."""

    def result(body: str, before: str = "", **options: object) -> ExerciseResult:
        file = tmp_path / "centred.py"
        file.write_text(f"import numpy as np\n{before}\n\ndef centred(x, by):\n    {body}\n")
        return judge.grade(centred, file, **options)

    return result


def plain(result: ExerciseResult) -> ExerciseResult:
    return replace(result, seconds=0.0)


def test_a_right_answer_earns_the_visible_points_and_says_who_runs_the_rest(graded):
    result = graded(RIGHT)
    assert (result.status, result.points, result.max_points, result.version) == (Status.OK, 5.0, 10.0, 3)
    assert [(group.passed, group.total) for group in result.groups] == [(2, 2), (3, 3), (0, 0)]
    assert (result.groups[2].status, result.groups[2].note) == (Status.NOT_RUN, "run by your teacher")
    assert result.failure is None
    assert result.visible_right
    assert result.fingerprint["numpy"] == np.__version__
    assert result.isolation


def test_with_the_secret_the_hidden_group_is_run(graded):
    result = graded(RIGHT, student="ada", secret=SECRET)
    assert (result.points, result.groups[2].status) == (10.0, Status.OK)
    assert [group.name for group in graded(RIGHT, secret=SECRET, hidden_only=True).groups] == ["any"]


def test_a_hidden_group_says_its_name_its_points_and_its_hint_and_nothing_of_its_cases(graded):
    result = graded("print('token', x[0]); return x if x.shape[1] == 5 else " + RIGHT[7:], secret=SECRET)
    hidden = result.groups[2]
    assert (hidden.status, hidden.points, hidden.note) == (Status.WRONG, 0.0, "Think of a row of one.")
    assert (hidden.passed, hidden.total) == (0, 0)
    assert result.failure is None
    assert "token" not in str(result.to_json())
    timed_out = graded("while x.shape[1] == 5: pass\n    " + RIGHT, secret=SECRET).groups[2]
    assert replace(timed_out, points=0.0) == hidden  # how it went wrong is kept too


@pytest.mark.parametrize(
    ("body", "status", "message", "cause"),
    [
        ("return x * by", Status.WRONG, "wrong", ""),
        ("return np.zeros_like(x)", Status.WRONG, "elements are wrong", "All elements are 0."),
        ("return (x - x.mean()) * by", Status.WRONG, "elements are wrong", "Whose mean is it?"),
        ("return x - x.mean(axis=1, keepdims=True)", Status.WRONG, "", "Every value is 0.333333 times"),
        (
            "return ((x - x.mean(axis=1, keepdims=True)) * by).T",
            Status.SHAPE,
            "shape (",
            "rows and columns are exchanged",
        ),
        ("return ((x - x.mean(axis=1, keepdims=True)) * by).astype(float)", Status.DTYPE, "float64", "np.zeros and"),
        ("return x * np.nan", Status.NONFINITE, "NaN or infinite", "NaN comes of"),
        (
            "x -= x.mean(axis=1, keepdims=True); return x * by",
            Status.MUTATED_INPUT,
            "the caller's x was changed",
            "copy",
        ),
        ("return x[7, 7, 7]", Status.EXCEPTION, "IndexError: too many indices", ""),
        ("return [[1.0]]", Status.DTYPE, "a float32 array of shape", ""),
        ("return None", Status.DTYPE, "this is None", ""),
        ("return object()", Status.BAD_REPLY, "what came back cannot be compared", ""),
        ("while True: pass", Status.TIMEOUT, "did not come to an end", "It does not end."),
        ("exit(0)", Status.EXIT, "ended itself", "Nothing here should end the process"),
        ("raise NotImplementedError", Status.NOT_DONE, "not begun yet", ""),
    ],
)
def test_each_mistake_has_its_word(graded, body, status, message, cause):
    result = graded(body)
    assert (result.status, result.points) == (status, 0.0)
    assert message in result.failure.message
    assert cause in result.failure.cause


def test_a_group_earns_its_points_whole_and_by_itself(graded):
    result = graded("return x if len(x) == 30 else " + RIGHT[7:])
    assert [(group.points, group.passed, group.total) for group in result.groups[:2]] == [(2.0, 2, 2), (0.0, 2, 3)]


def test_a_failure_shows_the_smallest_input_and_lines_that_run(graded, tmp_path):
    failure = graded("return (x - x.mean()) * by").failure
    assert failure.shrunk
    assert failure.section == "3.1.2"
    assert (failure.group, failure.label) == ("small", "case 1: 2 rows of 3")
    names: dict = {}
    sys.path.insert(0, str(tmp_path))
    try:
        *lines, last = failure.reproduction.splitlines()
        exec("\n".join(lines), names)
        got = eval(last, names)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("centred", None)
    assert got.size == 2
    assert str(got.shape) in failure.got
    assert f"{got[failure.worst_index]:.8g}" == failure.got_at


def test_a_traceback_has_the_students_lines_alone(graded):
    failure = graded("return helper(x)", before="def helper(x):\n    return np.linalg.inv(x.ravel())").failure
    assert failure.message.startswith("LinAlgError")
    assert "in helper" in failure.traceback
    assert "site-packages" not in failure.traceback
    assert "worker" not in failure.traceback


def test_prints_are_shown_and_cut(graded):
    failure = graded("print('here I am', x.shape); print('x' * 100_000); return x").failure
    assert failure.printed.startswith("here I am")
    assert len(failure.printed) < 40_000


@pytest.mark.parametrize(
    "before",
    [
        "seen = []",
        "first = {}",
    ],
)
def test_state_kept_between_calls_is_found_and_called_so(graded, before):
    bodies = {
        "seen = []": "seen.append(1); return (x - x.mean(axis=1, keepdims=True)) * by * (1 if len(seen) <= 5 else 2)",
        "first = {}": "first.setdefault(0, ((x - x.mean(axis=1, keepdims=True)) * by)); return first[0]",
    }
    result = graded(bodies[before], before=before)
    assert result.points < 5.0
    assert result.failure.cause == STATE
    assert "for number in [*range(1," in result.failure.reproduction


def test_after_two_bad_endings_no_third_worker_is_started(graded):
    result = graded("while True: pass", secret=SECRET)
    assert [group.points for group in result.groups] == [0.0, 0.0, 0.0]
    assert result.groups[1].status is Status.TIMEOUT
    assert result.seconds < 60
    assert result.failure.limit == "used 1.0 s of 1.0 s" or result.failure.limit.startswith("used ")


def test_after_two_refusals_of_memory_no_third_is_provoked(graded, monkeypatch):
    """The worker survives each of them; asked on, a class full of these would cost minutes."""
    asked, call = [], Session.call
    monkeypatch.setattr(Session, "call", lambda session, case: (asked.append(case), call(session, case))[1])
    result = graded("return np.ones((1 << 20, 1 << 18))", secret=SECRET)
    assert result.status is Status.MEMORY
    assert [group.points for group in result.groups] == [0.0, 0.0, 0.0]
    assert len(asked) == 2


def test_what_cannot_be_loaded_says_why(centred, tmp_path):
    file = tmp_path / "centred.py"
    for text, status, words in [
        ("def centred(x, by:\n", Status.IMPORT_ERROR, "centred.py cannot be imported: SyntaxError"),
        ("import a_module_that_is_not_there\n", Status.IMPORT_ERROR, "ModuleNotFoundError"),
        ("def centered(x, by):\n    return x\n", Status.MISSING, "defines no centred"),
        ("from solutions import centred\n", Status.FORBIDDEN_IMPORT, "solutions"),
    ]:
        file.write_text(text)
        result = judge.grade(centred, file)
        assert (result.status, result.points) == (status, 0.0)
        assert words in result.failure.message
    assert judge.grade(centred, None).status is Status.MISSING
    assert judge.grade(centred, tmp_path / "elsewhere.py").failure.message == "there is no centred.py"


def test_the_same_submission_gives_the_same_result(graded):
    for body in ("return (x - x.mean()) * by", RIGHT):
        first, second = (plain(graded(body, student="ada", secret=SECRET)) for _ in range(2))
        assert first == second


def test_a_result_with_a_failure_survives_json(graded):
    result = graded("return x * np.inf")
    assert ExerciseResult.from_json(result.to_json()) == result


def test_a_mistake_of_ours_is_flagged_and_tells_no_values(centred, graded, monkeypatch):
    def broken(group: str, rng: np.random.Generator) -> list:
        raise KeyError("a hidden value: 12345")

    monkeypatch.delenv("LLMINFER_TRACEBACK")
    monkeypatch.setitem(centred.__dict__, "judge_side", replace(centred.judge_side, cases=broken))
    result = graded(RIGHT)
    assert (result.status, result.points, result.max_points) == (Status.GRADER_ERROR, 0.0, 10.0)
    assert "the grader failed: KeyError in test_judge.py" in result.failure.message
    assert "12345" not in str(result.to_json())


def test_a_reference_that_changes_its_input_or_crashes_is_a_mistake_of_ours(centred, graded, monkeypatch):
    def crashing(x: np.ndarray, by: float) -> np.ndarray:
        return x[99]

    monkeypatch.setitem(centred.__dict__, "judge_side", replace(centred.judge_side, reference=crashing))
    with pytest.raises(RuntimeError, match="the reference ends with IndexError"):
        graded(RIGHT)


def test_another_seed_draws_other_inputs_of_the_same_kind(centred):
    same, other = judge.visible_case("3.1/top_p", "the cut", 5), judge.visible_case("3.1/top_p", "the cut", 5, seed=1)
    again = judge.visible_case("3.1/top_p", "the cut", 5)
    np.testing.assert_array_equal(same.arguments["probabilities"], again.arguments["probabilities"])
    assert same.arguments["probabilities"].shape == other.arguments["probabilities"].shape
    with pytest.raises(ValueError, match="there is no visible case 99"):
        judge.visible_case("3.1/top_p", "the cut", 99)


def test_many_are_graded_two_at_a_time_and_told_of_in_their_order(centred, tmp_path):
    file = tmp_path / "centred.py"
    file.write_text(f"def centred(x, by):\n    {RIGHT}\n")
    told = []
    results = list(judge.grade_many([(centred, file), (centred, None), (centred, file)], told.append))
    assert [result.status for result in results] == [Status.OK, Status.MISSING, Status.OK]
    assert len(told) == 3


CLASS = '''
class Counter:
    """Counts."""

    def __init__(self, start):
        self.count = start

    def add(self, n):
        if n < 0:
            raise ValueError("negative")
        self.count += n
        return self.count

    def take(self):
        return self.count
'''
CLASS_JUDGE = f"""
from llminfer.grading.spec import Call, Case, Mutant, Tolerance

VERSION = 1
TOLERANCE = Tolerance(0)
{CLASS.replace("class Counter", "class Reference")}

def cases(group, rng):
    for place in range(2):
        numbers = rng.integers(1, 90, 6)
        calls = [Call("add", {{"n": int(n)}}) for n in numbers]
        yield Case({{"start": 7}}, (*calls, Call("add", {{"n": -1}}), Call("take", {{}})))


MUTANTS = (Mutant("takes negatives", (("raise ValueError", "return 0 #"),), hint="What of a negative number?"),)
"""


def test_an_object_is_taken_through_its_life(new_exercise, tmp_path):
    exercise = new_exercise("class", "counter", CLASS, CLASS, CLASS_JUDGE)
    assert judge.grade(exercise, exercise.solution).points == 5.0
    file = tmp_path / "counter.py"
    file.write_text(CLASS.replace('raise ValueError("negative")', "return 0"))
    failure = judge.grade(exercise, file).failure
    assert failure.message == "call 1, add(n=-1): it is to raise ValueError, and it returns something"
    assert (failure.expected, failure.got, failure.cause) == ("'raises ValueError'", "0", "What of a negative number?")
    assert failure.reproduction == "from counter import Counter\nit = Counter(start=1)\nit.add(n=-1)"
    file.write_text(CLASS.replace("return self.count\n\n", "return self.kount\n\n"))
    failure = judge.grade(exercise, file).failure
    assert failure.message.startswith("call 1, add(n=1): AttributeError: 'Counter' object has no attribute 'kount'")
    file.write_text(CLASS.replace("self.count += n", "raise NotImplementedError"))
    assert judge.grade(exercise, file).status is Status.NOT_DONE


NUMBER = '''
N = {"n": 3}


def answer():
    """The answers."""
    return {"small": N["n"] * 2, "large": N["n"] ** 2, "any": 1.5}
'''
NUMBER_JUDGE = """
from llminfer.grading.spec import Mutant, Tolerance

TOLERANCE = Tolerance(1e-6, "any")
VERSION = 1


def draw(rng):
    return {"n": int(rng.integers(10, 10**6))}


def reference(drawn):
    return {"small": drawn["n"] * 2, "large": drawn["n"] ** 2, "any": 1.5}


MUTANTS = (Mutant("half", (), like=lambda drawn: reference({"n": drawn["n"] / 2}), hint="Both of them."),)
"""


def test_a_number_is_drawn_for_each_student_and_never_told(new_exercise, tmp_path):
    exercise = new_exercise("number", "counting", NUMBER, NUMBER, NUMBER_JUDGE)
    from llminfer.grading.questions import drawn_numbers

    n = drawn_numbers(exercise, "ada")["n"]
    file = tmp_path / "counting.py"
    file.write_text(NUMBER.replace('{"n": 3}', f'{{"n": {n}}}'))
    assert judge.grade(exercise, file, student="ada").points == 5.0
    other = judge.grade(exercise, file, student="bob")
    assert other.points == 0.0
    assert "student bob" in other.failure.label
    assert str(drawn_numbers(exercise, "bob")["n"] * 2) not in str(other.to_json())
    assert other.failure.expected == other.failure.expected_at == ""
    file.write_text(NUMBER.replace('{"n": 3}', f'{{"n": {n / 2}}}'))
    assert judge.grade(exercise, file, student="ada").failure.cause == "Both of them."
    file.write_text('def answer():\n    return {"large": 3}\n')
    missing = judge.grade(exercise, file, student="ada")
    assert missing.groups[0].status is Status.MISSING


def test_the_judge_needs_neither_torch_nor_triton(centred, tmp_path):
    file = tmp_path / "centred.py"
    file.write_text("def centred(x, by):\n    return x\n")
    program = f"""
import sys
sys.modules["torch"] = sys.modules["triton"] = None  # an import of them fails
from pathlib import Path
from llminfer.grading import commands, judge, magic, report, spec, workplace
exercise = spec.load_exercise(Path({str(centred.folder / "centred.toml")!r}))
result = judge.grade(exercise, Path({str(file)!r}))
assert result.failure.reproduction, result
kernels = [each for each in spec.all_exercises() if each.kind == "kernel"]
for each in kernels:
    judge.questions(each, each.groups[0])
print(len(kernels), result.status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout == "2 wrong\n", done.stderr
